"""Train Ticket: forty-six services that sell railway tickets, in the variant with Nacos and one MySQL cluster."""

from __future__ import annotations

from srearena.service.apps.base import Application


class TrainTicket(Application):
    def __init__(self) -> None:
        super().__init__("metadata.json")
