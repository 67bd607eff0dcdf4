"""Walks of single requests, hop by hop through the fluid model: the origin of spans, log lines and error messages.

At every hop a walk samples duration, failure and path from the present state of the arrays, so that samples agree with
the rates. It changes nothing: log lines and spans are recorded with the times at which the programs write them.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from srearena.cluster.embedded.traffic.costs import STORES
from srearena.cluster.embedded.traffic.data_handlers import Visit
from srearena.cluster.embedded.traffic.durations import sample_duration
from srearena.cluster.embedded.traffic.failures import Failure, timeout_failure
from srearena.cluster.embedded.traffic.fluid_model import LONGEST, FluidModel
from srearena.cluster.embedded.traffic.graph import Action, Call, Link, Node, OnMiss, Parallel, Pause
from srearena.cluster.embedded.traffic.grpc_status import returned_status
from srearena.cluster.embedded.traffic.log_lines import LOCAL, LogLine, RequestWords
from srearena.cluster.embedded.traffic.outcomes import (
    BREAKER_SECONDS,
    ERROR,
    LOST_SECONDS,
    OK,
    REFUSAL_SECONDS,
    REFUSED,
    TIMEOUT,
)
from srearena.cluster.embedded.traffic.servers import Instance
from srearena.cluster.embedded.traffic.span_names import (
    call_attributes,
    call_scope,
    call_span,
    node_attributes,
    node_scope,
    node_span,
)
from srearena.cluster.embedded.traffic.spans import Attributes, Span, SpanEvent, exception

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
    abandoned: bool = False
    """The server dropped the request when its caller had timed out."""
    origin: Node | None = None
    """Which server's response it is, where the caller received one."""


@dataclass(slots=True)
class _PlanResult:
    """Outcome of a plan: an error, empty on success, and the seconds it took."""

    error: str
    seconds: float
    passed_on: Result | None = None
    """The failed response that a proxy passes on."""


