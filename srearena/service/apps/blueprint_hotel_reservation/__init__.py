"""Blueprint Hotel Reservation: the hotel site with tunable RPC timeouts and retries, built with Blueprint."""

from __future__ import annotations

from srearena.service.apps.base import Application


class BlueprintHotelReservation(Application):
    def __init__(self) -> None:
        super().__init__("blueprint-hotel-reservation.json")
