"""Hotel Reservation: Go services over gRPC with Consul for service discovery, MongoDB and memcached."""

from __future__ import annotations

from srearena.service.apps.base import Application
from srearena.service.apps.hotel_reservation.journeys import JOURNEYS
from srearena.service.journeys import Journey


class HotelReservation(Application):
    def __init__(self) -> None:
        super().__init__("hotel-reservation.json")

    @property
    def journeys(self) -> tuple[Journey, ...]:
        return JOURNEYS
