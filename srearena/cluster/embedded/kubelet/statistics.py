"""What the kubelet counts about its own work, as its metrics show it. A restart of the kubelet begins at zero."""

from __future__ import annotations

from collections import Counter

from srearena.cluster.embedded.instruments import Histogram
from srearena.cluster.embedded.objects import Obj

DEFAULT_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
RUNTIME_BOUNDS = tuple(0.005 * 2.5**power for power in range(14))
START_BOUNDS = (
    *(0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 20.0, 30.0, 45.0, 60.0, 120.0, 180.0, 240.0, 300.0),
    *(360.0, 480.0, 600.0, 900.0, 1200.0, 1800.0, 2700.0, 3600.0),
)
STORAGE_BOUNDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 25.0, 50.0, 120.0, 300.0, 600.0)
"""Bounds of the kubelet's histograms."""
SYNC_SECONDS = 0.0035
"""Median duration of a sync that finds nothing to do: it compares, and asks the runtime nothing. Chosen."""
SYNC = "sync"
SYNC_PERIOD = 75.0
"""Seconds between two syncs of a pod without a change: the kubelet's minute, and up to half as long again."""
REMOUNT_SECONDS = 0.004
"""Median duration of a mount that finds the files as they should be. Chosen."""
_PLUGINS = {
    "configMap": "kubernetes.io/configmap",
    "secret": "kubernetes.io/secret",
    "projected": "kubernetes.io/projected",
    "downwardAPI": "kubernetes.io/downward-api",
    "emptyDir": "kubernetes.io/empty-dir",
    "hostPath": "kubernetes.io/host-path",
    "csi": "kubernetes.io/csi",
    "nfs": "kubernetes.io/nfs",
}
TOKEN_MOUNT = ("volume_mount", _PLUGINS["projected"], "success")
CLAIM_PLUGIN = "kubernetes.io/local-volume"


def plugin_of(volume: Obj) -> str:
    """Return the name of the plugin that mounts a volume of a pod."""
    return next((plugin for kind, plugin in _PLUGINS.items() if kind in volume), CLAIM_PLUGIN)


class Statistics:
    def __init__(self, now: float) -> None:
        self.started_at = now
        self._repeated_at = now
        self._repeated = 0.0
        """Syncs that were not due to a change."""
        self.version = 0
        """Counts changes, so that a reader knows when there is something new."""
        self.runtime_operations: dict[str, Histogram] = {}
        self.runtime_errors: Counter[str] = Counter()
        self.pod_workers: dict[str, Histogram] = {}
        """Syncs of pods, by type of operation."""
        self.pod_starts = Histogram(START_BOUNDS)
        """From the first sight of a pod until its containers run."""
        self.storage_operations: dict[tuple[str, str, str], Histogram] = {}
        """By operation, plugin and status."""
        self.evictions: Counter[str] = Counter()
        """By signal."""
        self.cgroups: dict[str, Histogram] = {}
        """By type of operation."""

    def ran(self, operation: str, seconds: float, *, failed: bool = False) -> None:
        """Count an operation of the container runtime."""
        found = self.runtime_operations.get(operation)
        if found is None:
            found = self.runtime_operations[operation] = Histogram(RUNTIME_BOUNDS)
        self.version += 1
        found.observe(seconds)
        if failed:
            self.runtime_errors[operation] += 1

    def synced(self, operation: str, seconds: float | None = None) -> None:
        """Count a sync of a pod; without a duration, one that found nothing to do."""
        self.version += 1
        found = self.pod_workers.get(operation)
        if found is None:
            found = self.pod_workers[operation] = Histogram(DEFAULT_BOUNDS)
        if seconds is None:
            found.observe_spread(1, SYNC_SECONDS)
        else:
            found.observe(seconds)

    def repeat_syncs(self, now: float, pods: int) -> None:
        """Count the syncs of pods since the last call that found nothing to do.

        The simulator's kubelet acts on changes alone; a real one syncs every pod about once a minute, and mounts the
        volume with its token again.
        """
        since, self._repeated_at = self._repeated_at, now
        before = int(self._repeated)
        self._repeated += pods * (now - since) / SYNC_PERIOD
        number = int(self._repeated) - before
        if not number:
            return
        if SYNC in self.pod_workers:
            self.pod_workers[SYNC].observe_spread(number, SYNC_SECONDS)
        if TOKEN_MOUNT in self.storage_operations:
            self.storage_operations[TOKEN_MOUNT].observe_spread(number, REMOUNT_SECONDS)

    def mounted(self, volume: Obj, seconds: float, status: str = "success") -> None:
        """Count an attempt to mount a volume."""
        self.version += 1
        key = ("volume_mount", plugin_of(volume), status)
        found = self.storage_operations.get(key)
        if found is None:
            found = self.storage_operations[key] = Histogram(STORAGE_BOUNDS)
        found.observe(seconds)

    def evicted(self, signal: str) -> None:
        self.version += 1
        self.evictions[signal] += 1

    def changed_cgroups(self, operation: str, number: int = 1) -> None:
        self.version += 1
        found = self.cgroups.get(operation)
        if found is None:
            found = self.cgroups[operation] = Histogram(DEFAULT_BOUNDS)
        found.observe_spread(number, 0.0012)
