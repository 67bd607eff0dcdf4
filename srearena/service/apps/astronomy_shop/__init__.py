"""The Astronomy Shop: the OpenTelemetry demo as SREGym deploys it, a shop of two dozen services."""

from __future__ import annotations

from srearena.service.apps.base import Application


class AstronomyShop(Application):
    def __init__(self) -> None:
        super().__init__("metadata.json")
