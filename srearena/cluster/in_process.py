"""An embedded cluster in a thread of the caller's process: fastest to start, and reachable by a debugger."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any, TypeVar

import yaml

from srearena.cluster.base import (
    Cluster,
    ClusterError,
    ClusterUnavailable,
    DirectApi,
    DirectReply,
    FastForward,
    NodeAccess,
    NodeAccessError,
    TelemetryEndpoints,
    VirtualClock,
)
from srearena.cluster.embedded.api.direct import NoResponse
from srearena.cluster.embedded.control import ControlError
from srearena.cluster.embedded.forking import ForkError
from srearena.cluster.embedded.hosting import HostThread
from srearena.cluster.embedded.options import ClusterOptions
from srearena.cluster.fast_forward import fast_forwarding
from srearena.temporary import make_folder

T = TypeVar("T")
_SWITCHING_PROTOCOLS = 101


class InProcessCluster(Cluster):
    """A cluster served by a thread; its private files are in `directory`."""

    def __init__(self, name: str, options: ClusterOptions, directory: Path | None = None) -> None:
        self._name = name
        self._is_temporary = directory is None
        self._directory = directory or make_folder("srearena")
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            self._thread = HostThread(options)
        except OSError as problem:
            raise ClusterUnavailable(f"the embedded cluster did not start: {problem}") from problem
        self._publish()

    def _publish(self) -> None:
        self.url = self._thread.host.server.url
        self.kubeconfig.touch(mode=0o600)
        self.kubeconfig.write_text(yaml.safe_dump(self._thread.host.kubeconfig()))

    @property
    def name(self) -> str:
        return self._name

    @property
    def kubeconfig(self) -> Path:
        return self._directory / "kubeconfig"

    @property
    def nodes(self) -> NodeAccess:
        return _ThreadNodes(self._thread)

    @property
    def telemetry(self) -> TelemetryEndpoints:
        return TelemetryEndpoints(**self._thread.host.telemetry_endpoints())

    @property
    def direct_api(self) -> DirectApi:
        return _ThreadApi(self._thread)

    def wait(self, seconds: float) -> None:
        self._thread.call(self._thread.host.pacer.advance(seconds))

    @contextmanager
    def fast_forward(self, limit: float) -> Iterator[FastForward]:
        with fast_forwarding(lambda request: self._thread.call(self._thread.host.control(request)), limit) as skip:
            yield skip

    def catch_up(self) -> None:
        self._thread.call(self._thread.host.catch_up())

    def set_speed(self, speed: float, until: float | None = None) -> None:
        bound = {} if until is None else {"until": until}
        self._thread.call(self._thread.host.control({"operation": "speed", "value": speed, **bound}))

    def virtual_clock(self) -> VirtualClock:
        state = self._thread.call(self._thread.host.control({"operation": "status"}))
        return VirtualClock(float(state["made_for"]), float(state["now"]))

    def close_agent_connections(self) -> None:
        self._thread.call(self._thread.host.control({"operation": "end-accounts"}))

    def internal_errors(self) -> list[str]:
        return list(self._thread.host.internal_errors.texts)

    def in_fork(self, work: Callable[[], T]) -> T:
        try:
            return self._thread.in_fork(work)
        except ForkError as problem:
            raise ClusterError(str(problem)) from problem

    def suspend(self) -> None:
        self._thread.suspend()

    def resume(self) -> None:
        self._thread.resume()
        self._publish()

    def become_copy(self, seed: int | None = None) -> None:
        self._is_temporary, self._directory = True, make_folder("srearena")
        self._thread.host.become_copy(token_hex(16), seed)

    def renew_kubeconfig(self, kubeconfig: Path) -> None:
        config, own = (yaml.safe_load(path.read_text()) for path in (kubeconfig, self.kubeconfig))
        issuer = self._thread.host.server.backend.issuer
        for entry in config["clusters"]:
            entry["cluster"] = own["clusters"][0]["cluster"]
        for entry in config["users"]:
            entry["user"]["token"] = issuer.signed_again(entry["user"]["token"])
        kubeconfig.write_text(yaml.safe_dump(config))

    def close(self) -> None:
        self._thread.close()
        if self._is_temporary:
            shutil.rmtree(self._directory, ignore_errors=True)


class _ThreadApi(DirectApi):
    def __init__(self, thread: HostThread) -> None:
        self._thread = thread

    def request(
        self, method: str, target: str, headers: Mapping[str, str], content: bytes | None, timeout: float
    ) -> DirectReply:
        requests = self._thread.host.direct()
        (status, fields), body = self._answer(requests.request(method, target, headers, content), timeout)
        return DirectReply(status, _joined(fields), body)

    def converse(
        self,
        target: str,
        headers: Mapping[str, str],
        subprotocols: Sequence[str],
        messages: Sequence[bytes],
        timeout: float | None,
    ) -> DirectReply:
        requests = self._thread.host.direct()
        conversation = requests.converse(target, headers, subprotocols, messages, timeout)
        (status, fields), pieces = self._answer(conversation, None)
        if status == _SWITCHING_PROTOCOLS:
            return DirectReply(status, _joined(fields), b"", tuple(pieces))
        return DirectReply(status, _joined(fields), b"".join(pieces))

    def _answer(self, request: Coroutine[Any, Any, T], timeout: float | None) -> T:
        try:
            return self._thread.request(request, timeout)
        except NoResponse:
            raise ClusterUnavailable("the cluster does not serve its API at present") from None


def _joined(fields: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Headers by name; those that are repeated read as one list."""
    found: dict[str, str] = {}
    for name, text in fields:
        found[name] = f"{found[name]}, {text}" if name in found else text
    return found


class _ThreadNodes(NodeAccess):
    def __init__(self, thread: HostThread) -> None:
        self._thread = thread

    def operations(self) -> tuple[str, ...]:
        return tuple(self._thread.call(self._thread.host.control({"operation": "node-operations"})))

    def perform(self, operation: str, node: str, **arguments: object) -> None:
        request = {"operation": "node", "name": node, "do": operation, "arguments": arguments}
        try:
            self._thread.call(self._thread.host.control(request))
        except ControlError as problem:
            raise NodeAccessError(str(problem)) from problem
