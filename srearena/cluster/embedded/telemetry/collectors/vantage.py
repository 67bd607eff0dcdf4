"""Where Prometheus and its exporters look from: a place on the cluster's network like that of any pod.

It stands on the control plane's node but is no pod of the API: nobody can delete it, and no policy holds it back from
asking. Links that are cut, nodes that are down, policies of those it asks and a broken DNS keep it from seeing, as
they would keep a monitoring stack in the cluster.
"""

from __future__ import annotations

from dataclasses import dataclass

from srearena.cluster.embedded.machine.networking.reachability import Outcome
from srearena.cluster.embedded.machine.networking.sockets import NetworkNamespace
from srearena.cluster.embedded.network.forecast import Forecast
from srearena.cluster.embedded.network.network import Network
from srearena.cluster.embedded.network.routes import Path
from srearena.cluster.embedded.objects import Obj

ADDRESS = "10.243.0.10"
"""Outside of every node's pod range."""
NAMESPACE = "monitoring"
TIMEOUT = 10.0
"""After how long an unanswered scrape is given up."""
_REFUSED = "connect: connection refused"
_ERRORS = {
    Outcome.TIMEOUT: "context deadline exceeded",
    Outcome.NO_ROUTE: "connect: no route to host",
    Outcome.UNREACHABLE: "connect: network is unreachable",
}


@dataclass(frozen=True, slots=True)
class Sight:
    """Whether an endpoint can be scraped now: `error` is empty, or what Prometheus says about it."""

    seconds: float
    error: str = ""

    @property
    def ok(self) -> bool:
        return not self.error


class Vantage:
    def __init__(self, network: Network, node: str) -> None:
        self._network = network
        pod: Obj = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "prometheus-0", "namespace": NAMESPACE, "uid": "prometheus"},
            "spec": {"nodeName": node, "dnsPolicy": "ClusterFirst", "containers": []},
        }
        sockets = NetworkNamespace(network.clock, (ADDRESS,))
        self.station = network.attach_pod(pod, sockets).station

    @property
    def epoch(self) -> int:
        """Moves whenever something may be seen otherwise."""
        return self._network.epoch

    def of_endpoint(self, address: str, port: int) -> Sight:
        """An endpoint that a simulated process has to listen at."""
        path = self._path(address, port)
        if path.outcome is Outcome.REFUSED:
            return Sight(path.round_trip, f"dial tcp {address}:{port}: {_REFUSED}")
        return self._sight(path, address, port)

    def of_agent(self, address: str, port: int, *, runs: bool) -> Sight:
        """An agent of a node that the simulation has no socket for; `runs` says whether its process is there."""
        path = self._path(address, port)
        if path.outcome in (Outcome.REFUSED, Outcome.CONNECTED) and not runs:
            return Sight(path.round_trip, f"dial tcp {address}:{port}: {_REFUSED}")
        return self._sight(path, address, port)

    def _path(self, address: str, port: int) -> Path:
        return self._network.fabric.routes.find(self.station, address, port).paths[0]

    @staticmethod
    def _sight(path: Path, address: str, port: int) -> Sight:
        if path.outcome in _ERRORS:
            text = _ERRORS[path.outcome]
            prefix = "" if path.outcome is Outcome.TIMEOUT else f"dial tcp {address}:{port}: "
            return Sight(min(TIMEOUT, path.round_trip or TIMEOUT), f"{prefix}{text}")
        # A handshake, then the request and its answer.
        seconds = 2 * (path.round_trip + path.there.delay + path.back.delay)
        if path.lost >= 1 or seconds >= TIMEOUT:
            return Sight(TIMEOUT, _ERRORS[Outcome.TIMEOUT])
        return Sight(seconds)

    def forecast(self, host: str, port: int) -> Forecast:
        """What becomes of connections to a name and port."""
        return self._network.forecast(self.station, host, port)
