"""blackbox-exporter: may a connection be opened to every Service of the applications?

Each probe resolves the Service's name and opens one connection, from inside the cluster, as its `tcp_connect` module
does. Which endpoint a probe happens to meet is drawn anew each time, so a Service with one bad endpoint of two fails
half of its probes. A Service is probed on its first TCP port: the further ones of many charts lead to nobody, and
nobody minds. Namespaces of the cluster itself are not probed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from random import Random

from srearena.cluster.embedded.machine.networking.reachability import Outcome
from srearena.cluster.embedded.network.forecast import Forecast
from srearena.cluster.embedded.objects import Obj, name_of, namespace_of
from srearena.cluster.embedded.store import Change
from srearena.cluster.embedded.telemetry.collectors.book import Book
from srearena.cluster.embedded.telemetry.collectors.collector import Target
from srearena.cluster.embedded.telemetry.collectors.roster import Roster
from srearena.cluster.embedded.telemetry.collectors.vantage import Vantage
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore
from srearena.cluster.embedded.world import World

EXPORTER = "blackbox-exporter:9115"
TIMEOUT = 5.0
_SYSTEM = frozenset(("kube-system", "kube-public", "kube-node-lease"))
_SYN_TRIES = 3
"""First packets that are sent within the timeout."""
_METRICS = {
    "probe_success": "1 where the connection was opened.",
    "probe_duration_seconds": "How long the probe took.",
    "probe_dns_lookup_time_seconds": "How long resolving the name took.",
}

_Port = tuple[str, int]
"""A name and a port."""


class BlackboxCollector:
    job = "blackbox"

    def __init__(self, world: World, vantage: Vantage, store: MetricStore) -> None:
        self._objects = world.store
        self._vantage = vantage
        self._random = world.randomness.stream("blackbox")
        self._book = Book(store)
        self._roster = Roster(store)
        self._known: dict[tuple[str, str], list[_Port]] = {}
        """By namespace and name of the Service."""
        self._changed: dict[tuple[str, str], None] = {}
        self._certain: dict[_Port, Forecast] = {}
        """Forecasts whose result is known already, since chance has no part in it."""
        self._seconds: dict[_Port, float] = {}
        for name, help in _METRICS.items():
            store.describe(name, "gauge", help)
        for service in self._objects.objects("services"):
            self._changed[namespace_of(service), name_of(service)] = None
        self._objects.subscribe(self._hear, "services")

    def _hear(self, change: Change) -> None:
        self._changed[namespace_of(change.new), name_of(change.new)] = None

    def scrape(self, now: float) -> None:
        changed, self._changed = self._changed, {}
        for place in changed:
            self._update(place)
        for ports in self._known.values():
            for port in ports:
                forecast = self._vantage.forecast(*port)
                if self._certain.get(port) is not forecast:
                    result = _probed(forecast, self._random)
                    self._seconds[port] = result[1]
                    self._book.set(port, result)
                    if _is_certain(forecast):
                        self._certain[port] = forecast
                self._roster.note(_instance(port), now, len(_METRICS), self._seconds[port])
        self._book.write(now)
        self._roster.write(now)

    def targets(self) -> Sequence[Target]:
        return self._roster.targets()

    def _update(self, place: tuple[str, str]) -> None:
        service = self._objects.get("services", *place)
        wanted = list(_ports(service)) if service is not None else []
        before = self._known.pop(place, [])
        for port in before:
            if port not in wanted:
                self._book.drop(port)
                self._roster.remove(_instance(port))
                self._certain.pop(port, None)
        for port in wanted:
            if port not in before:
                labels = self._labels(place, port)
                self._book.put(port, [{"__name__": name, **labels} for name in _METRICS], [0.0] * len(_METRICS))
                url = f"http://{EXPORTER}/probe?module=tcp_connect&target={_instance(port)}"
                self._roster.add(_instance(port), labels, url)
        if wanted:
            self._known[place] = wanted

    def _labels(self, place: tuple[str, str], port: _Port) -> Mapping[str, str]:
        return {"job": self.job, "instance": _instance(port), "namespace": place[0], "service": place[1]}


@lru_cache(maxsize=4096)
def _instance(port: _Port) -> str:
    return f"{port[0].rstrip('.')}:{port[1]}"


def _ports(service: Obj) -> Iterator[_Port]:
    """What is probed of a Service, by a name that needs no search list."""
    namespace, name, spec = namespace_of(service), name_of(service), service["spec"]
    if namespace in _SYSTEM or (namespace, name) == ("default", "kubernetes") or spec.get("type") == "ExternalName":
        return
    if not spec.get("selector"):
        return
    for port in spec.get("ports") or ():
        if (port.get("protocol") or "TCP") == "TCP":
            yield f"{name}.{namespace}.svc.cluster.local.", int(port["port"])
            return


def _is_certain(forecast: Forecast) -> bool:
    return len(forecast.paths) < 2 and not any(path.lost for path in forecast.paths)


def _probed(forecast: Forecast, random: Random) -> tuple[float, float, float]:
    """Whether one connection would be opened, how long that takes, and how long the name took."""
    lookup = forecast.lookup
    if not forecast.paths:
        return 0.0, min(TIMEOUT, lookup.seconds), min(TIMEOUT, lookup.seconds)
    path = forecast.paths[0] if len(forecast.paths) == 1 else random.choice(forecast.paths)
    if path.outcome is Outcome.TIMEOUT:
        return 0.0, TIMEOUT, lookup.seconds
    seconds = lookup.seconds + path.round_trip + path.there.delay + path.back.delay
    lost = path.lost
    if lost:
        waited = 0.0
        for attempt in range(_SYN_TRIES):
            if random.random() >= lost:
                break
            waited += 2.0**attempt
        else:
            return 0.0, TIMEOUT, lookup.seconds
        seconds += waited
    if seconds >= TIMEOUT:
        return 0.0, TIMEOUT, min(TIMEOUT, lookup.seconds)
    return float(path.outcome is Outcome.CONNECTED), seconds, lookup.seconds
