"""The records with which the services of Hotel Reservation fill their databases at the first start.

Identifiers, places, rates, rooms and users follow DeathStarBench's generator: 80 hotels in and around San Francisco, of
which one in three has a rate plan, and 501 users. The descriptions are our own words.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any

from srearena.cluster.program_models.application_data import data_set

APPLICATION = "hotel-reservation"
_NAMED = (
    ("Clift Hotel", "(415) 775-4700", "495", "Geary St", "94102", 37.7867, -122.4112),
    ("W San Francisco", "(415) 777-5300", "181", "3rd St", "94103", 37.7854, -122.4005),
    ("Hotel Zetta", "(415) 543-8555", "55", "5th St", "94103", 37.7834, -122.4071),
    ("Hotel Vitale", "(415) 278-3700", "8", "Mission St", "94105", 37.7936, -122.3930),
    ("Phoenix Hotel", "(415) 776-1380", "601", "Eddy St", "94109", 37.7831, -122.4181),
    ("St. Regis San Francisco", "(415) 284-4000", "125", "3rd St", "94109", 37.7863, -122.4015),
)
_HOTELS = 80
_USERS = 501
_RATES = ((109.0, 123.17), (120.0, 140.0), (124.0, 144.0), (132.0, 158.0), (232.0, 258.0))
"""Rate and rate with taxes, by the hotel's number modulo five."""
_RATE_AND_PRICE = ((109.0, 150.0), (139.0, 120.0), (109.0, 190.0), (129.0, 160.0), (119.0, 140.0), (149.0, 200.0))
"""Of the six named hotels, as the recommendations know them."""


def _place(number: int) -> tuple[float, float]:
    if number <= len(_NAMED):
        return _NAMED[number - 1][5:]
    return round(37.7835 + number / 500 * 3, 6), round(-122.41 + number / 500 * 4, 6)


@data_set(APPLICATION, "profiles")
@cache
def profiles() -> list[dict[str, Any]]:
    hotels = []
    for number in range(1, _HOTELS + 1):
        name, phone, house, street, code, _, _ = _NAMED[min(number, len(_NAMED)) - 1]
        lat, lon = _place(number)
        hotels.append(
            {
                "id": str(number),
                "name": name,
                "phoneNumber": phone if number <= len(_NAMED) else f"(415) 284-40{number}",
                "description": f"{name}: a hotel on {street}, San Francisco, close to shops, museums and the Muni.",
                "address": {
                    "streetNumber": house,
                    "streetName": street,
                    "city": "San Francisco",
                    "state": "CA",
                    "country": "United States",
                    "postalCode": code,
                    "lat": lat,
                    "lon": lon,
                },
            }
        )
    return hotels


@data_set(APPLICATION, "points")
@cache
def points() -> list[dict[str, Any]]:
    places = [_place(number) for number in range(1, _HOTELS + 1)]
    return [{"hotelId": str(number), "lat": lat, "lon": lon} for number, (lat, lon) in enumerate(places, 1)]


@data_set(APPLICATION, "rate-plans")
@cache
def rate_plans() -> list[dict[str, Any]]:
    plans = []
    for number in (1, 2, 3, *range(9, _HOTELS + 1, 3)):
        rate, inclusive = (139.0, 153.09) if number == 2 else _RATES[number % 5 if number > 3 else 0]
        last = "2015-04-10" if number <= 3 else "2015-04-17" if number % 2 == 0 else "2015-04-24"
        code, bed = ("QN", "Queen sized bed") if number == 2 else ("KNG", "King sized bed")
        plans.append(
            {
                "hotelId": str(number),
                "code": "RACK",
                "inDate": "2015-04-09",
                "outDate": last,
                "roomType": {
                    "bookableRate": rate,
                    "code": code,
                    "roomDescription": bed,
                    "totalRate": rate,
                    "totalRateInclusive": inclusive,
                },
            }
        )
    return plans


@data_set(APPLICATION, "recommendations")
@cache
def recommendations() -> list[dict[str, Any]]:
    hotels = []
    for number in range(1, _HOTELS + 1):
        lat, lon = _place(number)
        if number <= len(_RATE_AND_PRICE):
            rate, price = _RATE_AND_PRICE[number - 1]
        else:
            rate, price = _RATES[number % 5] if number % 3 == 0 else (135.0, 179.0)
        hotels.append({"hotelId": str(number), "lat": lat, "lon": lon, "rate": rate, "price": price})
    return hotels


@data_set(APPLICATION, "users")
@cache
def users() -> list[dict[str, Any]]:
    """The name ends in the user's number, as text printed in hexadecimal; the password is the number ten times."""
    return [
        {
            "username": f"Cornell_{str(number).encode().hex()}",
            "password": hashlib.sha256((str(number) * 10).encode()).hexdigest(),
        }
        for number in range(_USERS)
    ]


@data_set(APPLICATION, "rooms")
@cache
def rooms() -> list[dict[str, Any]]:
    by_rest = (200, 300, 250)
    return [
        {"hotelId": str(number), "numberOfRoom": 200 if number <= 6 else by_rest[number % 3]}
        for number in range(1, _HOTELS + 1)
    ]


@data_set(APPLICATION, "first-reservation")
@cache
def first_reservation() -> list[dict[str, Any]]:
    return [{"hotelId": "4", "customerName": "Alice", "inDate": "2015-04-09", "outDate": "2015-04-10", "number": 1}]
