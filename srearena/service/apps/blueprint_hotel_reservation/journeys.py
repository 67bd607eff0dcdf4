"""What visitors of Blueprint Hotel Reservation do from end to end."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from srearena.service.journeys import Answer, Journey, JourneyFailed, Visitor

_ROOMS = 200
"""Rooms of each of the hotels 1 to 6."""
_PRICED = 3
"""The first hotels have rates, so that a search can find them."""
_FIRST_DAY = date(2030, 1, 1)
"""Chosen: far from the nights that load generators book (April 2015)."""
_DAYS = 20_000
_USER, _PASSWORD = "Cornell_1", "1111111111"
_HERE = {"lat": 37.7867, "lon": -122.4112, "locale": "en"}
_ATTEMPTS = 3


def _returned(answer: Answer) -> Any:
    answer.must(answer.status == 200 and isinstance(answer.document, dict), "an answer is expected")
    return answer.document.get("Ret0")


def _profiles(answer: Answer) -> list[dict[str, Any]]:
    found = _returned(answer)
    answer.must(isinstance(found, list) and all(isinstance(one, dict) for one in found), "profiles are expected")
    return list(found)


def _reserve(visitor: Visitor, hotel: int, night: date, rooms: int, password: str = _PASSWORD) -> Answer:
    return visitor.send(
        "GET",
        "/ReservationHandler",
        {
            "inDate": night.isoformat(),
            "outDate": (night + timedelta(days=1)).isoformat(),
            "hotelId": hotel,
            "customerName": f"{_USER}_{visitor.marker}",
            "username": _USER,
            "password": password,
            "roomNumber": rooms,
        },
    )


def fill_a_hotel(visitor: Visitor) -> None:
    """Rooms are booked until the hotel is full; then it refuses, and a search for that night does not list it."""
    for attempt in range(_ATTEMPTS):
        place = visitor.marker + attempt * 7919
        hotel, night = 1 + place % _PRICED, _FIRST_DAY + timedelta(days=place // _PRICED % _DAYS)
        first = _reserve(visitor, hotel, night, 1)
        if "Failed to make reservation" not in first.text:
            break  # else an earlier visit has booked that night
    else:
        raise JourneyFailed(f"{first.request} finds no free room on {_ATTEMPTS} nights far ahead")
    first.must(_returned(first) == "Reservation successful", "a free room must be booked")
    dates = {"inDate": night.isoformat(), "outDate": (night + timedelta(days=1)).isoformat()}
    query = {"customerName": _USER, **dates, **_HERE}
    search = visitor.send("GET", "/SearchHandler", query)
    listed = [profile.get("ID") for profile in _profiles(search)]
    search.must(str(hotel) in listed, f"hotel {hotel} has free rooms and must be listed")
    too_many = _reserve(visitor, hotel, night, _ROOMS)
    too_many.must(too_many.status >= 400, "more rooms than are left must be refused")
    rest = _reserve(visitor, hotel, night, _ROOMS - 1)
    rest.must(_returned(rest) == "Reservation successful", "the rooms that are left must be booked")
    full = _reserve(visitor, hotel, night, 1)
    full.must(full.status >= 400, "a full hotel must refuse")
    search = visitor.send("GET", "/SearchHandler", query)
    listed = [profile.get("ID") for profile in _profiles(search)]
    search.must(str(hotel) not in listed, f"hotel {hotel} is full and must not be listed")


def log_in(visitor: Visitor) -> None:
    """The right password is accepted, a wrong one refused, also for a reservation."""
    good = visitor.send("GET", "/UserHandler", {"username": _USER, "password": _PASSWORD})
    good.must(_returned(good) == "Login successful", "the right password must be accepted")
    bad = visitor.send("GET", "/UserHandler", {"username": _USER, "password": visitor.marker})
    bad.must(bad.status >= 400, "a wrong password must be refused")
    stranger = _reserve(visitor, 1, _FIRST_DAY, 1, f"{visitor.marker}")
    stranger.must(stranger.status >= 400, "a reservation with a wrong password must be refused")


def compare_recommendations(visitor: Visitor) -> None:
    """The cheapest hotel and the nearest are different ones, each with its name and telephone."""
    best = {}
    for wish in ("price", "rate", "dis"):
        answer = visitor.send("GET", "/RecommendHandler", {"require": wish, **_HERE})
        profiles = _profiles(answer)
        answer.must(
            bool(profiles) and all(profile.get("Name") and profile.get("PhoneNumber") for profile in profiles),
            "hotels must be recommended, with their profiles",
        )
        best[wish] = {profile.get("ID") for profile in profiles}
    if best["dis"] != {"1"} or best["price"] == best["dis"]:
        raise JourneyFailed(f"the recommendations do not depend on the wish: {best}")
    refusal = visitor.send("GET", "/RecommendHandler", {"require": "stars", **_HERE})
    refusal.must(refusal.status >= 400, "an unknown wish must be refused")


JOURNEYS = (
    Journey("fill a hotel", fill_a_hotel),
    Journey("log in", log_in),
    Journey("compare recommendations", compare_recommendations),
)
