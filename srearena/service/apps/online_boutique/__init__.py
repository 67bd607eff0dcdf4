"""Online Boutique: a shop of eleven small services in five languages that call each other over gRPC."""

from __future__ import annotations

from srearena.service.apps.base import Application


class OnlineBoutique(Application):
    def __init__(self) -> None:
        super().__init__("metadata.json")
