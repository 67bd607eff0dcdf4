"""The requests to the frontend of Hotel Reservation: what they read and write, and what they answer.

Written after the behaviour of DeathStarBench's Go services: parameters, messages, collections and keys are theirs.
Users, the geo index and the recommendations are in memory since the start of their service; rates, profiles, capacities
and reservations are in MongoDB, with memcached in front.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from typing import Any

from srearena.cluster.program_models import HttpResponse
from srearena.cluster.program_models.application_data import Exchange, StoreFailed, handles
from srearena.service.apps.hotel_reservation.programs.data_sets import APPLICATION

_RADIUS = 10.0
"""Kilometres around the place within which geo searches, and how many hotels it returns at most."""
_RESULTS = 5
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_BAD_LOGIN = "Failed. Please check your username and password. "


def _refused(text: str) -> HttpResponse:
    """What Go's http.Error writes for a bad request."""
    return HttpResponse(400, f"{text}\n".encode(), {"Content-Type": "text/plain; charset=utf-8"})


def _json(value: object) -> HttpResponse:
    text = json.dumps(value, separators=(",", ":"), sort_keys=True) + "\n"
    headers = {"Content-Type": "text/plain; charset=utf-8", "Access-Control-Allow-Origin": "*"}
    return HttpResponse(200, text.encode(), headers)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _kilometres(lat: float, lon: float, other: Mapping[str, Any]) -> float:
    """The distance on a sphere (haversine), with the Earth's mean radius."""
    lat_1, lat_2 = math.radians(lat), math.radians(other["lat"])
    half = math.sin((lat_2 - lat_1) / 2) ** 2
    half += math.cos(lat_1) * math.cos(lat_2) * math.sin(math.radians(other["lon"] - lon) / 2) ** 2
    return 2 * 6371.0 * math.asin(min(1.0, math.sqrt(half)))


@handles(APPLICATION, "frontend", "search")
def search(exchange: Exchange) -> HttpResponse:
    query = exchange.query
    if not query.get("inDate") or not query.get("outDate"):
        return _refused("Please specify inDate/outDate params")
    if not query.get("lat") or not query.get("lon"):
        return _refused("Please specify location params")
    lat, lon = _number(query["lat"]), _number(query["lon"])
    points = exchange.loaded("geo", "geo")
    near = sorted((_kilometres(lat, lon, point), point["hotelId"]) for point in points if "lat" in point)
    hotels = [hotel for distance, hotel in near if distance <= _RADIUS][:_RESULTS]
    priced = [plan["hotelId"] for plan in _rates(exchange, hotels)]
    free = [hotel for hotel in priced if _is_free(exchange, hotel, query["inDate"], query["outDate"])]
    return _json(_features(exchange, free))


@handles(APPLICATION, "frontend", "recommend")
def recommend(exchange: Exchange) -> HttpResponse:
    query = exchange.query
    if not query.get("lat") or not query.get("lon"):
        return _refused("Please specify location params")
    wish = query.get("require", "")
    if wish not in ("dis", "rate", "price"):
        return _refused("Please specify require params")
    lat, lon = _number(query["lat"]), _number(query["lon"])
    hotels = [hotel for hotel in exchange.loaded("recommendation", "recommendation") if "rate" in hotel]

    def merit(hotel: Mapping[str, Any]) -> float:
        if wish == "dis":
            return -_kilometres(lat, lon, hotel)
        return float(hotel["rate"]) if wish == "rate" else -float(hotel["price"])

    best = max(map(merit, hotels), default=0.0)
    return _json(_features(exchange, [hotel["hotelId"] for hotel in hotels if merit(hotel) == best]))


@handles(APPLICATION, "frontend", "login")
def login(exchange: Exchange) -> HttpResponse:
    name, password = exchange.query.get("username"), exchange.query.get("password")
    if not name or not password:
        return _refused("Please specify username and password")
    return _json({"message": "Login successfully!" if _is_user(exchange, name, password) else _BAD_LOGIN})


@handles(APPLICATION, "frontend", "reserve")
def reserve(exchange: Exchange) -> HttpResponse:
    query = exchange.query
    first, last = query.get("inDate", ""), query.get("outDate", "")
    if not first or not last:
        return _refused("Please specify inDate/outDate params")
    if not _DATE.fullmatch(first) or not _DATE.fullmatch(last):
        return _refused("Please check inDate/outDate format (YYYY-MM-DD)")
    for name in ("hotelId", "customerName"):
        if not query.get(name):
            return _refused(f"Please specify {name} params")
    if not query.get("username") or not query.get("password"):
        return _refused("Please specify username and password")
    known = _is_user(exchange, query["username"], query["password"])
    rooms = int(_number(query.get("number", "0")))
    # The frontend books whatever the login says, and only the message tells: as DeathStarBench's does.
    message = "Reserve successfully!" if known else _BAD_LOGIN
    if not _book(exchange, query["hotelId"], query["customerName"], first, last, rooms):
        message = "Failed. Already reserved. "
    return _json({"message": message})


