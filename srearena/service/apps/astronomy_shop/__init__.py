"""The Astronomy Shop: the OpenTelemetry demo, a shop of two dozen services."""

from __future__ import annotations

from srearena.service.apps.astronomy_shop.journeys import JOURNEYS
from srearena.service.apps.base import Application
from srearena.service.journeys import Journey


class AstronomyShop(Application):
    def __init__(self) -> None:
        super().__init__("astronomy-shop.json")

    @property
    def journeys(self) -> tuple[Journey, ...]:
        return JOURNEYS
