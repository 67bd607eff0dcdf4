"""What visitors of Hotel Reservation do from end to end."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from srearena.service.journeys import Answer, Journey, JourneyFailed, Visitor

_ROOMS = 200
"""Rooms of each of the hotels 1 to 6."""
_HOTELS = 6
_FIRST_DAY = date(2030, 1, 1)
"""Chosen: far from the nights that load generators book (April 2015)."""
_DAYS = 20_000
_USER, _PASSWORD = "Cornell_31", "1111111111"
"""The user number 1: the name ends in the number printed in hexadecimal, the password is the number ten times."""
_ATTEMPTS = 3


def _reserve(visitor: Visitor, hotel: int, night: date, rooms: int) -> Answer:
    return visitor.send(
        "POST",
        "/reservation",
        {
            "inDate": night.isoformat(),
            "outDate": (night + timedelta(days=1)).isoformat(),
            "lat": 37.7867,
            "lon": -122.4112,
            "hotelId": hotel,
            "customerName": f"{_USER}_{visitor.marker}",
            "username": _USER,
            "password": _PASSWORD,
            "number": rooms,
        },
    )


def fill_a_hotel(visitor: Visitor) -> None:
    """Rooms are booked until the hotel is full; then it refuses, and a search for that night does not list it."""
    for attempt in range(_ATTEMPTS):
        place = visitor.marker + attempt * 7919
        hotel, night = 1 + place % _HOTELS, _FIRST_DAY + timedelta(days=place // _HOTELS % _DAYS)
        first = _reserve(visitor, hotel, night, 1)
        if "Already reserved" not in first.text:
            break  # else an earlier visit has booked that night
    else:
        raise JourneyFailed(f"{first.request} finds no free room on {_ATTEMPTS} nights far ahead")
    first.must(first.status == 200 and "Reserve successfully!" in first.text, "a free room must be booked")
    too_many = _reserve(visitor, hotel, night, _ROOMS)
    too_many.must("Already reserved" in too_many.text, "more rooms than are left must be refused")
    rest = _reserve(visitor, hotel, night, _ROOMS - 1)
    rest.must("Reserve successfully!" in rest.text, "the rooms that are left must be booked")
    full = _reserve(visitor, hotel, night, 1)
    full.must("Already reserved" in full.text, "a full hotel must refuse")
    search = visitor.send(
        "GET",
        "/hotels",
        {
            "inDate": night.isoformat(),
            "outDate": (night + timedelta(days=1)).isoformat(),
            "lat": 37.7867,
            "lon": -122.4112,
        },
    )
    listed = [feature["id"] for feature in _features(search)]
    search.must(str(hotel) not in listed, f"hotel {hotel} is full and must not be listed")


def log_in(visitor: Visitor) -> None:
    """The right password is accepted, a wrong one refused."""
    good = visitor.send("POST", "/user", {"username": _USER, "password": _PASSWORD})
    good.must(good.status == 200 and "Login successfully!" in good.text, "the right password must be accepted")
    bad = visitor.send("POST", "/user", {"username": _USER, "password": f"{visitor.marker}"})
    bad.must("Failed" in bad.text, "a wrong password must be refused")


def compare_recommendations(visitor: Visitor) -> None:
    """The cheapest hotel, the best rated and the nearest are different ones, each with its name and telephone."""
    where = {"lat": 37.7867, "lon": -122.4112}
    best = {}
    for wish in ("price", "rate", "dis"):
        answer = visitor.send("GET", "/recommendations", {"require": wish, **where})
        features = _features(answer)
        answer.must(
            bool(features) and all(feature["properties"].get("phone_number") for feature in features),
            "hotels must be recommended, with their profiles",
        )
        best[wish] = {feature["id"] for feature in features}
    if not best["dis"] >= {"1"} or best["price"] == best["dis"]:
        raise JourneyFailed(f"the recommendations do not depend on the wish: {best}")
    refusal = visitor.send("GET", "/recommendations", {"require": "stars", **where})
    refusal.must(refusal.status == 400, "an unknown wish must be refused")


def _features(answer: Answer) -> list[dict[str, Any]]:
    found = answer.document
    is_collection = isinstance(found, dict) and found.get("type") == "FeatureCollection"
    answer.must(is_collection and isinstance(found.get("features"), list), "a collection of hotels is expected")
    return list(found["features"])


JOURNEYS = (
    Journey("fill a hotel", fill_a_hotel),
    Journey("log in", log_in),
    Journey("compare recommendations", compare_recommendations),
)
