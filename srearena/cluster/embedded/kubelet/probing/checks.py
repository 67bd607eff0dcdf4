"""Probe handlers (http, tcp, grpc, exec) and the kubelet's messages for their failures.

`ask` returns a result at once where that is possible; where it returns None, `wait` takes virtual time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar
from urllib.parse import urljoin, urlsplit

from srearena.cluster.embedded.clock import Unfinished, begin
from srearena.cluster.embedded.durations import format_duration
from srearena.cluster.embedded.kubelet.probing.node_client import dial_error, find_listener, node_http
from srearena.cluster.embedded.kubelet.probing.ports import port_number
from srearena.cluster.embedded.machine.containers.container import RuntimeFailure
from srearena.cluster.embedded.machine.containers.runtime import ContainerRecord
from srearena.cluster.embedded.machine.files.streams import Capture
from srearena.cluster.embedded.machine.networking.http_message import HttpRequest, HttpResponse, header_of
from srearena.cluster.embedded.machine.networking.interface_counters import Exchange
from srearena.cluster.embedded.machine.networking.reachability import GrpcHealth, GrpcResult, HttpResult, Outcome
from srearena.cluster.embedded.machine.networking.sockets import Listener, SocketOwner
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.objects import Obj

if TYPE_CHECKING:
    from srearena.cluster.embedded.kubelet.pods.worker import PodWorker

_log = logging.getLogger(__name__)
T = TypeVar("T")
Answer = tuple[bool | None, str]
"""Whether the probe succeeded, and the event message after the probe's name, if any.

