"""Hotel Reservation: Go services over gRPC with Consul for service discovery, MongoDB and memcached."""

from __future__ import annotations

from srearena.service.apps.base import Application


class HotelReservation(Application):
    def __init__(self) -> None:
        super().__init__("metadata.json")
