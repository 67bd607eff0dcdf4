"""blackbox-exporter: TCP probes of every Service of the applications.

Each probe resolves the Service's name and opens one connection from inside the cluster, as the `tcp_connect` module
does. The endpoint of a probe is random, so a Service with one bad endpoint of two fails half of its probes. A Service
is probed on its first TCP port: in many charts nothing listens on the others. Namespaces of the cluster itself are not
probed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from random import Random

from srearena.cluster.embedded.instruments import Fluctuation
from srearena.cluster.embedded.machine.networking.reachability import Outcome
from srearena.cluster.embedded.network.dns.coredns import CoreDns
from srearena.cluster.embedded.network.forecast import Forecast, Lookup
from srearena.cluster.embedded.objects import Obj, name_of, namespace_of
from srearena.cluster.embedded.store import Change
from srearena.cluster.embedded.telemetry.collectors.collector import Target
from srearena.cluster.embedded.telemetry.collectors.scraper import Scraper
from srearena.cluster.embedded.telemetry.collectors.series_buffer import SeriesBuffer
from srearena.cluster.embedded.telemetry.collectors.target_registry import TargetRegistry
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore
from srearena.cluster.embedded.world import World

EXPORTER = "blackbox-exporter:9115"
TIMEOUT = 5.0
"""Seconds; the exporter's usual module timeout."""
_SYSTEM = frozenset(("kube-system", "kube-public", "kube-node-lease"))
_SYN_TRIES = 3
"""SYN packets sent within the timeout: at 0, 1 and 3 seconds, as Linux retransmits."""
_METRICS = {
    "probe_success": "1 where the connection was opened.",
    "probe_duration_seconds": "How long the probe took.",
    "probe_dns_lookup_time_seconds": "How long resolving the name took.",
}

_WAIT_SECONDS = 0.0003
"""Seconds that a probe waits for processors, on average, on machines that are not contended. Chosen."""

_Result = tuple[float, float, float]
"""Success, duration, and that of the DNS lookup."""
_Port = tuple[str, int]
"""A name and a port."""


class BlackboxCollector:
    job = "blackbox"

    def __init__(self, world: World, scraper: Scraper, store: MetricStore) -> None:
        self._objects = world.store
        self._scraper = scraper
        self._random = world.randomness.stream("blackbox")
        self._buffer = SeriesBuffer(store)
        self._target_registry = TargetRegistry(store)
        self._services: dict[tuple[str, str], list[_Port]] = {}
        """Probed ports, by namespace and name of the Service."""
        self._changed: dict[tuple[str, str], None] = {}
        self._deterministic: dict[_Port, tuple[Forecast, _Result]] = {}
        """Forecasts with one possible result, which need no new probe, and the result."""
        self._waits: dict[_Port, Fluctuation] = {}
        self._rounds = 0
        for name, help in _METRICS.items():
            store.describe(name, "gauge", help)
        for service in self._objects.objects("services"):
            self._changed[namespace_of(service), name_of(service)] = None
        self._objects.subscribe(self._on_change, "services")

    def _on_change(self, change: Change) -> None:
        self._changed[namespace_of(change.new), name_of(change.new)] = None

    def scrape(self, now: float) -> None:
        changed, self._changed = self._changed, {}
        for service_key in changed:
            self._update(service_key)
        self._rounds += 1
        for ports in self._services.values():
            for port in ports:
                forecast = self._scraper.forecast(*port)
                known = self._deterministic.get(port)
                if known is not None and known[0] is forecast:
                    result = known[1]
                else:
                    result = _probe(forecast, self._random)
                    if _is_deterministic(forecast):
                        self._deterministic[port] = (forecast, result)
                _count_lookup(forecast.lookup, self._rounds)
                success, seconds, lookup = result
                if success:
                    # The round trip is that of the links; programs wait for a processor on top of it.
                    waited = _WAIT_SECONDS * (1 + self._waits[port].at(now)) ** 2
                    seconds, lookup = seconds + waited, lookup + 0.4 * waited
                self._buffer.set(port, (success, seconds, lookup))
                self._target_registry.record_scrape(_instance(port), now, len(_METRICS), seconds)
        self._buffer.write(now)
        self._target_registry.write(now)

    def targets(self) -> Sequence[Target]:
        return self._target_registry.targets()

    def _update(self, service_key: tuple[str, str]) -> None:
        service = self._objects.get("services", *service_key)
        ports = list(_ports(service)) if service is not None else []
        before = self._services.pop(service_key, [])
        for port in before:
            if port not in ports:
                self._buffer.drop(port)
                self._target_registry.remove(_instance(port))
                self._deterministic.pop(port, None)
                self._waits.pop(port, None)
        for port in ports:
            if port not in before:
                labels = self._labels(service_key, port)
                self._waits[port] = Fluctuation(_instance(port))
                self._buffer.put(port, [{"__name__": name, **labels} for name in _METRICS], [0.0] * len(_METRICS))
                url = f"http://{EXPORTER}/probe?module=tcp_connect&target={_instance(port)}"
                self._target_registry.add(_instance(port), labels, url)
        if ports:
            self._services[service_key] = ports

    def _labels(self, service_key: tuple[str, str], port: _Port) -> Mapping[str, str]:
        return {"job": self.job, "instance": _instance(port), "namespace": service_key[0], "service": service_key[1]}


@lru_cache(maxsize=4096)
def _instance(port: _Port) -> str:
    return f"{port[0].rstrip('.')}:{port[1]}"


def _ports(service: Obj) -> Iterator[_Port]:
    """Yield the probed port of a Service, with its fully qualified name."""
    namespace, name, spec = namespace_of(service), name_of(service), service["spec"]
    if namespace in _SYSTEM or (namespace, name) == ("default", "kubernetes") or spec.get("type") == "ExternalName":
        return
    if not spec.get("selector"):
        return
    for port in spec.get("ports") or ():
        if (port.get("protocol") or "TCP") == "TCP":
            yield f"{name}.{namespace}.svc.cluster.local.", int(port["port"])
            return


def _is_deterministic(forecast: Forecast) -> bool:
    return len(forecast.paths) < 2 and not any(path.lost for path in forecast.paths)


def _probe(forecast: Forecast, random: Random) -> _Result:
    """Return success of one connection, its duration, and that of the DNS lookup."""
    lookup = forecast.lookup
    if not forecast.paths:
        return 0.0, min(TIMEOUT, lookup.seconds), min(TIMEOUT, lookup.seconds)
    path = forecast.paths[0] if len(forecast.paths) == 1 else random.choice(forecast.paths)
    if path.outcome is Outcome.TIMEOUT:
        return 0.0, TIMEOUT, lookup.seconds
    seconds = lookup.seconds + path.round_trip + path.forward.delay + path.reverse.delay
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


def _count_lookup(lookup: Lookup, number: int) -> None:
    """Count one more lookup at the name servers, which take turns: a question for each family of addresses."""
    for replies in lookup.replies:
        listener, kind, rcode = replies[number % len(replies)]
        if isinstance(listener.server, CoreDns):
            listener.server.requests[kind, rcode] += 1
            listener.server.requests["AAAA", rcode] += 1
