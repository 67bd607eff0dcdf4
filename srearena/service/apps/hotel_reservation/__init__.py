"""Hotel Reservation: Go services over gRPC that find each other through Consul, with MongoDB and memcached behind."""

from __future__ import annotations

from srearena.service.apps.base import Application


class HotelReservation(Application):
    def __init__(self) -> None:
        super().__init__("metadata.json")
