"""Requests to the API server, and those of each of its clients among the cluster's own programs.

Requests over HTTP are counted by the API, writes of the cluster's programs by their clients. Their informers read from
the store itself here; a real one lists once and renews its watch every five to ten minutes, which is added, and so are
the reads that the API server's own loops repeat. Durations are distributed around medians of an idle server, times the
slowdown of its machine: see `slowdown`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b

from srearena.cluster.embedded.instruments import Fluctuation, Histogram
from srearena.cluster.embedded.machine.machine import Machine
from srearena.cluster.embedded.machine.networking.interface_counters import Exchange
from srearena.cluster.embedded.world import World

RequestKey = tuple[str, ...]
"""Verb, group, version, resource, subresource, scope, code: the labels of `apiserver_request_total`."""
DURATION_BOUNDS = (0.05, 0.1, 1.0, 5.0, 10.0, 30.0, 60.0)
"""Bounds of the server's histogram that kube-prometheus keeps; it drops the others when it scrapes."""
CLIENT_BOUNDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
"""Bounds of client-go's histogram."""
_CERTIFICATE_BOUNDS = (
    *(0.0, 1800.0, 3600.0, 7200.0, 21_600.0, 43_200.0, 86_400.0, 172_800.0, 345_600.0, 604_800.0),
    *(2_592_000.0, 7_776_000.0, 15_552_000.0, 31_104_000.0),
)
"""Bounds of the API server's histogram of certificate lifetimes, in seconds."""
LONG_RUNNING = frozenset(("WATCH", "CONNECT"))
_WRITES = frozenset(("POST", "PUT", "PATCH", "DELETE", "DELETECOLLECTION", "APPLY"))
_MEDIANS = {"GET": 0.0016, "LIST": 0.0048}
_WRITE_MEDIAN = 0.0062
"""Seconds: medians of a kind cluster with etcd on an SSD; a write waits for etcd's fsync."""
_SPREAD = 0.75
_VARIATION = 0.2
"""Share by which durations vary over minutes. Chosen."""
_ROUND_TRIP = 0.0009
"""Seconds that a client waits beside the server's own time: TLS and the way."""
_WATCH_MINIMUM = 300.0
"""Seconds; client-go renews a watch after this long, and up to twice as long."""

_ON_WIRE = Exchange(870.0, 2.0, 1730.0, 3.0)
"""A request over a kept connection at the server: compressed headers, an object of usual size, acknowledgements.
Chosen."""
_SERVER = "kube-apiserver"
_SERVER_READS = (
    ("GET", "endpoints", "resource", 10.0),
    ("GET", "endpointslices.discovery.k8s.io", "resource", 10.0),
    ("LIST", "services", "cluster", 180.0),
)
"""Reads of the API server's own loops, and seconds between two: the endpoints of the Service `kubernetes` are compared
with the leases of the servers, and allocated addresses and node ports with all Services."""


class ClientTraffic:
    """The requests of one program to the API server: the metrics of its client-go."""

    def __init__(self) -> None:
        self.requests: dict[tuple[str, str], int] = {}
        """By method and code."""
        self.durations: dict[str, Histogram] = {}
        """By method."""
        self.changed: dict[tuple[str, str], None] = {}
        """Methods and codes whose numbers changed since they were last written."""

    def add(self, method: str, code: str, number: int, median: float) -> None:
        self.requests[method, code] = self.requests.get((method, code), 0) + number
        self.changed[method, code] = None
        found = self.durations.get(method)
        if found is None:
            found = self.durations[method] = Histogram(CLIENT_BOUNDS)
        found.observe_spread(number, median + _ROUND_TRIP, _SPREAD)


class Informers:
    """The lists and watches of one program; a watch is renewed while the program runs."""

    def __init__(
        self, program: str, running: Callable[[], bool], resources: Callable[[], Iterable[str]], now: float
    ) -> None:
        self._program = program
        self._running = running
        self._resources = resources
        self._due: dict[str, float] = {}
        """By resource: when its watch ends."""
        self._next = now

    @property
    def is_running(self) -> bool:
        return self._running()

    def due(self, now: float) -> Iterator[tuple[str, bool]]:
        """Yield the resources whose watch ended, and whether they are listed for the first time."""
        if now < self._next or not self._running():
            return
        for resource in self._resources():
            due = self._due.get(resource)
            if due is None or due <= now:
                yield resource, due is None
                self._due[resource] = now + self._period(resource)
        self._next = min(self._due.values())

    def __len__(self) -> int:
        """Return the number of watches."""
        return len(self._due)

    def _period(self, resource: str) -> float:
        share = blake2b(f"{self._program}/{resource}".encode(), digest_size=2).digest()
        return _WATCH_MINIMUM * (1 + int.from_bytes(share) / 65536)