def _is_user(exchange: Exchange, name: str, password: str) -> bool:
    digest = hashlib.sha256(password.encode()).hexdigest()
    users = exchange.loaded("user", "user")
    return any(user.get("username") == name and user.get("password") == digest for user in users)


# Rates and profiles


def _rates(exchange: Exchange, hotels: list[str]) -> list[Mapping[str, Any]]:
    cache = exchange.memcached("rate")
    plans: list[Mapping[str, Any]] = []
    for hotel in hotels:
        cached = cache.get(hotel)
        if cached is None:
            found = exchange.mongo("rate", "inventory").find({"hotelId": hotel})
            lines = [json.dumps({key: plan[key] for key in plan if key != "_id"}) for plan in found]
            cache.set(hotel, "".join(f"{line}\n" for line in lines))
        else:
            lines = cached.decode(errors="replace").splitlines()
        plans += [plan for plan in map(_parsed, lines) if "roomType" in plan]
    return sorted(plans, key=lambda plan: -float(plan["roomType"]["totalRate"]))


def _features(exchange: Exchange, hotels: list[str]) -> dict[str, Any]:
    cache = exchange.memcached("profile")
    features = []
    for hotel in hotels:
        cached = cache.get(hotel)
        if cached is None:
            found = exchange.mongo("profile", "hotels").find_one({"id": hotel})
            if found is None:
                continue
            profile: Mapping[str, Any] = {key: found[key] for key in found if key != "_id"}
            cache.set(hotel, json.dumps(profile))
        else:
            profile = _parsed(cached.decode(errors="replace"))
        if "address" not in profile:
            continue
        features.append(
            {
                "type": "Feature",
                "id": profile["id"],
                "properties": {"name": profile["name"], "phone_number": profile["phoneNumber"]},
                "geometry": {
                    "type": "Point",
                    "coordinates": [profile["address"]["lon"], profile["address"]["lat"]],
                },
            }
        )
    return {"type": "FeatureCollection", "features": features}


def _parsed(text: str) -> Mapping[str, Any]:
    """A cached JSON object; empty where an operator has stored something else under the key."""
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


# Reservations


def _nights(first: str, last: str) -> Iterator[tuple[str, str]]:
    try:
        day, end = date.fromisoformat(first), date.fromisoformat(last)
    except ValueError:
        return
    while day < end:
        following = day + timedelta(days=1)
        yield day.isoformat(), following.isoformat()
        day = following


def _capacity(exchange: Exchange, hotel: str) -> int:
    cache = exchange.memcached("reservation")
    cached = cache.get(f"{hotel}_cap")
    if cached is not None:
        return int(_number(cached.decode(errors="replace")))
    found = exchange.mongo("reservation", "number").find_one({"hotelId": hotel})
    if found is None:
        raise StoreFailed("mongo: no documents in result")
    cache.set(f"{hotel}_cap", str(found["numberOfRoom"]))
    return int(found["numberOfRoom"])


def _booked(exchange: Exchange, hotel: str, night: tuple[str, str]) -> tuple[str, int]:
    """The key under which the rooms of a night are counted in memcached, and how many are taken."""
    key = f"{hotel}_{night[1]}_{night[1]}"
    cached = exchange.memcached("reservation").get(key)
    if cached is not None:
        return key, int(_number(cached.decode(errors="replace")))
    taken = exchange.mongo("reservation", "reservation").find(
        {"hotelId": hotel, "inDate": night[0], "outDate": night[1]}
    )
    return key, sum(int(booking.get("number", 0)) for booking in taken)


def _is_free(exchange: Exchange, hotel: str, first: str, last: str) -> bool:
    capacity = _capacity(exchange, hotel)
    for night in _nights(first, last):
        key, taken = _booked(exchange, hotel, night)
        exchange.memcached("reservation").set(key, str(taken))
        if taken + 1 > capacity:
            return False
    return True


def _book(exchange: Exchange, hotel: str, customer: str, first: str, last: str, rooms: int) -> bool:
    capacity = _capacity(exchange, hotel)
    nights = list(_nights(first, last))
    counts: dict[str, int] = {}
    for night in nights:
        key, taken = _booked(exchange, hotel, night)
        if taken + rooms > capacity:
            return False
        counts[key] = taken + rooms
    bookings = exchange.mongo("reservation", "reservation", action="write")
    cache = exchange.memcached("reservation")
    for key, count in counts.items():
        cache.set(key, str(count))
    for begin, end in nights:
        bookings.insert({"hotelId": hotel, "customerName": customer, "inDate": begin, "outDate": end, "number": rooms})
    return True
