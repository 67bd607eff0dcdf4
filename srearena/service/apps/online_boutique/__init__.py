"""Online Boutique: a shop of eleven services in five languages that communicate over gRPC.

Tracing is on, as in its optional OpenTelemetry component; cart, advertisements and shipping emit no spans.
"""

from __future__ import annotations

from srearena.service.apps.base import Application


class OnlineBoutique(Application):
    def __init__(self) -> None:
        super().__init__("online-boutique.json")