class ApiRequests:
    """All requests, brought up to date once per scrape."""

    def __init__(self, world: World, server: Machine) -> None:
        self._world = world
        self.server = server
        self._fluctuation = Fluctuation(f"{server.machine_id}/requests")
        self.totals: dict[RequestKey, int] = {}
        self.durations: dict[RequestKey, Histogram] = {}
        """By everything but the code."""
        self.changed: set[RequestKey] = set()
        """Totals that changed since the server's metrics were last written."""
        self.certificates = Histogram(_CERTIFICATE_BOUNDS)
        """Remaining lifetime of the client certificates that requests came with."""
        self._clients: dict[str, ClientTraffic] = {}
        self._seen: dict[str, dict[tuple[object, ...], int]] = {}
        self._keys: dict[tuple[str, str, str, int], RequestKey] = {}
        self._informers: dict[str, Informers] = {}
        self._updated_at = world.clock.now
        self._began = world.clock.now
        self._server_reads = [0] * len(_SERVER_READS)
        self._remote: dict[str, Machine] = {}
        """The machines of programs on other nodes than the server's."""

    def register(
        self, program: str, machine: Machine, running: Callable[[], bool], resources: Callable[[], Iterable[str]]
    ) -> None:
        """Add a program with informers of these resources, which are renewed while it runs."""
        if machine is not self.server:
            self._remote[program] = machine
        self._informers[program] = Informers(program, running, resources, self._world.clock.now)

    def of(self, program: str) -> ClientTraffic:
        found = self._clients.get(program)
        if found is None:
            found = self._clients[program] = ClientTraffic()
        return found

    def watches(self, program: str) -> int:
        """Return how many watches a program has open."""
        return len(self._informers[program])

    def forget(self, program: str) -> None:
        """A program was started anew: its counters begin at zero."""
        self._clients.pop(program, None)

    def forget_server(self) -> None:
        self.totals.clear()
        self.durations.clear()
        self.changed.clear()

    def slowdown(self) -> tuple[float, float]:
        """Return by how much reads and writes are slower than on an idle machine with a healthy disk."""
        busy = max(1.0, self.server.survey()[1] / self.server.cores) if self.server.contended else 1.0
        # In steps, since the shares of a distribution's buckets are cached by its median.
        busy *= 1 + _VARIATION * round(4 * self._fluctuation.at(self._world.clock.now)) / 4
        return busy, busy * self.server.disk_factor

    def update(self, now: float) -> None:
        if now == self._updated_at:
            return
        self._updated_at = now
        reads, writes = self.slowdown()
        seen = self._seen.setdefault("", {})
        for key, number in self._world.api_requests.items():
            more = number - seen.get(key, 0)
            if more:
                seen[key] = number
                self._answered(key, more, reads, writes)
        year = 365 * 86_400.0 - (now - self._began)
        for program, counts in self._world.component_requests.items():
            seen = self._seen.setdefault(program, {})
            client = self.of(program)
            for request, number in counts.items():
                more = number - seen.get(request, 0)
                if more:
                    seen[request] = number
                    key = self._key(request)
                    client.add(request[0], key[-1], more, self._answered(key, more, reads, writes))
                    self._carry(program, more)
                    self.certificates.observe(year, more)
        for program, informers in self._informers.items():
            for resource, first in informers.due(now):
                for verb in ("LIST", "WATCH") if first else ("WATCH",):
                    median = self._answered(self._cluster_key(verb, resource), 1, reads, reads)
                    self.of(program).add("GET", "200", 1, median)
                    self._carry(program, 1)
        self._repeat_reads(now, reads)

    def _carry(self, program: str, number: int) -> None:
        """Count the bytes of requests on the interfaces of the two machines; there are none within one machine."""
        machine = self._remote.get(program)
        if machine is not None:
            requests = _ON_WIRE.times(number)
            self.server.namespace.carried.add_exchange(requests)
            machine.namespace.carried.add_exchange(requests.reversed)

    def _repeat_reads(self, now: float, slowdown: float) -> None:
        """Count the reads of the API server's own loops; those of the time in which it did not run are left out."""
        running = self._informers[_SERVER].is_running
        for place, (verb, resource, scope, period) in enumerate(_SERVER_READS):
            number = int((now - self._began) / period)
            more, self._server_reads[place] = number - self._server_reads[place], number
            if more and running:
                key = (verb, *self._names(resource), "", scope, "200")
                self.of(_SERVER).add("GET", "200", more, self._answered(key, more, slowdown, slowdown))

    def _answered(self, key: RequestKey, number: int, reads: float, writes: float) -> float:
        """Count requests at the server; return their median duration."""
        verb = key[0]
        median = _WRITE_MEDIAN * writes if verb in _WRITES else _MEDIANS.get(verb, _MEDIANS["GET"]) * reads
        self.totals[key] = self.totals.get(key, 0) + number
        self.changed.add(key)
        if verb not in LONG_RUNNING:
            found = self.durations.get(key[:-1])
            if found is None:
                found = self.durations[key[:-1]] = Histogram(DURATION_BOUNDS)
            found.observe_spread(number, median, _SPREAD)
        return median

    def _key(self, request: tuple[str, str, str, int]) -> RequestKey:
        found = self._keys.get(request)
        if found is None:
            method, resource, subresource, code = request
            found = self._keys[request] = (method, *self._names(resource), subresource, "resource", str(code))
        return found

    def _cluster_key(self, verb: str, resource: str) -> RequestKey:
        return (verb, *self._names(resource), "", "cluster", "200")

    def _names(self, resource: str) -> tuple[str, str, str]:
        """Return group, version and plural; the version of a custom resource that is gone is not known any more."""
        row = self._world.registry.resources.preferred(resource)
        if row is not None:
            return row.group, row.version, row.plural
        plural, _, group = resource.partition(".")
        return group, "", plural
