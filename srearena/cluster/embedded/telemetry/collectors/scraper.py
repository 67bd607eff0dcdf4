"""The network position of Prometheus and its exporters: an address on the cluster's network like that of a pod.

It is on the control plane's node but is no pod of the API: it cannot be deleted, and no policy restricts its egress.
Cut links, nodes that are down, ingress policies of targets and a broken DNS affect it as they would affect a
monitoring stack in the cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from srearena.cluster.embedded.machine.networking.interface_counters import SEGMENT, Exchange
from srearena.cluster.embedded.machine.networking.reachability import Outcome
from srearena.cluster.embedded.machine.networking.sockets import NetworkNamespace
from srearena.cluster.embedded.network.forecast import Forecast
from srearena.cluster.embedded.network.network import Network
from srearena.cluster.embedded.network.routes import Path, Route
from srearena.cluster.embedded.objects import Obj

ADDRESS = "10.243.0.10"
"""Outside of every node's pod range."""
NAMESPACE = "monitoring"
TIMEOUT = 10.0
"""Scrape timeout in seconds: the default of Prometheus."""
_REFUSED = "connect: connection refused"
_NONE: frozenset[Outcome] = frozenset()
_CLOSED = frozenset((Outcome.REFUSED,))
_STOPPED = frozenset((Outcome.REFUSED, Outcome.CONNECTED))
_ERRORS = {
    Outcome.TIMEOUT: "context deadline exceeded",
    Outcome.NO_ROUTE: "connect: no route to host",
    Outcome.UNREACHABLE: "connect: network is unreachable",
}


_REQUEST = Exchange(389.0, 3.0, 132.0, 2.0)
"""A scrape over a kept connection at its target: Prometheus' headers and acknowledgements."""
_SAMPLE_BYTES = 13.0
"""Of one sample in the compressed text format: what gzip leaves of its hundred bytes."""
_FULL_PACKET = 1448.0


@lru_cache(maxsize=4096)
def scrape_exchange(samples: int) -> Exchange:
    """What one scrape of so many samples is on the interface of its target."""
    size = samples * _SAMPLE_BYTES
    packets = 1 + size // _FULL_PACKET
    return Exchange(
        _REQUEST.received_bytes + SEGMENT * packets / 2,
        _REQUEST.received_packets + packets / 2,
        _REQUEST.sent_bytes + size + SEGMENT * packets,
        _REQUEST.sent_packets + packets,
    )


@dataclass(frozen=True, slots=True)
class ReachabilityCheck:
    """Result of a reachability check: `error` is empty, or the error Prometheus would report."""

    seconds: float
    error: str = ""

    @property
    def ok(self) -> bool:
        return not self.error


class Scraper:
    def __init__(self, network: Network, node: str) -> None:
        self._network = network
        pod: Obj = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "prometheus-0", "namespace": NAMESPACE, "uid": "prometheus"},
            "spec": {"nodeName": node, "dnsPolicy": "ClusterFirst", "containers": []},
        }
        sockets = NetworkNamespace(network.clock, (ADDRESS,))
        self.host = network.attach_pod(pod, sockets).host
        self._checks: dict[tuple[str, int, frozenset[Outcome]], tuple[Route, ReachabilityCheck]] = {}
        """By address, port and the outcomes that mean refusal: the route at the last check, and the result."""

    @property
    def epoch(self) -> int:
        """Changes whenever reachability may have changed."""
        return self._network.epoch

    def check_endpoint(self, address: str, port: int) -> ReachabilityCheck:
        """Check an endpoint at which a simulated process must listen."""
        return self._checked(address, port, _CLOSED)

    def check_agent(self, address: str, port: int, *, runs: bool) -> ReachabilityCheck:
        """Check an agent of a node without a simulated socket; `runs` says whether its process runs."""
        return self._checked(address, port, _NONE if runs else _STOPPED)

    def _checked(self, address: str, port: int, refused: frozenset[Outcome]) -> ReachabilityCheck:
        route = self._network.fabric.routes.find(self.host, address, port)
        known = self._checks.get((address, port, refused))
        if known is not None and known[0] is route:
            return known[1]
        path = route.paths[0]
        if path.outcome in refused:
            check = ReachabilityCheck(path.round_trip, f"dial tcp {address}:{port}: {_REFUSED}")
        else:
            check = self._check(path, address, port)
        self._checks[address, port, refused] = (route, check)
        return check

    @staticmethod
    def _check(path: Path, address: str, port: int) -> ReachabilityCheck:
        if path.outcome in _ERRORS:
            text = _ERRORS[path.outcome]
            prefix = "" if path.outcome is Outcome.TIMEOUT else f"dial tcp {address}:{port}: "
            return ReachabilityCheck(min(TIMEOUT, path.round_trip or TIMEOUT), f"{prefix}{text}")
        # Two round trips: the TCP handshake, then request and response.
        seconds = 2 * (path.round_trip + path.forward.delay + path.reverse.delay)
        if path.lost >= 1 or seconds >= TIMEOUT:
            return ReachabilityCheck(TIMEOUT, _ERRORS[Outcome.TIMEOUT])
        return ReachabilityCheck(seconds)

    def forecast(self, host: str, port: int) -> Forecast:
        """Return the forecast for connections to a name and port."""
        return self._network.forecast(self.host, host, port)
