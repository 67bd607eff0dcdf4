"""Blueprint Hotel Reservation: the hotel site with tunable RPC timeouts and retries, built with Blueprint."""

from __future__ import annotations

from srearena.service.apps.base import Application
from srearena.service.apps.blueprint_hotel_reservation.journeys import JOURNEYS
from srearena.service.journeys import Journey


class BlueprintHotelReservation(Application):
    def __init__(self) -> None:
        super().__init__("blueprint-hotel-reservation.json")

    @property
    def journeys(self) -> tuple[Journey, ...]:
        return JOURNEYS
