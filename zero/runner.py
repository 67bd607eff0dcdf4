"""Execution of a run: attempts until there is a valid answer or a limit is reached, and the record of the run.

The record is in `traces/`: `run.json` (outcome), `trajectory.json` (steps of the agent), `stdout.log` (output of all
attempts), `attempts/N/` (logs per attempt), `traces.jsonl` (telemetry).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from zero import answers, config, gateway, model_proxy, workspaces
from zero.adapters.base import Adapter, Plan
from zero.collector import collect
from zero.config import Prepared, Say
from zero.docker import Container
from zero.outcomes import EXIT_CODES, OUTCOME_OF_STOP, RUN_SCHEMA, Outcome, RunResult
from zero.processes import ProcessResult, run_interactive, run_process
from zero.record import Record, write_json
from zero.relay import Endpoint, Relay, run_relay
from zero.request import Request
from zero.sandbox import Sandbox, installation, is_visible
from zero.trajectory import Trajectory, Usage


@dataclass
class _Run:
    """A prepared run with its relay, collector and proxy running."""

    prepared: Prepared
    plan: Plan
    relay: Relay | None
    say: Say
    trajectory: Trajectory
    record: Record
    deadline: float | None
    telemetry: list[Usage]
    attempts: list[dict[str, Any]] = field(default_factory=list)

    @property
    def adapter(self) -> Adapter:
        return self.prepared.adapter

    @property
    def has_completion_check(self) -> bool:
        """Whether completion is checked by more than the exit code."""
        return self.prepared.form != "none" or self.prepared.request.remaining_work is not None

    @contextmanager
    def sandboxed(self, command: Sequence[str]) -> Iterator[tuple[list[str], dict[str, str], list[int]]]:
        """The command in its sandbox, its environment, and the file descriptors it needs."""
        environment = dict(self.prepared.environment)
        if self.relay is None:
            yield gateway.wrap([], command), environment, []
            return
        environment |= self.relay.environment
        workspace, program = self.plan.workspace, Path(self.plan.program)
        exposed = [*installation(program), *self.prepared.exposed]
        if command[0] == self.plan.program and not is_visible(program, exposed):
            command = [str(program.resolve()), *command[1:]]  # links from other directories are broken in the sandbox
        if self.prepared.sandbox == "docker":
            seconds = None if self.deadline is None else self.deadline - time.monotonic()
            read_only = [self.prepared.traces, workspace / workspaces.EVIDENCE_COPIES]
            hidden, terminal = [workspace / workspaces.PRIVATE], self.plan.invocation.interactive
            container = Container(workspace, exposed, read_only, hidden, self.relay, seconds, terminal)
            try:
                yield container.command(command, environment), container.client(environment), []
            finally:
                container.remove()
            return
        sandbox = Sandbox(
            workspace=workspace,
            evidence=[each.source for each in self.prepared.evidence],
            exposed=exposed,
            read_only=[self.prepared.traces],
            hidden=[workspace / workspaces.PRIVATE],
            relay=self.relay,
        )
        descriptor = os.memfd_create("zero-sandbox", 0)
        try:
            os.write(descriptor, b"".join(word.encode() + b"\0" for word in sandbox.arguments()))
            os.lseek(descriptor, 0, os.SEEK_SET)
            yield ["bwrap", "--args", str(descriptor), "--", *sandbox.command(command)], environment, [descriptor]
        finally:
            os.close(descriptor)

    def stop_reason(self) -> str | None:
        """The limit that is exceeded, if any."""
        while self.telemetry:
            self.trajectory.add_usage(self.telemetry.pop(0))
        request = self.prepared.request
        if request.max_turns is not None and self.trajectory.turns > request.max_turns:
            return "turns"
        cost = self.trajectory.usage.cost_usd
        if request.max_cost is not None and cost is not None and cost > request.max_cost:
            return "cost"
        return None

    def attempt(self, command: Sequence[str], message: str) -> tuple[ProcessResult, answers.Answer]:
        number = self.trajectory.attempt
        workspaces.write_files(self.adapter, self.plan)
        self.trajectory.add_message(message)
        turns_before, began = self.trajectory.turns, time.monotonic()
        with self.record.attempt(number) as log, self.sandboxed(command) as (sandboxed, environment, descriptors):

            def listen(stream: str, line: str) -> None:
                log(stream, line)
                if stream == "stdout":
                    self.adapter.read(line, self.trajectory)

            ended = run_process(
                sandboxed,
                cwd=self.plan.workspace,
                environment=environment,
                listener=listen,
                stop_check=self.stop_reason,
                deadline=self.deadline,
                pass_fds=descriptors,
            )
        reason = ended.stopped_by or self.stop_reason()
        answer = self.examined()
        self.record.save_answer(number, self.plan.output)
        usage = self.trajectory.end_attempt()
        self.attempts.append(
            {
                "attempt": number,
                "exit_code": ended.code,
                "stopped_by": reason,
                "seconds": round(time.monotonic() - began, 3),
                "turns": self.trajectory.turns - turns_before,
                "usage": usage.metrics(),
                "complaints": list(answer.complaints),
            }
        )
        write_json(self.prepared.traces / "trajectory.json", self.trajectory.document())
        return replace(ended, stopped_by=reason), answer

    def examined(self) -> answers.Answer:
        """The current answer, with remaining work as complaints."""
        answer = answers.examine(self.plan.output, self.prepared.form)
        remaining_work = self.prepared.request.remaining_work
        remaining = tuple(remaining_work()) if remaining_work is not None else ()
        if not remaining:
            return answer
        return answers.Answer((*answer.complaints, *remaining), answer.readable and self.prepared.form != "none")

    def run(self) -> tuple[Outcome, answers.Answer]:
        plan, limit = self.plan, self.prepared.request.max_retries + 1
        message = plan.first_message
        command = self.adapter.start(plan)
        failed_starts = 0
        if plan.instructions:
            self.trajectory.add_message(plan.instructions, "system")
        while True:
            ended, answer = self.attempt(command, message)
            last = self.attempts[-1]
            if ended.stopped_by == "interrupt":
                return Outcome.INTERRUPTED, answer
            if answer.good and (self.has_completion_check or (ended.code == 0 and not ended.stopped_by)):
                return Outcome.ANSWERED, answer
            if ended.stopped_by:
                return OUTCOME_OF_STOP[ended.stopped_by], answer
            failed_starts = failed_starts + 1 if ended.code != 0 and not last["turns"] else 0
            error = (
                self.trajectory.errors[-1] if self.trajectory.errors else f"see {self.prepared.traces / 'stdout.log'}"
            )
            if failed_starts > 1:
                self.say(f"{self.adapter.name} ended with code {ended.code} before its first turn, twice: {error}")
                return Outcome.AGENT_FAILED, answer
            if last["attempt"] >= limit:
                failed = ended.code != 0
                return (Outcome.AGENT_FAILED if failed and not answer.readable else Outcome.NO_ANSWER), answer
            self.say(f"attempt {last['attempt']} of {limit}: {'; '.join(answer.complaints[:3]) or error}")
            if failed_starts or not self.has_completion_check:
                command = self.adapter.start(plan)
            else:
                message = answers.retry_message(answer, plan.output, self.prepared.form)
                command = self.adapter.resume(plan, self.trajectory.session, message)


def _endpoints(prepared: Prepared, plan: Plan) -> list[Endpoint]:
    urls = [plan.otel_url, plan.provider.base_url if plan.provider else ""]
    return [*prepared.endpoints, *(Endpoint.parse(url) for url in urls if url)]


def _start_proxy(prepared: Prepared, stack: ExitStack) -> Prepared:
    """Start the LiteLLM proxy if the run needs one; returns the preparation that uses it."""
    plan, request = prepared.plan, prepared.request
    if not prepared.through_litellm:
        return config.with_plan(prepared, plan, {})
    assert plan.provider is not None
    proxy_config = request.litellm_config
    if proxy_config is None:
        proxy_config = plan.workspace / workspaces.PRIVATE / "litellm_config.yaml"
        proxy_config.write_text(model_proxy.config_for(plan.invocation.model, plan.provider), encoding="utf-8")
    log = prepared.traces / "litellm.log"
    url, key = stack.enter_context(model_proxy.run_proxy(proxy_config, log, program=request.litellm))
    return config.with_plan(prepared, config.with_proxy(plan, prepared.adapter, url), {model_proxy.KEY_VARIABLE: key})


def run(request: Request, say: Say = lambda line: None) -> RunResult:
    """Execute a request. Errors before the start raise `ZeroError`; later failures are in the result."""
    began = time.monotonic()
    workspace = workspaces.make_workspace(request)
    with ExitStack() as stack:
        stack.enter_context(workspaces.locked(workspace))
        prepared = config.prepare(request, workspace, say)
        plan, adapter = prepared.plan, prepared.adapter
        if request.dry_run:
            workspaces.write_files(adapter, plan)
            say("would run: " + " ".join(adapter.start(plan)))
            return RunResult(Outcome.PREPARED, 0, workspace, plan.output)
        stale = answers.archive_stale(plan.output, workspace / workspaces.PRIVATE / "stale")
        if stale is not None:
            say(f"{plan.output.name} of an earlier run was moved to {stale}")
        workspaces.archive_traces(workspace)
        workspaces.make_repository(workspace)
        telemetry: list[Usage] = []

        def watch(attributes: dict[str, Any]) -> None:
            usage = adapter.usage_from_telemetry(attributes)
            if usage is not None:
                telemetry.append(usage)

        if request.collect_traces or (request.max_cost is not None and not adapter.reports_cost):
            port = stack.enter_context(collect(prepared.traces / "traces.jsonl", request.otel_port, watch))
            prepared = replace(prepared, plan=replace(plan, otel_url=f"http://127.0.0.1:{port}"))
        prepared = _start_proxy(prepared, stack)
        plan = prepared.plan
        relay = stack.enter_context(run_relay(_endpoints(prepared, plan))) if plan.sandboxed else None
        trajectory = Trajectory(adapter.name, plan.version, plan.invocation.model, request.prices)
        record = stack.enter_context(Record.open(prepared.traces, say if request.verbose else None))
        deadline = None if request.timeout is None else began + request.timeout
        current = _Run(prepared, plan, relay, say, trajectory, record, deadline, telemetry)
        outcome, answer, code = _execute(current)
        result = RunResult(
            outcome,
            EXIT_CODES[outcome] or code,
            workspace,
            plan.output,
            answer.complaints,
            len(current.attempts),
            trajectory.turns,
            round(time.monotonic() - began, 3),
            trajectory.usage,
        )
        _write_record(current, result, answer)
        return result


def _execute(current: _Run) -> tuple[Outcome, answers.Answer, int]:
    """Outcome, answer, and the exit code of an interactive CLI (else 0)."""
    plan = current.plan
    if not plan.invocation.interactive:
        try:
            return (*current.run(), 0)
        except KeyboardInterrupt:
            return Outcome.INTERRUPTED, current.examined(), 0
    workspaces.write_files(current.adapter, plan)
    with current.sandboxed(current.adapter.start(plan)) as (command, environment, descriptors):
        code = run_interactive(
            command,
            cwd=plan.workspace,
            environment=environment,
            pass_fds=descriptors,
            ignore_interrupt=plan.sandboxed,
        )
    return Outcome.CONVERSED, current.examined(), code


def _write_record(current: _Run, result: RunResult, answer: answers.Answer) -> None:
    """Write `run.json` and the final trajectory."""
    prepared, plan = current.prepared, current.plan
    document = {
        "schema_version": RUN_SCHEMA,
        "outcome": str(result.outcome),
        "exit_code": result.exit_code,
        "cli": current.adapter.name,
        "cli_version": plan.version,
        "model": current.trajectory.model or plan.invocation.model,
        "provider": plan.provider.name if plan.provider else None,
        "prompt": prepared.request.prompt,
        "sandbox": prepared.sandbox,
        "without_sandbox": prepared.without_sandbox,
        "refused_connections": sorted(set(current.relay.refused)) if current.relay else [],
        "output_file": str(plan.output.relative_to(plan.workspace)),
        "output_valid": answer.good,
        "output_readable": answer.good or answer.readable,
        "complaints": list(answer.complaints),
        "seconds": result.seconds,
        "turns": result.turns,
        "usage": result.usage.metrics(),
        "errors": current.trajectory.errors,
        "attempts": current.attempts,
    }
    write_json(prepared.traces / "run.json", document)
    extra = {"outcome": str(result.outcome), "seconds": result.seconds, "attempts": len(current.attempts)}
    write_json(prepared.traces / "trajectory.json", current.trajectory.document(**extra))
