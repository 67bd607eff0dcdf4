"""Online Boutique: a shop of eleven services in five languages that communicate over gRPC.

Tracing is on, as in its optional OpenTelemetry component; cart, advertisements and shipping emit no spans.
"""

from __future__ import annotations

from srearena.service.apps.base import Application
from srearena.service.apps.online_boutique.journeys import JOURNEYS
from srearena.service.journeys import Journey


class OnlineBoutique(Application):
    def __init__(self) -> None:
        super().__init__("online-boutique.json")

    @property
    def journeys(self) -> tuple[Journey, ...]:
        return JOURNEYS
