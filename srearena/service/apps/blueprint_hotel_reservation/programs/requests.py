"""The requests to the frontend of Blueprint Hotel Reservation: what they read and write, and what they answer.

Written after the behaviour of Blueprint's public example: the HTTP server takes the arguments of a method from the
query, answers with `{"Ret0": ...}`, and with status 500 and the text of the error where the method returns one. Users,
the geo index and the recommendations are in memory since the start of their service; rates, profiles, capacities and
reservations are in MongoDB, with memcached in front.
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
from srearena.service.apps.blueprint_hotel_reservation.programs.data_sets import APPLICATION

_FRONTEND = "frontend_service"
_RADIUS = 10.0
"""Kilometres around the place within which geo searches, and how many hotels it returns at most."""
_RESULTS = 5
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_ADDRESS = ("StreetNumber", "StreetName", "City", "State", "Country", "PostalCode", "Lat", "Lon")
_PROFILE = ("ID", "Name", "PhoneNumber", "Description")
_PLAN = ("HotelID", "Code", "InDate", "OutDate")
_ROOM = ("BookableRate", "Code", "RoomDescription", "TotalRate", "TotalRateInclusive")


def _answer(value: object) -> HttpResponse:
    text = json.dumps({"Ret0": value}, separators=(",", ":")) + "\n"
    return HttpResponse(200, text.encode(), {"Content-Type": "text/plain; charset=utf-8"})


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _kilometres(lat: float, lon: float, other_lat: float, other_lon: float) -> float:
    """The distance on a sphere (haversine), with the Earth's mean radius."""
    lat_1, lat_2 = math.radians(lat), math.radians(other_lat)
    half = math.sin((lat_2 - lat_1) / 2) ** 2
    half += math.cos(lat_1) * math.cos(lat_2) * math.sin(math.radians(other_lon - lon) / 2) ** 2
    return 2 * 6371.0 * math.asin(min(1.0, math.sqrt(half)))


@handles(APPLICATION, _FRONTEND, "SearchHandler")
def search(exchange: Exchange) -> HttpResponse:
    query = exchange.query
    lat, lon = _number(query.get("lat", "")), _number(query.get("lon", ""))
    points = [point for point in exchange.loaded("geo_service", "geo") if "plat" in point]
    near = sorted((_kilometres(lat, lon, point["plat"], point["plon"]), point["pid"]) for point in points)
    hotels = [hotel for distance, hotel in near if distance <= _RADIUS][:_RESULTS]
    priced = [plan["HotelID"] for plan in _rates(exchange, hotels)]
    nights = list(_nights(query.get("inDate", ""), query.get("outDate", "")))
    # A hotel is added at the last of the nights: no nights, no hotels.
    return _answer(_profiles(exchange, [hotel for hotel in priced if nights and _is_free(exchange, hotel, nights)]))


@handles(APPLICATION, _FRONTEND, "RecommendHandler")
def recommend(exchange: Exchange) -> HttpResponse:
    wish = exchange.query.get("require", "")
    if wish not in ("dis", "rate", "price"):
        raise StoreFailed(f"Invalid require param {wish}")
    lat, lon = (_number(exchange.query.get(name, "")) for name in ("lat", "lon"))
    hotels = [hotel for hotel in exchange.loaded("recomd_service", "recommendation") if "hrate" in hotel]

    def merit(hotel: Mapping[str, Any]) -> float:
        if wish == "dis":
            return -_kilometres(lat, lon, hotel["hlat"], hotel["hlon"])
        return float(hotel["hrate"]) if wish == "rate" else -float(hotel["hprice"])

    best = max(map(merit, hotels), default=0.0)
    return _answer(_profiles(exchange, [hotel["hid"] for hotel in hotels if merit(hotel) == best]))


@handles(APPLICATION, _FRONTEND, "UserHandler")
def log_in(exchange: Exchange) -> HttpResponse:
    name, password = exchange.query.get("username", ""), exchange.query.get("password", "")
    if not name or not password:
        raise StoreFailed("Please specify username and password")
    if not _is_user(exchange, name, password):
        raise StoreFailed("Invalid Credentials")
    return _answer("Login successful")


