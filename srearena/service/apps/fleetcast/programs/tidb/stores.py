"""PD's registry of TiKV stores: their last heartbeats and states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from srearena.cluster.program_models import Clock

DISCONNECTED_SECONDS = 20.0
DOWN_SECONDS = 30 * 60.0
_FIRST_ID = 1


class AddressTaken(Exception):
    """A store with other data is registered under that address."""


class Stores:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rows: dict[str, dict[str, Any]] = {}
        """By address."""

    def rows(self) -> list[dict[str, Any]]:
        return list(self._rows.values())

    def restore(self, rows: Sequence[dict[str, Any]]) -> None:
        self._rows = {row["address"]: dict(row) for row in rows}

    def beat(self, report: dict[str, Any]) -> int:
        """Register a store's heartbeat and return its id; AddressTaken for a store that has lost its data."""
        address = str(report["address"])
        row = self._rows.get(address)
        if row is not None and not row.get("tombstone") and row.get("mark") != report.get("mark", ""):
            raise AddressTaken(f"duplicated store address: {address}, already registered by id:{row['id']}")
        if row is None or row.get("tombstone"):
            number = max((int(other["id"]) for other in self._rows.values()), default=_FIRST_ID - 1) + 1
            row = self._rows[address] = {"id": number, "address": address}
        row |= {"version": report.get("version", ""), "mark": report.get("mark", "")}
        row["last_heartbeat"] = self._clock.now
        return int(row["id"])

    def bury(self, identifier: str) -> bool:
        row = next((row for row in self._rows.values() if str(row["id"]) == identifier), None)
        if row is None:
            return False
        row["tombstone"] = True
        return True

    def state(self, row: dict[str, Any]) -> str:
        if row.get("tombstone"):
            return "Tombstone"
        failure = self._clock.now - row.get("last_heartbeat", 0.0)
        if failure < DISCONNECTED_SECONDS:
            return "Up"
        return "Disconnected" if failure < DOWN_SECONDS else "Down"

    @property
    def up(self) -> list[dict[str, Any]]:
        return [row for row in self._rows.values() if self.state(row) == "Up"]

    def listed(self) -> dict[str, Any]:
        """The stores in the format of `/pd/api/v1/stores`, without tombstones."""
        shown = [row for row in self._rows.values() if not row.get("tombstone")]
        stores = [
            {
                "store": {
                    "id": row["id"],
                    "address": row["address"],
                    "version": row.get("version", ""),
                    "deploy_path": row.get("mark", ""),
                    "state_name": self.state(row),
                    "last_heartbeat": int(row.get("last_heartbeat", 0.0) * 1e9),
                },
                "status": {"leader_count": 1 if self.state(row) == "Up" else 0, "region_count": 1},
            }
            for row in sorted(shown, key=lambda row: int(row["id"]))
        ]
        return {"count": len(stores), "stores": stores}

    def metrics(self, leads: bool) -> str:
        """PD's main metrics; only the leader reports stores."""
        states = [self.state(row) for row in self._rows.values()] if leads else []
        kinds = (("store_up_count", "Up"), ("store_disconnected_count", "Disconnected"), ("store_down_count", "Down"))
        lines = ["# TYPE pd_cluster_status gauge"]
        lines += [
            f'pd_cluster_status{{namespace="default",type="{kind}"}} {states.count(state)}' for kind, state in kinds
        ]
        return "\n".join(lines) + "\n"
