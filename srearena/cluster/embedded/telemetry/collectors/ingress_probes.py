"""blackbox-exporter on the front door: does every host of every Ingress answer, asked through its controller?

A request takes time, and other programs take part in answering it, so a probe is sent at one scrape and its result
told at the next. The controller is found by the Service that its chart makes; where there is none, nothing is probed.
Who is sent on to HTTPS goes there, and wants a certificate in date that is made out to the host, whoever signed it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from srearena.cluster.embedded.clock import Clock, Task
from srearena.cluster.embedded.machine.networking.certificates import TlsIdentity
from srearena.cluster.embedded.machine.networking.http_message import HttpRequest
from srearena.cluster.embedded.machine.networking.reachability import HttpResult
from srearena.cluster.embedded.network.facade import StationNetwork
from srearena.cluster.embedded.objects import Obj, dig, name_of, namespace_of
from srearena.cluster.embedded.telemetry.collectors.blackbox import EXPORTER, TIMEOUT
from srearena.cluster.embedded.telemetry.collectors.book import Book
from srearena.cluster.embedded.telemetry.collectors.collector import Target
from srearena.cluster.embedded.telemetry.collectors.roster import Roster
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore
from srearena.cluster.embedded.world import World

INGRESSES = "ingresses.networking.k8s.io"
CONTROLLER = ("ingress-nginx", "ingress-nginx-controller")
PORT, TLS_PORT = 80, 443
_HOST = f"{CONTROLLER[1]}.{CONTROLLER[0]}.svc.cluster.local."
_METRICS = ("probe_success", "probe_duration_seconds", "probe_http_status_code")


@dataclass(frozen=True, slots=True)
class Door:
    namespace: str
    ingress: str
    host: str

    @property
    def instance(self) -> str:
        return f"http://{self.host}/"


class IngressProbeCollector:
    job = "blackbox-http"

    def __init__(self, world: World, facade: StationNetwork, store: MetricStore) -> None:
        self._clock: Clock = world.clock
        self._objects = world.store
        self._facade = facade
        self._book = Book(store)
        self._roster = Roster(store)
        self._sent: dict[Door, Task[HttpResult]] = {}
        store.describe(_METRICS[2], "gauge", "The code of the answer; 0 where there was none.")

    def scrape(self, now: float) -> None:
        doors = set(self._doors())
        for door in [door for door in self._sent if door not in doors]:
            self._sent.pop(door).cancel()
            self._book.drop(door)
            self._roster.remove(door.instance)
        for door in sorted(doors, key=lambda door: (door.namespace, door.ingress, door.host)):
            task = self._sent.get(door)
            if task is not None:
                self._tell(door, task.done.value if task.done.is_set else None, now)
                task.cancel()
            self._sent[door] = self._clock.spawn(self._asked(door))
        self._book.write(now)
        self._roster.write(now)

    async def _asked(self, door: Door) -> HttpResult:
        """The answer to a request, followed to HTTPS where it is sent there."""
        headers = {"Host": door.host, "User-Agent": "Blackbox Exporter/0.27.0"}
        result = await self._facade.http(_HOST, PORT, HttpRequest(target="/", headers=headers), timeout=TIMEOUT)
        onward = result.response.header("Location") if result.response is not None else ""
        if not onward.startswith(f"https://{door.host}/"):
            return result

        def accepts(identity: TlsIdentity) -> bool:
            return identity.flaw(door.host, self._clock.now, None) is None

        target = onward.removeprefix(f"https://{door.host}")
        request = HttpRequest(target=target, headers=headers, tls=True, server_name=door.host, accepts=accepts)
        left = max(0.1, TIMEOUT - result.seconds)
        followed = await self._facade.http(_HOST, TLS_PORT, request, timeout=left)
        followed.seconds += result.seconds
        return followed

    def targets(self) -> Sequence[Target]:
        return self._roster.targets()

    def _doors(self) -> Iterator[Door]:
        if not self._objects.count(INGRESSES) or self._objects.get("services", *CONTROLLER) is None:
            return
        for ingress in self._objects.objects(INGRESSES):
            for host in _hosts(ingress):
                yield Door(namespace_of(ingress), name_of(ingress), host)

    def _tell(self, door: Door, result: HttpResult | None, now: float) -> None:
        response = result.response if result is not None else None
        code = response.status if response is not None else 0
        seconds = result.seconds if result is not None else TIMEOUT
        values = (float(200 <= code < 300), seconds, code)
        if door not in self._book:
            labels = self._labels(door)
            self._book.put(door, [{"__name__": name, **labels} for name in _METRICS], values)
            self._roster.add(door.instance, labels, f"http://{EXPORTER}/probe?module=http_2xx&target={door.instance}")
        self._book.set(door, values)
        self._roster.note(door.instance, now, len(_METRICS), seconds)

    def _labels(self, door: Door) -> Mapping[str, str]:
        return {"job": self.job, "instance": door.instance, "namespace": door.namespace, "ingress": door.ingress}


def _hosts(ingress: Obj) -> list[str]:
    """The hosts an Ingress has rules for; a wildcard is nobody's name."""
    hosts = [rule.get("host") or "" for rule in dig(ingress, "spec", "rules", default=())]
    return sorted({host for host in hosts if host and "*" not in host})
