"""Requests that write, as the load generator of Hotel Reservation makes them (workload/mixed.lua)."""

from __future__ import annotations

from random import Random
from urllib.parse import urlencode

from srearena.cluster.program_models import HttpRequest
from srearena.cluster.program_models.application_data import load_sample
from srearena.service.apps.hotel_reservation.programs.data_sets import APPLICATION


@load_sample(APPLICATION, "frontend", "reserve")
def reserve(random: Random, session: int) -> HttpRequest:
    first = random.randint(9, 23)
    last = min(24, first + random.randint(1, 5))
    number = random.randint(0, 500)
    name = f"Cornell_{number}"
    query = {
        "inDate": f"2015-04-{first:02d}",
        "outDate": f"2015-04-{last:02d}",
        "lat": f"{38.0235 + (random.randint(0, 481) - 240.5) / 1000:.4f}",
        "lon": f"{-122.095 + (random.randint(0, 325) - 157) / 1000:.4f}",
        "hotelId": random.randint(1, 80),
        "customerName": name,
        "username": name,
        "password": str(number) * 10,
        "number": 1,
    }
    return HttpRequest("POST", f"/reservation?{urlencode(query)}")
