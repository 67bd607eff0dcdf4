"""blackbox-exporter on ingress: HTTP probes of every host of every Ingress, through its controller.

A request takes time, and other programs take part in serving it, so a probe is sent at one scrape and its result
reported at the next. The controller is found by the Service of its chart; without one nothing is probed. A redirect to
HTTPS is followed and needs a valid certificate for the host; its issuer is not checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from srearena.cluster.embedded.clock import Clock, Task
from srearena.cluster.embedded.machine.networking.certificates import TlsIdentity
from srearena.cluster.embedded.machine.networking.http_message import HttpRequest
from srearena.cluster.embedded.machine.networking.reachability import HttpResult
from srearena.cluster.embedded.network.network_client import NetworkClient
from srearena.cluster.embedded.objects import Obj, dig, name_of, namespace_of
from srearena.cluster.embedded.telemetry.collectors.blackbox import EXPORTER, TIMEOUT
from srearena.cluster.embedded.telemetry.collectors.collector import Target
from srearena.cluster.embedded.telemetry.collectors.series_buffer import SeriesBuffer
from srearena.cluster.embedded.telemetry.collectors.target_registry import TargetRegistry
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore
from srearena.cluster.embedded.world import World

INGRESSES = "ingresses.networking.k8s.io"
CONTROLLER = ("ingress-nginx", "ingress-nginx-controller")
PORT, TLS_PORT = 80, 443
_HOST = f"{CONTROLLER[1]}.{CONTROLLER[0]}.svc.cluster.local."
_METRICS = ("probe_success", "probe_duration_seconds", "probe_http_status_code")


@dataclass(frozen=True, slots=True)
class IngressEndpoint:
    namespace: str
    ingress: str
    host: str

    @property
    def instance(self) -> str:
        return f"http://{self.host}/"


class IngressProbeCollector:
    job = "blackbox-http"

    def __init__(self, world: World, facade: NetworkClient, store: MetricStore) -> None:
        self._clock: Clock = world.clock
        self._objects = world.store
        self._facade = facade
        self._buffer = SeriesBuffer(store)
        self._target_registry = TargetRegistry(store)
        self._sent: dict[IngressEndpoint, Task[HttpResult]] = {}
        store.describe(_METRICS[2], "gauge", "HTTP status code of the response; 0 without a response.")

    def scrape(self, now: float) -> None:
        endpoints = set(self._endpoints())
        for endpoint in [endpoint for endpoint in self._sent if endpoint not in endpoints]:
            self._sent.pop(endpoint).cancel()
            self._buffer.drop(endpoint)
            self._target_registry.remove(endpoint.instance)
        for endpoint in sorted(endpoints, key=lambda endpoint: (endpoint.namespace, endpoint.ingress, endpoint.host)):
            task = self._sent.get(endpoint)
            if task is not None:
                self._report(endpoint, task.done.value if task.done.is_set else None, now)
                task.cancel()
            self._sent[endpoint] = self._clock.spawn(self._probe(endpoint))
        self._buffer.write(now)
        self._target_registry.write(now)

    async def _probe(self, endpoint: IngressEndpoint) -> HttpResult:
        """Send a request and follow a redirect to HTTPS."""
        headers = {"Host": endpoint.host, "User-Agent": "Blackbox Exporter/0.27.0"}
        result = await self._facade.http(_HOST, PORT, HttpRequest(target="/", headers=headers), timeout=TIMEOUT)
        location = result.response.header("Location") if result.response is not None else ""
        if not location.startswith(f"https://{endpoint.host}/"):
            return result

        def accepts(identity: TlsIdentity) -> bool:
            return identity.flaw(endpoint.host, self._clock.now, None) is None

        target = location.removeprefix(f"https://{endpoint.host}")
        request = HttpRequest(target=target, headers=headers, tls=True, server_name=endpoint.host, accepts=accepts)
        remaining = max(0.1, TIMEOUT - result.seconds)
        followed = await self._facade.http(_HOST, TLS_PORT, request, timeout=remaining)
        followed.seconds += result.seconds
        return followed

    def targets(self) -> Sequence[Target]:
        return self._target_registry.targets()

    def _endpoints(self) -> Iterator[IngressEndpoint]:
        if not self._objects.count(INGRESSES) or self._objects.get("services", *CONTROLLER) is None:
            return
        for ingress in self._objects.objects(INGRESSES):
            for host in _hosts(ingress):
                yield IngressEndpoint(namespace_of(ingress), name_of(ingress), host)

    def _report(self, endpoint: IngressEndpoint, result: HttpResult | None, now: float) -> None:
        response = result.response if result is not None else None
        code = response.status if response is not None else 0
        seconds = result.seconds if result is not None else TIMEOUT
        values = (float(200 <= code < 300), seconds, code)
        if endpoint not in self._buffer:
            labels = self._labels(endpoint)
            self._buffer.put(endpoint, [{"__name__": name, **labels} for name in _METRICS], values)
            self._target_registry.add(
                endpoint.instance, labels, f"http://{EXPORTER}/probe?module=http_2xx&target={endpoint.instance}"
            )
        self._buffer.set(endpoint, values)
        self._target_registry.record_scrape(endpoint.instance, now, len(_METRICS), seconds)

    def _labels(self, endpoint: IngressEndpoint) -> Mapping[str, str]:
        return {
            "job": self.job,
            "instance": endpoint.instance,
            "namespace": endpoint.namespace,
            "ingress": endpoint.ingress,
        }


def _hosts(ingress: Obj) -> list[str]:
    """Return the hosts of an Ingress, without wildcards."""
    hosts = [rule.get("host") or "" for rule in dig(ingress, "spec", "rules", default=())]
    return sorted({host for host in hosts if host and "*" not in host})
