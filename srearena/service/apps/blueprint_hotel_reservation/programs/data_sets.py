"""The records with which the services of Blueprint Hotel Reservation fill their databases at the first start.

The hotels are those of Hotel Reservation, of which it is a port. Field names are those that Go's MongoDB driver makes
of its structs: lower case without separators.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from typing import Any

from srearena.cluster.program_models.application_data import data_set
from srearena.service.apps.hotel_reservation.programs import data_sets as originals

APPLICATION = "blueprint-hotel-reservation"
_USERS = 501


def _lowered(document: Mapping[str, Any]) -> dict[str, Any]:
    return {key.lower(): _lowered(value) if isinstance(value, dict) else value for key, value in document.items()}


@data_set(APPLICATION, "profiles")
@cache
def profiles() -> list[dict[str, Any]]:
    return [_lowered(hotel) for hotel in originals.profiles()]


@data_set(APPLICATION, "points")
@cache
def points() -> list[dict[str, Any]]:
    return [{"pid": one["hotelId"], "plat": one["lat"], "plon": one["lon"]} for one in originals.points()]


@data_set(APPLICATION, "rate-plans")
@cache
def rate_plans() -> list[dict[str, Any]]:
    plans = [_lowered(plan) for plan in originals.rate_plans()]
    return [{("rtype" if key == "roomtype" else key): value for key, value in plan.items()} for plan in plans]


@data_set(APPLICATION, "recommendations")
@cache
def recommendations() -> list[dict[str, Any]]:
    return [
        {"hid": one["hotelId"], "hlat": one["lat"], "hlon": one["lon"], "hrate": one["rate"], "hprice": one["price"]}
        for one in originals.recommendations()
    ]


@data_set(APPLICATION, "users")
@cache
def users() -> list[dict[str, Any]]:
    """The name ends in the user's number; the password is the number ten times."""
    return [
        {
            "username": f"Cornell_{number}",
            "password": hashlib.sha256((str(number) * 10).encode()).hexdigest(),
        }
        for number in range(_USERS)
    ]


@data_set(APPLICATION, "rooms")
@cache
def rooms() -> list[dict[str, Any]]:
    return [{"hotelid": one["hotelId"], "number": one["numberOfRoom"]} for one in originals.rooms()]


@data_set(APPLICATION, "first-reservation")
@cache
def first_reservation() -> list[dict[str, Any]]:
    return [_lowered(one) for one in originals.first_reservation()]
