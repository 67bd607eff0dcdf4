"""Online Boutique: a shop of eleven small services in five languages that call each other over gRPC.

Tracing is on, as its optional component for OpenTelemetry has it; cart, advertisements and shipping make no spans.
"""

from __future__ import annotations

from srearena.service.apps.base import Application


class OnlineBoutique(Application):
    def __init__(self) -> None:
        super().__init__("metadata.json")
