"""A running cluster: an asyncio loop that serves the API and advances virtual time.

`Host` runs in that loop; `HostThread` runs the loop in a thread of the caller's process.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import math
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

from srearena.cluster.embedded.api.authentication import Credentials
from srearena.cluster.embedded.api.connections import HttpConnection
from srearena.cluster.embedded.api.direct import DirectRequests, NoResponse
from srearena.cluster.embedded.api.in_cluster import MetricsPage
from srearena.cluster.embedded.api.server import ApiServer
from srearena.cluster.embedded.assembly import CONTROL_PLANE, Assembly, assemble
from srearena.cluster.embedded.control import ControlError
from srearena.cluster.embedded.controllers.certificate_signing import CertificateSigningController
from srearena.cluster.embedded.controllers.token_secrets import TokenSecretController
from srearena.cluster.embedded.forking import RenewableSelector, in_fork
from srearena.cluster.embedded.internal_errors import InternalErrors
from srearena.cluster.embedded.kubelet.access import NodeOperationError
from srearena.cluster.embedded.listening import Listener
from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.options import ClusterOptions
from srearena.cluster.embedded.pacing import Pacer, wall_now
from srearena.cluster.embedded.programs.system.control_plane import API_PORT
from srearena.cluster.embedded.registry.identity import User
from srearena.cluster.embedded.telemetry.apis import query_apis
from srearena.cluster.embedded.telemetry.component_metrics import ComponentMetrics
from srearena.cluster.embedded.telemetry.server import TelemetryServer
from srearena.coroutines import close_loop

T = TypeVar("T")
_log = logging.getLogger(__name__)

_TOKEN_LENGTH = 40
_GLANCE_SECONDS = 1.0
"""How often a request that waits looks whether the cluster still runs."""
METRICS_PORTS = {2381: "etcd", 10257: "kube-controller-manager", 10259: "kube-scheduler"}
"""Ports at which programs of the control plane serve metrics, and the jobs under which they are scraped."""
ADMINISTRATOR = User("kubernetes-admin", ("system:masters", "system:authenticated"))


class Host:
    """One served cluster. Everything here runs in the loop that called `start`."""

    def __init__(self, options: ClusterOptions) -> None:
        self.options = options
        self.internal_errors = InternalErrors()
        credentials = Credentials(options.secret.encode(), options.start or wall_now())
        self.assembly: Assembly = assemble(options, credentials.authority.pem.decode())
        world = self.assembly.world
        self.pacer = Pacer(world.clock, 0.0 if options.behind else options.speed)
        self.server = ApiServer(world, credentials, options.port, self.assembly.nodes.agent)
        self.server.backend.extensions = self.assembly.extensions
        self.server.backend.component_metrics = ComponentMetrics(self.assembly.telemetry.metrics, world.clock)
        self._sign_with(credentials)
        self.server.before_request = self.pacer.catch_up
        apis = query_apis(self.assembly.telemetry, options.prometheus)
        self.telemetry = TelemetryServer(apis, self._telemetry_token(), HttpConnection, cluster=options.display_name)
        self.telemetry.before_request = self.pacer.catch_up
        control_plane = self.assembly.nodes.kubelets[CONTROL_PLANE].machine
        control_plane.handlers[API_PORT] = self.server.in_cluster.answer
        for port, job in METRICS_PORTS.items():
            page = MetricsPage(self.server.backend, job, anonymous=job == "etcd")
            control_plane.handlers[port] = page.answer
        self._flow: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self.internal_errors.install()
        await self.server.start()
        await self.telemetry.start()
        self._flow = asyncio.create_task(self.pacer.run())
        self._flow.add_done_callback(_report_failure)

    async def stop(self) -> None:
        await self.server.stop()
        await self.telemetry.stop()
        await self._stop_flow()
        self.close()

    def close(self) -> None:
        """End a cluster that does not run any more, or not at present."""
        for listener in self._listeners:
            listener.close()
        self.assembly.world.clock.close()
        self.internal_errors.remove()

    async def suspend(self) -> None:
        """Stop serving, and keep world and ports for the next `start`; open connections are closed."""
        for listener in self._listeners:
            await listener.suspend()
        await self._stop_flow()
        self.before_fork()

    async def _stop_flow(self) -> None:
        if self._flow is not None:
            self._flow.cancel()
            await asyncio.gather(self._flow, return_exceptions=True)
            self._flow = None

    @property
    def _listeners(self) -> list[Listener]:
        return [self.server.listener, *self.telemetry.listeners]

    def before_fork(self) -> None:
        """Make what every copy would make for itself."""
        self.server.backend.open_api.before_fork()

    def become_copy(self, secret: str, seed: int | None) -> None:
        """Turn a suspended cluster, in a copy of its process, into one with its own ports, keys and tokens.

        The world stays what it is: names, UIDs and the certificate that pods know. What was signed with the keys of
        the original is refused here, and what pods hold is signed again. With a `seed`, chance is another one from
        here on.
        """
        world = self.assembly.world
        for listener in self._listeners:
            listener.leave()
        world.randomness.rekey(secret.encode())
        credentials = Credentials(secret.encode(), self.options.start or wall_now())
        self.server.use(credentials)
        self._sign_with(credentials)
        self.telemetry.token = self._telemetry_token()
        self.assembly.nodes.renew_tokens()
        tokens = self.assembly.controllers[TokenSecretController.name]
        assert isinstance(tokens, TokenSecretController)
        tokens.renew()
        if seed is not None:
            world.randomness.reseed(seed)
            self.assembly.traffic.reseed()

    def _sign_with(self, credentials: Credentials) -> None:
        """Let requests for certificates be signed by the authority that the API server trusts."""
        controller = self.assembly.controllers[CertificateSigningController.name]
        assert isinstance(controller, CertificateSigningController)
        controller.authority = credentials.authority

    def _telemetry_token(self) -> str:
        return self.assembly.world.randomness.secret("telemetry token").hex()[:_TOKEN_LENGTH]

    def direct(self, user: User = ADMINISTRATOR) -> DirectRequests:
        return self.server.direct(user)

    def kubeconfig(self, user: User = ADMINISTRATOR) -> Obj:
        return self.server.kubeconfig(user)

    def telemetry_endpoints(self) -> dict[str, str]:
        """The base URL of every telemetry API, and the token they require."""
        return {**self.telemetry.urls(), "token": self.telemetry.token}

    async def catch_up(self) -> None:
        """Advance a cluster that started in the past to the present, and let time flow from there on."""
        present = self.options.start if self.options.start is not None else wall_now()
        await self.pacer.advance(max(0.0, present - self.assembly.world.clock.now))
        self.pacer.speed = self.options.speed

    def _skipped_time(self) -> dict[str, float]:
        return {"skipped": self.pacer.flown, "waited": self.assembly.world.clock.waited}

    async def control(self, request: dict[str, Any]) -> Any:
        """Handle a control request of the harness."""
        match request:
            case {"operation": "status"}:
                return {
                    "url": self.server.url,
                    "now": self.pacer.now,
                    "speed": self.pacer.speed,
                    "made_for": self.assembly.made_for,
                }
            case {"operation": "telemetry"}:
                return self.telemetry_endpoints()
            case {"operation": "advance", "seconds": int() | float() as seconds} if seconds >= 0:
                await self.pacer.advance(seconds)
                return {"now": self.assembly.world.clock.now}
            case {"operation": "fast-forward", "limit": int() | float() as limit} if limit >= 0:
                return {"number": self.pacer.hurry(limit), **self._skipped_time()}
            case {"operation": "end-fast-forward", "number": int() as number}:
                self.pacer.ease(number)
                return self._skipped_time()
            case {"operation": "catch-up"}:
                await self.catch_up()
                return {"now": self.assembly.world.clock.now}
            case {"operation": "speed", "value": int() | float() as value} if value >= 0:
                self.pacer.speed = float(value)
                self.pacer.until = float(request.get("until", math.inf))
                return {"speed": self.pacer.speed}
            case {"operation": "node", "name": str() as name, "do": str() as deed, "arguments": dict() as arguments}:
                try:
                    self.assembly.nodes.access.perform(deed, name, **arguments)
                except NodeOperationError as problem:
                    raise ControlError(str(problem)) from problem
                return {}
            case {"operation": "end-accounts"}:
                self.server.backend.authenticator.end_accounts()
                return {}
            case {"operation": "internal-errors"}:
                return self.internal_errors.texts
            case {"operation": "node-operations"}:
                return list(self.assembly.nodes.access.operations())
            case _:
                raise ControlError(f"not a control request: {request.get('operation')!r}")


def _report_failure(flow: asyncio.Task[None]) -> None:
    """Log why time has stopped to flow: an event of the simulator has raised an exception."""
    error = None if flow.cancelled() else flow.exception()
    if error is not None:
        _log.error("the clock has stopped", exc_info=error)


def collect_rarely(objects: int) -> None:
    """Raise the threshold of the garbage collector to `objects` new objects.

    A cluster creates and keeps many small objects and few cycles: with Python's default of 700, a third of its time is
    spent on collection (measured).
    """
    gc.set_threshold(max(objects, gc.get_threshold()[0]), 10, 10)


class HostThread:
    """A host with a thread and a loop of its own; its methods may be called from any other thread."""

    def __init__(self, options: ClusterOptions) -> None:
        # Lower than in a process of its own: closed clusters leave cycles, and more clusters follow in this process.
        collect_rarely(20_000)
        self._suspending = False
        self.host = self._start(lambda: Host(options))

    def _start(self, make: Callable[[], Host]) -> Host:
        """Serve a host in a new loop and a new thread."""
        self._selector = RenewableSelector()
        self._loop = asyncio.SelectorEventLoop(self._selector)
        self._suspending = False
        ready: Future[Host] = Future()
        self._thread = threading.Thread(target=self._run, args=(make, ready), name="embedded-cluster", daemon=True)
        self._thread.start()
        return ready.result()

    def _run(self, make: Callable[[], Host], ready: Future[Host]) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            host = make()
            self._loop.run_until_complete(host.start())
        except BaseException as problem:
            close_loop(self._loop)
            ready.set_exception(problem)
            return
        ready.set_result(host)
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(host.suspend() if self._suspending else host.stop())
            close_loop(self._loop)

    def suspend(self) -> None:
        """End the loop and its thread, and keep the world: a process can be forked then, as it has no other thread."""
        if self._thread.is_alive():
            self._suspending = True
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    def resume(self) -> None:
        """Serve again, at the same addresses unless the cluster has become a copy."""
        if not self._thread.is_alive():
            self.host.pacer.resume()
            self._start(lambda: self.host)

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def request(self, coroutine: Coroutine[Any, Any, T], timeout: float | None) -> T:
        """Carry out a request; NoResponse where the cluster does not serve, TimeoutError after so many real seconds."""
        thread = self._thread
        try:
            pending = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        except RuntimeError:
            coroutine.close()
            raise NoResponse from None
        left = math.inf if timeout is None else timeout
        try:
            while True:
                try:
                    return pending.result(min(_GLANCE_SECONDS, left))
                except TimeoutError:
                    left -= _GLANCE_SECONDS
                    if pending.done() or left <= 0:
                        raise
                    if not thread.is_alive():  # it ended between the request and its first step
                        raise NoResponse from None
        except CancelledError:
            raise NoResponse from None
        finally:
            pending.cancel()

    def in_fork(self, work: Callable[[], T]) -> T:
        """Run `work` in a copy of this process, with a copy of this cluster, and return its result."""
        outcome: Future[T] = Future()

        def fork() -> None:
            try:
                self.host.before_fork()
                result = in_fork(work, self._selector)
            except Exception as error:
                outcome.set_exception(error)
            else:
                outcome.set_result(result)  # type: ignore[arg-type]

        self._loop.call_soon_threadsafe(fork)
        return outcome.result()

    def close(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        else:
            self.host.close()
