"""What bulk traffic does at datastores, counted: the operations of every call that reaches one, hits and misses.

How long statements take is reported along with the counts, and every few seconds while some are slow, so that a store
writes its slow log as time passes.

Totals are kept as fractions beside the servers; a server's own counters get the whole numbers when someone reads them
(an exporter's scrape, INFO, stats, serverStatus), so that an interval costs a few array operations and no server is
touched per request. Operations of single requests are counted by the servers themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from srearena.cluster.embedded.programs.datastores.datastore import BulkStatements, Counted, client_name
from srearena.cluster.embedded.traffic.durations import shapes_and_scales, tail_share
from srearena.cluster.embedded.traffic.fluid_model import FluidModel
from srearena.cluster.embedded.traffic.graph import CacheSpace, Call
from srearena.cluster.embedded.traffic.servers import ServerKey, Store

TallyKey = tuple[ServerKey, str, str]
"""Store, operation and target."""
SLOW_SECONDS = 0.1
"""Mean time from which a store hears of its statements as time passes: the lowest default threshold of a slow log
(MongoDB's slowms)."""
REPORT_SECONDS = 5.0


@dataclass(slots=True)
class _Total:
    """Counts of one operation at one target of a store, and how much of them the server knows."""

    model: Counted
    operation: str
    database: str
    target: str
    calls: float = 0.0
    hits: float = 0.0
    misses: float = 0.0
    told_calls: int = 0
    told_hits: int = 0
    told_misses: int = 0

    def tell(self) -> None:
        calls, hits, misses = int(self.calls), int(self.hits), int(self.misses)
        more = (calls - self.told_calls, hits - self.told_hits, misses - self.told_misses)
        if any(more):
            self.model.count_traffic(self.operation, self.database, self.target, *more)
            self.told_calls, self.told_hits, self.told_misses = calls, hits, misses


class StoreTally:
    """Counts of all stores of a cluster, across fluid models."""

    def __init__(self) -> None:
        self._totals: dict[TallyKey, _Total] = {}
        self._calls: list[Call] = []
        self._indexes = np.zeros(0, dtype=np.intp)
        self._callees = np.zeros(0, dtype=np.intp)
        self._counts = np.zeros(0)
        self._seconds = np.zeros(0)
        """Time that the counted calls took at their stores."""
        self._running = np.zeros(0)
        """How many statements of each call run at once: the calls of the last moments that have not yet ended."""
        self._most = np.zeros(0)
        self._unreported_seconds = 0.0
        self._settled = True
        """Whether nothing was counted since the last report: every exporter asks for one, all at the same instant."""
        self._fluid: FluidModel | None = None
        self._reported: dict[ServerKey, Counted] = {}
        """Stores that know of running statements."""
        self._bulk_keys: dict[tuple[ServerKey, str], tuple[Counted, int, int]] = {}
        """Keys that caches hold by now, with the bytes of a value."""

    def follow(self, fluid: FluidModel) -> None:
        """Count the calls of another fluid model from now on."""
        self.settle()
        self._totals = {key: total for key, total in self._totals.items() if not total.model.process.done.is_set}
        running = dict(zip((call.key for call in self._calls), self._running.tolist(), strict=True))
        stored = [call for call in fluid.graph.calls if any(_store(link.callee) for link in call.links)]
        self._calls = [call for call in stored if call.step.cache is None and call.step.publish is None]
        self._indexes = np.array([call.index for call in self._calls], dtype=np.intp)
        self._callees = np.array([_first_store_node(call) for call in self._calls], dtype=np.intp)
        self._counts = np.zeros(len(self._calls))
        self._seconds = np.zeros(len(self._calls))
        self._running = np.array([running.get(call.key, 0.0) for call in self._calls])
        self._most = np.array([_most_at_once(call) for call in self._calls])
        self._fluid = fluid
        self._settled = False
        for call in stored:
            for link in call.links:
                store = _store(link.callee)
                if store is not None and isinstance(store.model, Counted):
                    store.model.settle_traffic = self.settle

    def add(self, fluid: FluidModel, seconds: float) -> None:
        """Add the calls of an interval."""
        self._settled = False
        if len(self._indexes):
            succeeded = 1 - fluid.call_fails[self._indexes]
            counts = fluid.call_rates[self._indexes] * succeeded * seconds
            times = fluid.response[self._callees]
            self._counts += counts
            self._seconds += counts * times
            # Low rates vary from tick to tick: average them over the time that a statement takes.
            fading = np.exp(-seconds / np.maximum(times, 1.0))
            self._running = self._running * fading + fluid.call_rates[self._indexes] * times * (1 - fading)
            if (times > SLOW_SECONDS).any():
                self._unreported_seconds += seconds
                if self._unreported_seconds >= REPORT_SECONDS:
                    self.settle()

    def add_lookups(self, cache: CacheSpace, store: Store, lookups: float, warm_share: float) -> None:
        """Add lookups of an interval at one store: each asks for `keys` keys, of which the store has a share."""
        total = self._total(cache.lookup, store)
        if total is not None:
            self._settled = False
            total.calls += lookups
            total.hits += lookups * cache.keys * warm_share
            total.misses += lookups * cache.keys * (1 - warm_share)
            self._bulk_keys[store.key, cache.name] = (
                total.model,
                int(warm_share * cache.space),
                cache.lookup.step.payload,
            )

    def settle(self) -> None:
        """Tell the servers what has been counted since the last time."""
        if self._settled:
            return
        self._settled = True
        self._unreported_seconds = 0.0
        self._report_statements()
        for call, count in zip(self._calls, self._counts, strict=True):
            if count:
                links = [(link.weight, store) for link in call.links if (store := _store(link.callee)) is not None]
                weights = sum(weight for weight, _ in links) or 1.0
                for weight, store in links:
                    total = self._total(call, store)
                    if total is not None:
                        total.calls += float(count) * weight / weights
        self._counts[:] = 0.0
        self._seconds[:] = 0.0
        for total in self._totals.values():
            total.tell()
        for (_, name), (model, keys, size) in self._bulk_keys.items():
            model.hold_traffic(name, keys, size)
        self._bulk_keys.clear()

    def _report_statements(self) -> None:
        fluid = self._fluid
        if fluid is None or not (self._counts.any() or self._reported):
            return
        reports: dict[ServerKey, tuple[Counted, list[BulkStatements]]] = {}
        columns = (self._calls, self._callees, self._counts, self._seconds, np.minimum(self._running, self._most))
        for call, callee, count, seconds, running in zip(*columns, strict=True):
            store = fluid.graph.nodes[callee].server
            if not isinstance(store, Store) or not isinstance(store.model, Counted) or not store.alive:
                continue
            mean = float(fluid.response[callee])
            if not count and running < 1e-3:
                continue
            statements = BulkStatements(
                client_name(call.target.instance.process),
                *_statement_of(call),
                call.step.statement,
                float(count),
                float(seconds / count) if count else mean,
                float(running),
                _share_above(mean, float(fluid.variance[callee])),
            )
            reports.setdefault(store.key, (store.model, []))[1].append(statements)
        for key, model in self._reported.items():
            if key not in reports:
                model.report_statements([])
        for model, statements_of_model in reports.values():
            model.report_statements(statements_of_model)
        self._reported = {key: model for key, (model, _) in reports.items()}

    def _total(self, call: Call, store: Store) -> _Total | None:
        model = store.model
        if not isinstance(model, Counted):
            return None
        verb, database, target = _statement_of(call)
        key = (store.key, verb, target)
        found = self._totals.get(key)
        if found is None:
            found = self._totals[key] = _Total(model, verb, database, target)
        return found


def _statement_of(call: Call) -> tuple[str, str, str]:
    """Return verb, database and target of a call of a store."""
    login = call.target.dependency.login
    database = call.target.instance.settings.fill(login.database) if login is not None else ""
    return call.operation.split(None, 1)[0].lower(), database, call.step.target or call.operation.partition(" ")[2]


def _first_store_node(call: Call) -> int:
    return next(link.callee.index for link in call.links if link.callee is not None and _store(link.callee))


def _most_at_once(call: Call) -> float:
    """Return how many calls the caller can have in progress: one per thread, or one per connection."""
    instance = call.target.instance
    threads = instance.settings.number(instance.program.threads, np.inf) if instance.program.threads else np.inf
    return float(min(threads, call.target.pool))


def _share_above(mean: float, variance: float) -> Callable[[float], float]:
    def share(seconds: float) -> float:
        return float(tail_share(seconds, *shapes_and_scales(mean, variance)))

    return share


def _store(node: object) -> Store | None:
    server = getattr(node, "server", None)
    return server if isinstance(server, Store) else None