class Walker:
    """Walks requests through one fluid model."""

    def __init__(self, fluid: FluidModel, random: Random) -> None:
        self.fluid = fluid
        self.random = random
        self.spans: list[Span] = []
        self.visits: list[Visit] = []
        self.lines: list[LogLine] = []
        self.trace_id = 0

    def walk(self, node: Node, start: float) -> tuple[Result, list[Span]]:
        """Walk one request that begins at a node."""
        self.spans = []
        self.visits = []
        self.lines = []
        self.trace_id = self.random.getrandbits(128)
        result = self._serve(node, start, 0, LOCAL)
        return result, self.spans

    # A request at a server

    def _serve(self, node: Node, start: float, parent: int, client: str) -> Result:
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
            float(fluid.waits[server.index]), float(fluid.wait_variance[server.index]), random.random()
        )
        mean = float(fluid.cpu[index] * fluid.stretch[server.index] + node.latency)
        own = sample_duration(mean, node.variance, random.random())
        elapsed = wait + own / 2
        chance = random.random() - fluid.node_outcomes.share[REFUSED, index]
        passed_on: Result | None = None
        refused, abandoned = chance < 0, 0 <= chance < fluid.node_outcomes.share[TIMEOUT, index]
        if refused:
            error = server.program.queue_error if isinstance(server, Instance) else "server busy"
            elapsed, own = REFUSAL_SECONDS, 0.0
        elif abandoned:
            error, elapsed, own = "context canceled", float(fluid.patience[server.index]), 0.0
        elif not (error := self._program_failure(node, start + elapsed)):
            outcome = self._run_plan(node.plan, node, start + elapsed, span_id)
            elapsed += outcome.seconds
            error, passed_on = outcome.error, outcome.passed_on
            operation = node.operation if passed_on is None else None
            if error and isinstance(server, Instance) and operation is not None and operation.error:
                error = server.fill(operation.error, error=error)
        logged_at = start + elapsed
        elapsed += own / 2
        if visit is not None:
            visit.ok = not error
        if isinstance(server, Instance):
            words = RequestWords(node, random, error, elapsed, client, self.trace_id, span_id)
            self._log(server, node, logged_at, words)
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
                self._node_attributes(node, error, passed_on),
                self._node_events(node, start + wait, start + elapsed, error),
                scope=node_scope(node),
            )
        if passed_on is not None:
            return Result(False, elapsed, error, passed_on.status, abandoned, passed_on.origin)
        failed_status = node.operation.status if node.operation is not None else 500
        return Result(not error, elapsed, error, failed_status if error else 200, abandoned)

    def _program_failure(self, node: Node, time: float) -> str:
        """Return an error of the program itself rather than of its dependencies, or an empty text."""
        random = self.random
        for active in node.effects:
            effect = active.effect
            if random.random() >= effect.share:
                continue
            server = node.server
            if effect.log and isinstance(server, Instance):
                self.lines.append(LogLine(time, server, effect.log, RequestWords(node, random), node))
            if active.fails and random.random() < active.fails:
                return effect.error or node.error or "internal error"
        operation = node.operation
        if operation is not None and operation.fails and isinstance(node.server, Instance):
            share = node.server.settings.number(operation.fails, 0.0)
            if random.random() < share:
                return node.error or "internal error"
        return ""

    def _log(self, server: Instance, node: Node, time: float, words: RequestWords) -> None:
        operation = node.operation
        if operation is None:
            return
        line = operation.failure_log if words.error and operation.failure_log else operation.log
        if line and (words.error or self.random.random() < operation.log_share):
            self.lines.append(LogLine(time, server, line, words, node))

    @staticmethod
    def _node_events(node: Node, began: float, ended: float, error: str) -> tuple[SpanEvent, ...]:
        """The evaluations of feature flags, which come first, and the exception of a failure."""
        events = [SpanEvent(began, "feature_flag", evaluation) for evaluation in node.flag_evaluations]
        if error and node.fails > 0:
            events.append(exception(ended, "error", error))
        return tuple(events)

    def _node_attributes(self, node: Node, error: str, passed_on: Result | None) -> Attributes:
        if error:
            return node_attributes(node, error, None if passed_on is None else passed_on.status)
        known = self.fluid.span_attributes
        if node not in known:
            known[node] = node_attributes(node, "")
        return known[node]

    def _call_attributes(self, call: Call, link: Link, result: Result) -> Attributes:
        if result.error:
            return call_attributes(call, link, result.error, None if result.origin is None else result.status)
        known = self.fluid.span_attributes
        if link not in known:
            known[link] = call_attributes(call, link, "")
        return known[link]

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
                return _PlanResult(outcome.error, elapsed, outcome.passed_on)
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
                    words = RequestWords(call.caller, self.random, result.error, elapsed)
                    self.lines.append(LogLine(start + elapsed, instance, call.step.log, words, call))
                if not call.optional:
                    text = instance.fill(call.step.error, error=result.error) if call.step.error else result.error
                    passed_on = result if call.forwards and result.origin is not None else None
                    return _PlanResult(text or "error", elapsed, passed_on)
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
            return Result(False, BREAKER_SECONDS, "circuit breaker is open")
        link = self._choose_link(call)
        name = call_span(call) if instance.program.traced and len(self.spans) < MAX_SPANS else ""
        span_id = self.random.getrandbits(64) if name else parent
        place = len(self.spans)
        if name:
            self.spans.append(_PLACEHOLDER)
        waited = self._pool_wait(call)
        if waited is None:
            result = Result(False, call.target.pool_timeout, "connection pool timed out")
        else:
            result = self._send_request(call, link, start + waited, span_id)
        if result.seconds > call.target.timeout or (result.abandoned and call.target.timeout < LONGEST):
            timeout: Failure = timeout_failure(instance.runtime, protocol, call.target.timeout)
            result = Result(False, call.target.timeout, timeout.text)
        result.seconds += waited or 0.0
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
                self._call_attributes(call, link, result),
                scope=call_scope(call),
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
            return Result(False, LOST_SECONDS, "connection timed out")
        callee = link.callee
        if callee.operation is None or protocol in STORES:
            return self._store_request(callee, trip)
        result = self._serve(callee, start + trip / 2, parent, call.target.instance.host.address)
        result.seconds += trip
        result.origin = result.origin or callee
        if not result.ok:
            result.error = self._received_error(call, callee, result.error)
        return result

    def _received_error(self, call: Call, callee: Node, error: str) -> str:
        """Return an error of a server as its caller's library shows it."""
        if call.target.dependency.protocol != "grpc":
            return error
        return returned_status(callee.server.runtime, error).text(call.target.instance.runtime)

    def _store_request(self, callee: Node, trip: float) -> Result:
        outcomes, index = self.fluid.node_outcomes, callee.index
        outcome = self.random.choices((OK, ERROR, REFUSED, TIMEOUT), outcomes.share[:, index].tolist())[0]
        mean, variance = float(outcomes.mean[outcome, index]), float(outcomes.variance[outcome, index])
        seconds = trip + sample_duration(mean, variance, self.random.random())
        return Result(outcome == OK, seconds, "" if outcome == OK else "server busy", abandoned=outcome == TIMEOUT)

    def _pool_wait(self, call: Call) -> float | None:
        """Return the seconds until the call gets a connection, or None where it gets none."""
        if call.target.index < 0:
            return 0.0
        wait, late = self.fluid.pool_wait(call.index)
        if late and self.random.random() < late:
            return None
        return sample_duration(wait, wait**2, self.random.random()) if wait > 0 else 0.0


_PLACEHOLDER: Span = None  # type: ignore[assignment]
"""Reserves a span's position before the spans of its calls until its duration is known."""
