"""Blueprint Hotel Reservation: the hotel site built with Blueprint, with tunable RPC timeouts, retries and garbage collection."""

from __future__ import annotations

from srearena.service.apps.base import Application


class BlueprintHotelReservation(Application):
    def __init__(self) -> None:
        super().__init__("metadata.json")
