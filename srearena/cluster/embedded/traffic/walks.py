"""Walks of single requests, hop by hop through the fluid model: the origin of spans, log lines and error messages.

At every hop a walk samples duration, failure and path from the present state of the arrays, so that samples agree with
the rates. It changes nothing but logs.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from srearena.cluster.embedded.traffic.costs import STORES
from srearena.cluster.embedded.traffic.data_handlers import Visit
from srearena.cluster.embedded.traffic.durations import sample_duration
from srearena.cluster.embedded.traffic.failures import Failure, remote_failure, timeout_failure
from srearena.cluster.embedded.traffic.fluid_model import FluidModel
from srearena.cluster.embedded.traffic.graph import Action, Call, Link, Node, OnMiss, Parallel, Pause
from srearena.cluster.embedded.traffic.servers import Instance
from srearena.cluster.embedded.traffic.span_names import call_attributes, call_span, node_attributes, node_span
from srearena.cluster.embedded.traffic.spans import Span, exception

MAX_SPANS = 400
"""Spans per trace, at most. Chosen: bounds the cost of a walk through a deep fan-out."""
MAX_TIMES = 12
"""Calls of one step that are walked one by one; the others only add their time. Chosen, as above."""


@dataclass(slots=True)
class Result:
    ok: bool
    seconds: float
    error: str = ""
    status: int = 200


@dataclass(slots=True)
class _PlanResult:
    """Outcome of a plan: an error, empty on success, and the seconds it took."""

    error: str
    seconds: float


class Walker:
    """Walks requests through one fluid model."""

    def __init__(self, fluid: FluidModel, random: Random) -> None:
        self.fluid = fluid
        self.random = random
        self.spans: list[Span] = []
        self.visits: list[Visit] = []
        self.trace_id = 0

    def walk(self, node: Node, start: float) -> tuple[Result, list[Span]]:
        """Walk one request that begins at a node."""
        self.spans = []
        self.visits = []
        self.trace_id = self.random.getrandbits(128)
        result = self._serve(node, start, 0)
        return result, self.spans

    # A request at a server

    def _serve(self, node: Node, start: float, parent: int) -> Result:
        fluid, random = self.fluid, self.random
        server = node.server
        visit = Visit(server, node.name) if isinstance(server, Instance) else None
        if visit is not None:
            self.visits.append(visit)
        traced = isinstance(server, Instance) and server.program.traced and len(self.spans) < MAX_SPANS
        name = node_span(node) if traced else ""
        span_id = random.getrandbits(64) if name else parent
        place = len(self.spans)
        if name:
            self.spans.append(_PLACEHOLDER)
        index = node.index
        wait = sample_duration(
            float(fluid.server_waits[server.index]), float(fluid.server_waits[server.index]) ** 2, random.random()
        )
        mean = float(fluid.cpu[index] * fluid.stretch[server.index] + node.latency)
        own = sample_duration(mean, node.variance, random.random())
        elapsed = wait + own / 2
        error = self._program_failure(node)
        if random.random() < fluid.refused[server.index]:
            error = server.program.queue_error if isinstance(server, Instance) else "server busy"
            own = wait = elapsed = 0.0001
        elif not error:
            outcome = self._run_plan(node.plan, node, start + elapsed, span_id)
            elapsed += outcome.seconds
            error = outcome.error
            if error and isinstance(server, Instance) and node.operation is not None and node.operation.error:
                error = server.fill(node.operation.error, error=error)
        elapsed += own / 2
        if visit is not None:
            visit.ok = not error
        if isinstance(server, Instance):
            self._log(server, node, start, elapsed, error, span_id)
        if name:
            status = "error" if error else "unset"
            self.spans[place] = Span(
                self.trace_id,
                span_id,
                parent,
                server.resource,
                name,
                node.operation.span_kind if node.operation is not None else "server",
                start,
                elapsed,
                status,  # type: ignore[arg-type]
                error,
                node_attributes(node, error),
                (exception(start + elapsed, "error", error),) if error and node.fails > 0 else (),
            )
        failed_status = node.operation.status if node.operation is not None else 500
        return Result(not error, elapsed, error, failed_status if error else 200)

    def _program_failure(self, node: Node) -> str:
        """Return an error of the program itself rather than of its dependencies, or an empty text."""
        random = self.random
        for active in node.effects:
            effect = active.effect
            if random.random() >= effect.share:
                continue
            server = node.server
            if effect.log and isinstance(server, Instance):
                server.write_log(effect.log)
            if active.fails and random.random() < active.fails:
                return effect.error or node.error or "internal error"
        operation = node.operation
        if operation is not None and operation.fails and isinstance(node.server, Instance):
            share = node.server.settings.number(operation.fails, 0.0)
            if random.random() < share:
                return node.error or "internal error"
        return ""

    def _log(self, server: Instance, node: Node, start: float, elapsed: float, error: str, span_id: int) -> None:
        operation = node.operation
        if operation is None:
            return
        line = operation.failure_log if error and operation.failure_log else operation.log
        if line and (error or self.random.random() < operation.log_share):
            server.write_log(
                line,
                error=error,
                trace_id=f"{self.trace_id:032x}",
                span_id=f"{span_id:016x}",
                milliseconds=f"{elapsed * 1000:.0f}",
                seconds=f"{elapsed:.3f}",
                status=operation.status if error else 200,
                route=node.route or operation.route or node.name,
                path=(node.route or operation.route or "").partition(" ")[2],
                method=(node.route or operation.route or "").partition(" ")[0],
                id=f"{self.random.getrandbits(32):08x}",
                number=self.random.randrange(1000),
            )

    # What a request does

    def _run_plan(self, plan: tuple[Action, ...], node: Node, start: float, parent: int) -> _PlanResult:
        elapsed = 0.0
        for action in plan:
            if isinstance(action, Call):
                outcome = self._step(action, start + elapsed, parent)
            elif isinstance(action, Parallel):
                outcome = _PlanResult("", 0.0)
                for branch in action.branches:
                    one = self._run_plan(branch, node, start + elapsed, parent)
                    outcome = _PlanResult(outcome.error or one.error, max(outcome.seconds, one.seconds))
            elif isinstance(action, OnMiss):
                if self.random.random() >= action.cache.miss_share():
                    continue
                outcome = self._run_plan(action.plan, node, start + elapsed, parent)
            else:
                assert isinstance(action, Pause)
                outcome = _PlanResult("", action.seconds)
            elapsed += outcome.seconds
            if outcome.error:
                return _PlanResult(outcome.error, elapsed)
        return _PlanResult("", elapsed)

    def _step(self, call: Call, start: float, parent: int) -> _PlanResult:
        if call.share < 1 and self.random.random() >= call.share:
            return _PlanResult("", 0.0)
        times = int(call.times) + (self.random.random() < call.times % 1)
        elapsed = 0.0
        for _ in range(min(times, MAX_TIMES)):
            result = self._attempts(call, start + (0.0 if call.step.at_once else elapsed), parent)
            elapsed = max(elapsed, result.seconds) if call.step.at_once else elapsed + result.seconds
            if not result.ok:
                instance = call.target.instance
                if call.step.log:
                    instance.write_log(call.step.log, error=result.error)
                if not call.optional:
                    text = instance.fill(call.step.error, error=result.error) if call.step.error else result.error
                    return _PlanResult(text or "error", elapsed)
        if times > MAX_TIMES and not call.step.at_once:
            elapsed *= times / MAX_TIMES
        return _PlanResult("", elapsed)

    def _attempts(self, call: Call, start: float, parent: int) -> Result:
        target = call.target
        elapsed, wait = 0.0, target.backoff
        result = Result(True, 0.0)
        for attempt in range(min(target.attempts, MAX_TIMES)):
            result = self._attempt(call, start + elapsed, parent)
            elapsed += result.seconds
            if result.ok:
                break
            if attempt + 1 < target.attempts:
                elapsed += wait
                wait *= target.multiplier
        result.seconds = elapsed
        return result

    def _attempt(self, call: Call, start: float, parent: int) -> Result:
        instance = call.target.instance
        protocol = call.target.dependency.protocol
        if not call.links or self.random.random() < self.fluid.open[call.index]:
            return Result(False, 0.0001, "circuit breaker is open")
        link = self._choose_link(call)
        name = call_span(call) if instance.program.traced and len(self.spans) < MAX_SPANS else ""
        span_id = self.random.getrandbits(64) if name else parent
        place = len(self.spans)
        if name:
            self.spans.append(_PLACEHOLDER)
        result = self._send_request(call, link, start, span_id)
        waited = self._pool_wait(call)
        if waited > call.target.pool_timeout:
            result = Result(False, call.target.pool_timeout, "connection pool timed out")
        else:
            result.seconds += waited
        if result.seconds > call.target.timeout:
            timeout: Failure = timeout_failure(instance.runtime, protocol, call.target.timeout)
            result = Result(False, call.target.timeout, timeout.text)
        if name:
            self.spans[place] = Span(
                self.trace_id,
                span_id,
                parent,
                instance.resource,
                name,
                "producer" if call.step.publish is not None else "client",
                start,
                result.seconds,
                "unset" if result.ok else "error",
                result.error,
                call_attributes(call, link, result.error),
            )
        return result

    def _choose_link(self, call: Call) -> Link:
        if len(call.links) == 1:
            return call.links[0]
        chance = self.random.random() * sum(link.weight for link in call.links)
        for link in call.links:
            chance -= link.weight
            if chance <= 0:
                return link
        return call.links[-1]

    def _send_request(self, call: Call, link: Link, start: float, parent: int) -> Result:
        protocol = call.target.dependency.protocol
        if link.callee is None:
            assert link.failure is not None
            return Result(False, link.round_trip, link.failure.text)
        trip = sample_duration(link.round_trip, link.variance + (link.round_trip * 0.2) ** 2, self.random.random())
        if link.lost and self.random.random() < link.lost:
            # Chosen: clients give up on a connection without packets after about half a minute.
            return Result(False, 30.0, "connection timed out")
        callee = link.callee
        if callee.operation is None or protocol in STORES:
            index = callee.index
            mean, variance = float(self.fluid.response[index]), float(self.fluid.variance[index])
            ok = self.random.random() >= self.fluid.fails[index]
            return Result(ok, trip + sample_duration(mean, variance, self.random.random()), "" if ok else "server busy")
        result = self._serve(callee, start + trip / 2, parent)
        result.seconds += trip
        if not result.ok:
            result.error = remote_failure(call.target.instance.runtime, protocol, result.error)
        return result

    def _pool_wait(self, call: Call) -> float:
        if call.target.index < 0:
            return 0.0
        fluid = self.fluid
        place = len(fluid.graph.servers) + len(fluid.threaded) + call.target.index
        wait = float(fluid.queues.waits[place])
        return sample_duration(wait, wait**2, self.random.random()) if wait > 0 else 0.0


_PLACEHOLDER: Span = None  # type: ignore[assignment]
"""Reserves a span's position before the spans of its calls until its duration is known."""
