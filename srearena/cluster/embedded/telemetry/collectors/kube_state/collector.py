"""Scrape of kube-state-metrics: an object is read again only when it has changed since the last scrape."""

from __future__ import annotations

from collections.abc import Sequence

from srearena.cluster.embedded.objects import Obj, name_of, namespace_of
from srearena.cluster.embedded.store import Change
from srearena.cluster.embedded.telemetry.collectors.collector import Target
from srearena.cluster.embedded.telemetry.collectors.kube_state import batch, budgets, cluster, networking, storage
from srearena.cluster.embedded.telemetry.collectors.kube_state.families import Kind
from srearena.cluster.embedded.telemetry.collectors.kube_state.pods import PODS
from srearena.cluster.embedded.telemetry.collectors.kube_state.workloads import KINDS as WORKLOADS
from srearena.cluster.embedded.telemetry.collectors.series_buffer import SeriesBuffer
from srearena.cluster.embedded.telemetry.collectors.target_registry import TargetRegistry
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore
from srearena.cluster.embedded.world import World

KINDS: tuple[Kind, ...] = (
    PODS,
    *WORKLOADS,
    *batch.KINDS,
    *budgets.KINDS,
    *storage.KINDS,
    *networking.KINDS,
    *cluster.KINDS,
)
INSTANCE = "kube-state-metrics:8080"
_SCRAPE_SECONDS = 0.0003
"""One round trip inside the cluster."""

_ObjectKey = tuple[str, str, str]


class KubeStateCollector:
    job = "kube-state-metrics"

    def __init__(self, world: World, store: MetricStore) -> None:
        self._objects = world.store
        self._kinds = {kind.resource: kind for kind in KINDS}
        labels = {"job": self.job, "instance": INSTANCE}
        self._buffer = SeriesBuffer(store, labels)
        self._target_registry = TargetRegistry(store)
        self._target_registry.add(INSTANCE, labels, f"http://{INSTANCE}/metrics")
        self._changed: dict[_ObjectKey, None] = {}
        for kind in KINDS:
            for family in kind.families:
                store.describe(family.name, family.kind, family.help)
            for obj in self._objects.objects(kind.resource):
                self._mark_changed(kind.resource, obj)
            self._objects.subscribe(self._on_change, kind.resource)

    def _on_change(self, change: Change) -> None:
        self._mark_changed(change.resource, change.new)

    def _mark_changed(self, resource: str, obj: Obj) -> None:
        self._changed[resource, namespace_of(obj), name_of(obj)] = None

    def scrape(self, now: float) -> None:
        changed, self._changed = self._changed, {}
        for key in changed:
            obj = self._objects.get(*key)
            if obj is None:
                self._buffer.drop(key)
            else:
                self._buffer.put(key, *self._kinds[key[0]].series(obj))
        samples = self._buffer.write(now)
        self._target_registry.record_scrape(INSTANCE, now, samples, _SCRAPE_SECONDS)
        self._target_registry.write(now)

    def targets(self) -> Sequence[Target]:
        return self._target_registry.targets()
