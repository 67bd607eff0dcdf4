"""Scrapes kube-state-metrics: an object is read again only when it has changed since the last scrape."""

from __future__ import annotations

from collections.abc import Sequence

from srearena.cluster.embedded.objects import Obj, name_of, namespace_of
from srearena.cluster.embedded.store import Change
from srearena.cluster.embedded.telemetry.collectors.book import Book
from srearena.cluster.embedded.telemetry.collectors.collector import Target
from srearena.cluster.embedded.telemetry.collectors.kube_state import batch, budgets, cluster, networking, storage
from srearena.cluster.embedded.telemetry.collectors.kube_state.families import Kind
from srearena.cluster.embedded.telemetry.collectors.kube_state.pods import PODS
from srearena.cluster.embedded.telemetry.collectors.kube_state.workloads import KINDS as WORKLOADS
from srearena.cluster.embedded.telemetry.collectors.roster import Roster
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
_ANSWER_SECONDS = 0.0003
"""One round trip inside the cluster."""

_Place = tuple[str, str, str]


class KubeStateCollector:
    job = "kube-state-metrics"

    def __init__(self, world: World, store: MetricStore) -> None:
        self._objects = world.store
        self._kinds = {kind.resource: kind for kind in KINDS}
        labels = {"job": self.job, "instance": INSTANCE}
        self._book = Book(store, labels)
        self._roster = Roster(store)
        self._roster.add(INSTANCE, labels, f"http://{INSTANCE}/metrics")
        self._changed: dict[_Place, None] = {}
        for kind in KINDS:
            for family in kind.families:
                store.describe(family.name, family.kind, family.help)
            for obj in self._objects.objects(kind.resource):
                self._note(kind.resource, obj)
            self._objects.subscribe(self._hear, kind.resource)

    def _hear(self, change: Change) -> None:
        self._note(change.resource, change.new)

    def _note(self, resource: str, obj: Obj) -> None:
        self._changed[resource, namespace_of(obj), name_of(obj)] = None

    def scrape(self, now: float) -> None:
        changed, self._changed = self._changed, {}
        for place in changed:
            obj = self._objects.get(*place)
            if obj is None:
                self._book.drop(place)
            else:
                self._book.put(place, *self._kinds[place[0]].series(obj))
        samples = self._book.write(now)
        self._roster.note(INSTANCE, now, samples, _ANSWER_SECONDS)
        self._roster.write(now)

    def targets(self) -> Sequence[Target]:
        return self._roster.targets()
