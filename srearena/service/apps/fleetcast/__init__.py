"""FleetCast on TiDB: a satellite simulation whose database is made by an operator from a custom resource."""

from __future__ import annotations

from srearena.service.apps.base import Application


class FleetCast(Application):
    def __init__(self) -> None:
        super().__init__("metadata.json")