None means that the probe could not run: it is reported, and counts neither as success nor as failure.
"""

MAX_OUTPUT = 10 * 1024
PATIENCE = 0.02
"""Responses within this time count as immediate."""
_GOOD: Answer = (True, "")
_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_MOST_REDIRECTS = 10


def _failed(text: str) -> Answer:
    return False, f"probe failed: {text}"


def _errored(text: str) -> Answer:
    return None, f"probe errored and resulted in unknown state: {text}"


def _no_port(name: Any) -> Answer:
    """The error for a port name that the container does not declare."""
    return _errored(f'strconv.Atoi: parsing "{name}": invalid syntax')


class Check:
    traffic: ClassVar[Exchange | None] = None
    """What one probe is on the interface of its pod."""

    def __init__(self, spec: Obj, container: Obj) -> None:
        self.timeout = float(spec.get("timeoutSeconds") or 1)

    def ask(self, worker: PodWorker, record: ContainerRecord) -> Answer | None:
        return None

    async def wait(self, worker: PodWorker, record: ContainerRecord) -> Answer:
        return _GOOD


class HttpCheck(Check):
    traffic = Exchange.of_connection(142, 214)  # the kubelet's headers; a small page

    def __init__(self, spec: Obj, container: Obj) -> None:
        super().__init__(spec, container)
        action = spec["httpGet"]
        self._host = action.get("host") or ""
        self._port = port_number(container, action.get("port"))
        self._port_text = action.get("port")
        self._tls = action.get("scheme") == "HTTPS"
        path = action.get("path") or "/"
        self._path = path if path.startswith("/") else f"/{path}"
        self._patience = min(PATIENCE, self.timeout)
        self._listener: Listener | None = None
        """The listener of the last response; reused while it is open."""
        self._request = HttpRequest()
        self._again: Callable[[], bool] | None = None
        """Repeats the last request, where that succeeded."""
        self._begun: tuple[Listener, Unfinished[HttpResponse]] | None = None
        self._redirected: HttpResponse | None = None
        """A redirect response."""
        self._headers = {"User-Agent": "kube-probe/1.34", "Accept": "*/*", "Connection": "close"}
        self._headers.update({row["name"]: row["value"] for row in action.get("httpHeaders") or ()})

    def ask(self, worker: PodWorker, record: ContainerRecord) -> Answer | None:
        listener = self._listener
        if listener is None or not listener.open:
            if self._port is None:
                return _no_port(self._port_text)
            host = self._address(worker)
            outcome, listener = find_listener(worker.kubelet.machine, host, self._port)
            if listener is None:
                return self._judged(HttpResult(outcome), host, worker)
            self._listener, self._request, self._again = listener, self._new_request(worker, host), None
        handler, owner = listener.http, listener.owner
        again, self._again = self._again, None
        if handler is None or (listener.tls is not None) != self._tls or not _takes(owner):
            return None
        if again is not None and again():
            self._again = again
            owner.give_descriptor_back()
            return _GOOD
        listener.accepted += 1
        try:
            answer = begin(handler(self._request), self._patience)
        except Exception as error:
            # The server crashed while handling the request; the client sees a connection reset.
            if not isinstance(error, OSError):
                _log.exception("a probe's request to %s failed", listener.owner.name)
            answer = None
        if isinstance(answer, Unfinished):
            self._begun = (listener, answer)
            return None
        listener.leave()
        if answer is None:
            return self._judged(HttpResult(Outcome.RESET, connected=True), self._address(worker), worker)
        if answer.status in _REDIRECTS:
            self._redirected = answer
            return None
        verdict = _verdict(answer)
        self._again = answer.again if verdict is _GOOD else None
        return verdict

    def _address(self, worker: PodWorker) -> str:
        assert worker.sandbox is not None
        return self._host or worker.sandbox.address

    def _url(self, host: str) -> str:
        return f"{'https' if self._tls else 'http'}://{host}:{self._port}{self._path}"

    def _new_request(self, worker: PodWorker, host: str) -> HttpRequest:
        headers = {"Host": f"{host}:{self._port}", **self._headers}
        return HttpRequest("GET", self._path, headers, peer=worker.kubelet.machine.gateway, tls=self._tls)

    async def wait(self, worker: PodWorker, record: ContainerRecord) -> Answer:
        assert self._port is not None
        host = self._address(worker)
        if self._redirected is not None:
            redirected, self._redirected = self._redirected, None
            return await self._follow(worker, redirected, self._url(host))
        if self._begun is None:
            request = self._new_request(worker, host)
            result = await node_http(worker.kubelet.machine, host, self._port, request, self.timeout)
            if result.response is not None:
                return await self._follow(worker, result.response, self._url(host))
            return self._judged(result, host, worker)
        (listener, rest), self._begun = self._begun, None
        task = listener.owner.spawn_thread(_go_on(rest))
        try:
            in_time = await task.done.wait(self.timeout)
        finally:
            task.cancel()
            listener.leave()
        if not in_time:
            return self._judged(HttpResult(Outcome.TIMEOUT, connected=True), host, worker)
        response = task.done.value
        if isinstance(response, HttpResponse):
            return await self._follow(worker, response, self._url(host))
        return self._judged(HttpResult(Outcome.RESET, connected=True), host, worker)

    async def _follow(self, worker: PodWorker, response: HttpResponse, url: str) -> Answer:
        """Follow a redirect to the same host; a redirect to another host is a success with a warning."""
        home = urlsplit(url).hostname or ""
        machine = worker.kubelet.machine
        for _ in range(_MOST_REDIRECTS):
            place = header_of(response.headers, "Location")
            target = urlsplit(urljoin(url, place))
            if response.status not in _REDIRECTS or not place or target.hostname != home:
                return _verdict(response)
            url = target.geturl()
            tls = target.scheme == "https"
            port = target.port or (443 if tls else 80)
            path = f"{target.path or '/'}{'?' if target.query else ''}{target.query}"
            request = HttpRequest("GET", path, {**self._headers, "Host": target.netloc}, tls=tls)
            result = await node_http(machine, home, port, request, self.timeout)
            if result.response is None:
                return self._judged(result, home, worker, url=url, port=port)
            response = result.response
        return _failed(f'Get "{url}": stopped after {_MOST_REDIRECTS} redirects')

    def _judged(self, result: HttpResult, host: str, worker: PodWorker, *, url: str = "", port: int = 0) -> Answer:
        """The result of a request without a response."""
        port = port or self._port or 0
        if result.outcome is Outcome.TIMEOUT:
            text = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
        elif result.outcome is Outcome.EMPTY:
            text = "EOF"
        elif result.outcome is Outcome.RESET:
            machine = worker.kubelet.machine
            here = f"{machine.gateway}:{machine.namespace.ephemeral_port()}"
            text = f"read tcp {here}->{host}:{port}: read: connection reset by peer"
        elif result.outcome is Outcome.TLS_ERROR:
            text = "http: server gave HTTP response to HTTPS client"
        elif result.outcome is Outcome.PROTOCOL_ERROR:
            text = "net/http: HTTP/1.x transport connection broken: malformed HTTP response"
        else:
            text = dial_error(host, port, result.outcome)
        return _failed(f'Get "{url or self._url(host)}": {text}')


def _verdict(response: HttpResponse) -> Answer:
    if 200 <= response.status < 300:
        return _GOOD
    if 300 <= response.status < 400:
        body = response.body[:MAX_OUTPUT].decode(errors="replace")
        return True, f"probe warning: Probe terminated redirects, Response body: {body}"
    return _failed(f"HTTP probe failed with statuscode: {response.status}")


def _takes(owner: SocketOwner) -> bool:
    """Whether the process accepts another connection now."""
    return not (isinstance(owner, Process) and owner.stopped) and owner.take_descriptor()


async def _go_on(rest: Unfinished[T]) -> T:
    return await rest


class TcpCheck(Check):
    traffic = Exchange.of_connection(0, 0)

    def __init__(self, spec: Obj, container: Obj) -> None:
        super().__init__(spec, container)
        action = spec["tcpSocket"]
        self._host = action.get("host") or ""
        self._port = port_number(container, action.get("port"))
        self._port_text = action.get("port")

        self._listener: Listener | None = None

    def ask(self, worker: PodWorker, record: ContainerRecord) -> Answer | None:
        if self._listener is not None and self._listener.open:
            return _GOOD
        if self._port is None:
            return _no_port(self._port_text)
        assert worker.sandbox is not None
        host = self._host or worker.sandbox.address
        outcome, self._listener = find_listener(worker.kubelet.machine, host, self._port)
        return _GOOD if self._listener is not None else _failed(dial_error(host, self._port, outcome))


class GrpcCheck(Check):
    traffic = Exchange.of_connection(262, 176)  # preface, settings and the frames of one call

    def __init__(self, spec: Obj, container: Obj) -> None:
        super().__init__(spec, container)
        self._port = int(spec["grpc"]["port"])
        self._service = spec["grpc"].get("service") or ""

    def ask(self, worker: PodWorker, record: ContainerRecord) -> Answer | None:
        assert worker.sandbox is not None
        listener = worker.sandbox.namespace.find(worker.sandbox.address, self._port)
        if listener is None or listener.grpc_health is None or not _takes(listener.owner):
            return None
        listener.owner.give_descriptor_back()
        health = begin(listener.grpc_health(self._service), PATIENCE)
        if isinstance(health, Unfinished):
            return None
        return _GOOD if health is GrpcHealth.SERVING else self._judged(GrpcResult(Outcome.CONNECTED, health))

    async def wait(self, worker: PodWorker, record: ContainerRecord) -> Answer:
        assert worker.sandbox is not None
        host = worker.sandbox.address
        _, listener = find_listener(worker.kubelet.machine, host, self._port)
        limit = format_duration(self.timeout)
        clock = worker.kubelet.clock
        if listener is None:
            await clock.sleep(self.timeout)
            return _failed(
                f'timeout: failed to connect service "{host}:{self._port}" within {limit}: context deadline exceeded'
            )
        task = clock.spawn(listener.answer_grpc_health(self._service))
        await task.done.wait(self.timeout)
        if not task.done.is_set or task.done.value is None:
            task.cancel()
            return _failed(f"timeout: health rpc did not complete within {limit}")
        return self._judged(task.done.value)

    @staticmethod
    def _judged(result: GrpcResult) -> Answer:
        if result.health is GrpcHealth.SERVING:
            return _GOOD
        if result.outcome is not Outcome.CONNECTED or result.health is GrpcHealth.UNIMPLEMENTED:
            return _failed(
                "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): "
                "unknown service grpc.health.v1.Health"
            )
        if result.health is GrpcHealth.SERVICE_UNKNOWN:
            return _failed("error: health rpc probe failed: rpc error: code = NotFound desc = unknown service")
        return _failed(f'service unhealthy (responded with "{result.health}")')


class ExecCheck(Check):
    def __init__(self, spec: Obj, container: Obj) -> None:
        super().__init__(spec, container)
        self._command: list[str] = spec["exec"].get("command") or []

    async def wait(self, worker: PodWorker, record: ContainerRecord) -> Answer:
        if record.container is None:
            return _errored("rpc error: code = NotFound desc = container is not running")
        output = Capture(MAX_OUTPUT)
        try:
            process = record.container.exec(self._command, stdout=output)
        except RuntimeFailure as error:
            return _errored(f"rpc error: code = Unknown desc = {error.message}")
        await process.done.wait(self.timeout)
        if not process.done.is_set:
            process.terminate(9)
            limit = format_duration(self.timeout)
            return _failed(f'command timed out: "{" ".join(self._command)}" timed out after {limit}')
        return _GOOD if process.done.value == 0 else _failed(output.text)


_CHECKS: dict[str, type[Check]] = {"httpGet": HttpCheck, "tcpSocket": TcpCheck, "grpc": GrpcCheck, "exec": ExecCheck}


def check_for(spec: Any, container: Obj) -> Check:
    for kind, check in _CHECKS.items():
        if spec.get(kind):
            return check(spec, container)
    return Check(spec, container)