@handles(APPLICATION, _FRONTEND, "ReservationHandler")
def reserve(exchange: Exchange) -> HttpResponse:
    query = exchange.query
    first, last = query.get("inDate", ""), query.get("outDate", "")
    if not first or not last:
        raise StoreFailed("Please specify inDate/outDate params")
    if not _DATE.fullmatch(first) or not _DATE.fullmatch(last):
        raise StoreFailed("Please check inDate/outDate format (YYYY-MM-DD)")
    for name, shown in (("hotelId", "hotelId params"), ("customerName", "customer name")):
        if not query.get(name):
            raise StoreFailed(f"Please specify {shown}")
    if not query.get("username") or not query.get("password"):
        raise StoreFailed("Please specify username or password")
    if not _is_user(exchange, query["username"], query["password"]):
        raise StoreFailed("Invalid credentials")
    rooms = int(_number(query.get("roomNumber", "0")))
    if not _book(exchange, query["hotelId"], query["customerName"], list(_nights(first, last)), rooms):
        raise StoreFailed("Failed to make reservation")
    return _answer("Reservation successful")


def _is_user(exchange: Exchange, name: str, password: str) -> bool:
    digest = hashlib.sha256(password.encode()).hexdigest()
    users = exchange.loaded("user_service", "user")
    return any(user.get("username") == name and user.get("password") == digest for user in users)


# Rates and profiles: cached as JSON, with the field names of the Go structs


def _fields(document: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: document.get(name.lower()) for name in names}


def _rates(exchange: Exchange, hotels: list[str]) -> list[dict[str, Any]]:
    cache = exchange.memcached("rate_service", "cache")
    plans: list[dict[str, Any]] = []
    for hotel in hotels:
        cached = _parsed(cache.get(hotel))
        if not isinstance(cached, list):
            found = exchange.mongo("rate_service", "inventory", "db").find({"hotelid": hotel})
            cached = [{**_fields(plan, _PLAN), "RType": _fields(plan.get("rtype") or {}, _ROOM)} for plan in found]
            cache.set(hotel, json.dumps(cached, separators=(",", ":")))
        plans += [plan for plan in cached if isinstance(plan, dict) and plan.get("HotelID")]
    return plans


def _profiles(exchange: Exchange, hotels: list[str]) -> list[dict[str, Any]]:
    cache = exchange.memcached("profile_service", "cache")
    profiles = []
    for hotel in hotels:
        cached = _parsed(cache.get(hotel))
        if not isinstance(cached, dict):
            found = exchange.mongo("profile_service", "hotels", "db").find_one({"id": hotel}) or {}
            cached = {**_fields(found, _PROFILE), "Address": _fields(found.get("address") or {}, _ADDRESS)}
            cache.set(hotel, json.dumps(cached, separators=(",", ":")))
        profiles.append(cached)
    return profiles


def _parsed(cached: bytes | None) -> Any:
    """A cached value; None where there is none, or an operator has stored something else under the key."""
    try:
        return None if cached is None else json.loads(cached)
    except ValueError:
        return None


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
    cache = exchange.memcached("reserv_service", "cache")
    cached = _parsed(cache.get(f"{hotel}_cap"))
    if isinstance(cached, int):
        return cached
    found = exchange.mongo("reserv_service", "number", "db").find_one({"hotelid": hotel})
    capacity = int(found["number"]) if found is not None else 0
    cache.set(f"{hotel}_cap", str(capacity))
    return capacity


def _booked(exchange: Exchange, hotel: str, night: tuple[str, str]) -> tuple[str, int, bool]:
    """The key under which the rooms of a night are counted in memcached, how many are taken, and if it is cached."""
    key = f"{hotel}_{night[1]}_{night[1]}"
    cached = _parsed(exchange.memcached("reserv_service", "cache").get(key))
    if isinstance(cached, int):
        return key, cached, True
    taken = exchange.mongo("reserv_service", "reservation", "db").find(
        {"hotelid": hotel, "indate": night[0], "outdate": night[1]}
    )
    return key, sum(int(booking.get("number", 0)) for booking in taken), False


def _is_free(exchange: Exchange, hotel: str, nights: list[tuple[str, str]]) -> bool:
    for night in nights:
        key, taken, is_cached = _booked(exchange, hotel, night)
        if not is_cached:
            exchange.memcached("reserv_service", "cache").set(key, str(taken))
        if taken + 1 > _capacity(exchange, hotel):
            return False
    return True


def _book(exchange: Exchange, hotel: str, customer: str, nights: list[tuple[str, str]], rooms: int) -> bool:
    counts: dict[str, int] = {}
    for night in nights:
        key, taken, _ = _booked(exchange, hotel, night)
        if taken + rooms > _capacity(exchange, hotel):
            return False
        counts[key] = taken + rooms
    bookings = exchange.mongo("reserv_service", "reservation", "db", "write")
    for _, end in nights:
        # The arrival of every night is that of the first, as in Blueprint's example.
        booking = {"hotelid": hotel, "customername": customer, "indate": nights[0][0], "outdate": end, "number": rooms}
        bookings.insert(booking)
    cache = exchange.memcached("reserv_service", "cache")
    for key, count in counts.items():
        cache.set(key, str(count))
    return True
