"""Requests that write, as the load generator of Blueprint Hotel Reservation makes them."""

from __future__ import annotations

from random import Random
from urllib.parse import urlencode

from srearena.cluster.program_models import HttpRequest
from srearena.cluster.program_models.application_data import load_sample
from srearena.service.apps.blueprint_hotel_reservation.programs.data_sets import APPLICATION


@load_sample(APPLICATION, "frontend_service", "ReservationHandler", every=60.0)
def reserve(random: Random, session: int) -> HttpRequest:
    first = random.randint(9, 23)
    last = min(24, first + random.randint(1, 5))
    number = random.randint(0, 500)
    query = {
        "inDate": f"2015-04-{first:02d}",
        "outDate": f"2015-04-{last:02d}",
        "hotelId": random.randint(1, 80),
        "customerName": f"Cornell_{number}",
        "username": f"Cornell_{number}",
        "password": str(number) * 10,
        "roomNumber": 1,
    }
    return HttpRequest("GET", f"/ReservationHandler?{urlencode(query)}")
