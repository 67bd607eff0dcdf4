"""Options of an embedded cluster: everything that two equal runs must share, and how it is served."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from secrets import token_hex
from typing import Any

SETTLING_SECONDS = 180.0
"""Virtual seconds that are simulated before a cluster is handed over: enough for all components to settle."""


@dataclass(slots=True, frozen=True)
class ClusterOptions:
    workers: int = 3
    seed: int = 0
    speed: float = 1.0
    """Virtual seconds per real second; at 0, time moves only through `advance`."""
    port: int = 0
    start: float | None = None
    """The virtual instant (seconds since the epoch) at which the cluster is handed over; None means the real now."""
    behind: float = 0.0
    """How many seconds before that instant the cluster is handed over, with time stopped until `catch_up`:
    actions and waits before that are in the past when clients first look."""
    secret: str = field(default_factory=lambda: token_hex(16))
    """Entropy of keys and tokens. Not derived from the seed, so that a known seed does not allow forging them."""
    models: tuple[str, ...] = ()
    """Folders with a `model.yaml`: what the images of applications do here."""
    worker_cpu: str = "8"
    worker_memory: str = "16Gi"
    pods_per_node: int = 110
    addons: bool = True
    """Whether CNI plugin, volume provisioner and node exporter are pods of the cluster."""
    display_name: str = ""
    """The name under which people know the cluster; where it has one, the addresses of its telemetry have a page."""
    prometheus: int = 3
    """The major version of Prometheus that queries and rules are evaluated as: 2 or 3."""

    def problems(self) -> list[str]:
        """Human-readable errors in these options."""
        found: list[str] = []
        if not 0 <= self.workers <= 5000:
            found.append(f"the number of worker nodes must be between 0 and 5000, not {self.workers}")
        if not 0 <= self.speed <= 1e6:
            found.append(f"the speed must be between 0 and 1000000, not {self.speed:g}")
        if not 0 <= self.behind <= 30 * 86400:
            found.append(f"a cluster can start up to 30 days behind, not {self.behind:g} seconds")
        if self.prometheus not in (2, 3):
            found.append(f"Prometheus can have version 2 or 3 here, not {self.prometheus}")
        if not 0 <= self.port <= 65535:
            found.append(f"the port must be between 0 and 65535, not {self.port}")
        return found

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)
