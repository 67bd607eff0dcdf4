"""One run: attempts until there is a good answer, or until something says stop, and the record of it all.

Whatever happens, `traces/` tells afterwards: `run.json` (how it ended), `trajectory.json` (what the agent did),
`stdout.log` (what the CLI printed, all attempts), `attempts/N/` (each by itself), `traces.jsonl` (its telemetry).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from zero import answers, gateway, model_proxy, preparation, workspaces
from zero.adapters.base import Adapter, Plan
from zero.collector import collecting
from zero.docker import Container
from zero.outcomes import EXIT_CODES, RUN_SCHEMA, STOPPED, Outcome, RunResult
from zero.preparation import Prepared, Say
from zero.processes import Ended, attend, converse
from zero.record import Record, write_json
from zero.relay import Endpoint, Relay, relaying
from zero.request import Request
from zero.sandbox import Room, installation, shows
from zero.trajectory import Trajectory, Usage


@dataclass
class _Run:
    """A prepared run with its doors open."""

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
    def checked(self) -> bool:
        """Whether there is anything to tell by that the agent is done, beside its exit code."""
        return self.prepared.form != "none" or self.prepared.request.wanting is not None

    @contextmanager
    def enclosed(self, command: Sequence[str]) -> Iterator[tuple[list[str], dict[str, str], list[int]]]:
        """The command as it is really run, its environment, and the descriptors it needs."""
        environment = dict(self.prepared.environment)
        if self.relay is None:
            yield gateway.behind([], command), environment, []
            return
        environment |= self.relay.environment
        workspace, program = self.plan.workspace, Path(self.plan.program)
        exposed = [*installation(program), *self.prepared.exposed]
        if command[0] == self.plan.program and not shows(program, exposed):
            command = [str(program.resolve()), *command[1:]]  # links from elsewhere lead nowhere in there
        if self.prepared.room == "docker":
            left = None if self.deadline is None else self.deadline - time.monotonic()
            sealed = [self.prepared.traces, workspace / workspaces.COPIES]
            hidden, terminal = [workspace / workspaces.PRIVATE], self.plan.invocation.interactive
            container = Container(workspace, exposed, sealed, hidden, self.relay, left, terminal)
            try:
                yield container.command(command, environment), container.client(environment), []
            finally:
                container.remove()
            return
        room = Room(
            workspace=workspace,
            evidence=[each.source for each in self.prepared.evidence],
            exposed=exposed,
            sealed=[self.prepared.traces],
            hidden=[workspace / workspaces.PRIVATE],
            relay=self.relay,
        )
        descriptor = os.memfd_create("zero-sandbox", 0)
        try:
            os.write(descriptor, b"".join(word.encode() + b"\0" for word in room.arguments()))
            os.lseek(descriptor, 0, os.SEEK_SET)
            yield ["bwrap", "--args", str(descriptor), "--", *room.command(command)], environment, [descriptor]
        finally:
            os.close(descriptor)

    def brake(self) -> str | None:
        while self.telemetry:
            self.trajectory.spent(self.telemetry.pop(0))
        request = self.prepared.request
        if request.max_turns is not None and self.trajectory.turns > request.max_turns:
            return "turns"
        cost = self.trajectory.usage.cost_usd
        if request.max_cost is not None and cost is not None and cost > request.max_cost:
            return "cost"
        return None

    def attempt(self, command: Sequence[str], message: str) -> tuple[Ended, answers.Answer]:
        number = self.trajectory.attempt
        workspaces.write_files(self.adapter, self.plan)
        self.trajectory.told(message)
        turns_before, began = self.trajectory.turns, time.monotonic()
        with self.record.attempt(number) as log, self.enclosed(command) as (whole, environment, keep):

            def listen(stream: str, line: str) -> None:
                log(stream, line)
                if stream == "stdout":
                    self.adapter.read(line, self.trajectory)

            ended = attend(
                whole,
                cwd=self.plan.workspace,
                environment=environment,
                listener=listen,
                brake=self.brake,
                deadline=self.deadline,
                keep=keep,
            )
        reason = ended.stopped_by or self.brake()
        answer = self.examined()
        self.record.keep_answer(number, self.plan.output)
        usage = self.trajectory.attempt_ended()
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
        """The answer as it is now, with what else is wanting as a complaint about it."""
        answer, wanting = answers.examine(self.plan.output, self.prepared.form), self.prepared.request.wanting
        left = tuple(wanting()) if wanting is not None else ()
        if not left:
            return answer
        return answers.Answer((*answer.complaints, *left), answer.readable and self.prepared.form != "none")

    def run(self) -> tuple[Outcome, answers.Answer]:
        plan, limit = self.plan, self.prepared.request.max_retries + 1
        message = plan.first_message
        command = self.adapter.start(plan)
        fruitless = 0
        if plan.instructions:
            self.trajectory.told(plan.instructions, "system")
        while True:
            ended, answer = self.attempt(command, message)
            last = self.attempts[-1]
            if ended.stopped_by == "interrupt":
                return Outcome.INTERRUPTED, answer
            if answer.good and (self.checked or (ended.code == 0 and not ended.stopped_by)):
                return Outcome.ANSWERED, answer
            if ended.stopped_by:
                return STOPPED[ended.stopped_by], answer
            fruitless = fruitless + 1 if ended.code != 0 and not last["turns"] else 0
            told = (
                self.trajectory.errors[-1] if self.trajectory.errors else f"see {self.prepared.traces / 'stdout.log'}"
            )
            if fruitless > 1:
                self.say(f"{self.adapter.name} ended with code {ended.code} before its first turn, twice: {told}")
                return Outcome.AGENT_FAILED, answer
            if last["attempt"] >= limit:
                failed = ended.code != 0
                return (Outcome.AGENT_FAILED if failed and not answer.readable else Outcome.NO_ANSWER), answer
            self.say(f"attempt {last['attempt']} of {limit}: {'; '.join(answer.complaints[:3]) or told}")
            if fruitless or not self.checked:
                command = self.adapter.start(plan)
            else:
                message = answers.request_again(answer, plan.output, self.prepared.form)
                command = self.adapter.resume(plan, self.trajectory.session, message)


def _endpoints(prepared: Prepared, plan: Plan) -> list[Endpoint]:
    urls = [plan.otel_url, plan.provider.base_url if plan.provider else ""]
    return [*prepared.endpoints, *(Endpoint.parse(url) for url in urls if url)]


def _proxied(prepared: Prepared, stack: ExitStack) -> Prepared:
    """With its LiteLLM proxy started, where it needs one."""
    plan, request = prepared.plan, prepared.request
    if not prepared.through_litellm:
        return preparation.refreshed(prepared, plan, {})
    assert plan.provider is not None
    config = request.litellm_config
    if config is None:
        config = plan.workspace / workspaces.PRIVATE / "litellm_config.yaml"
        config.write_text(model_proxy.config_for(plan.invocation.model, plan.provider), encoding="utf-8")
    log = prepared.traces / "litellm.log"
    url, key = stack.enter_context(model_proxy.running(config, log, program=request.litellm))
    return preparation.refreshed(
        prepared, preparation.through(plan, prepared.adapter, url), {model_proxy.KEY_VARIABLE: key}
    )


def run(request: Request, say: Say = lambda line: None) -> RunResult:
    """Carry out a request. Raises `ZeroError` for what is wrong before the start; after it, the result tells."""
    began = time.monotonic()
    workspace = workspaces.make_workspace(request)
    with ExitStack() as stack:
        stack.enter_context(workspaces.owned(workspace))
        prepared = preparation.prepare(request, workspace, say)
        plan, adapter = prepared.plan, prepared.adapter
        if request.dry_run:
            workspaces.write_files(adapter, plan)
            say("would run: " + " ".join(adapter.start(plan)))
            return RunResult(Outcome.PREPARED, 0, workspace, plan.output)
        stale = answers.set_aside(plan.output, workspace / workspaces.PRIVATE / "stale")
        if stale is not None:
            say(f"{plan.output.name} of an earlier run is set aside: {stale}")
        workspaces.archive(workspace)
        workspaces.make_repository(workspace)
        telemetry: list[Usage] = []

        def watch(attributes: dict[str, Any]) -> None:
            usage = adapter.usage_from_telemetry(attributes)
            if usage is not None:
                telemetry.append(usage)

        if request.collect_traces or (request.max_cost is not None and not adapter.tells_cost):
            port = stack.enter_context(collecting(prepared.traces / "traces.jsonl", request.otel_port, watch))
            prepared = replace(prepared, plan=replace(plan, otel_url=f"http://127.0.0.1:{port}"))
        prepared = _proxied(prepared, stack)
        plan = prepared.plan
        relay = stack.enter_context(relaying(_endpoints(prepared, plan))) if plan.sandboxed else None
        trajectory = Trajectory(adapter.name, plan.version, plan.invocation.model, request.prices)
        record = stack.enter_context(Record.opened(prepared.traces, say if request.verbose else None))
        deadline = None if request.timeout is None else began + request.timeout
        one = _Run(prepared, plan, relay, say, trajectory, record, deadline, telemetry)
        outcome, answer, code = _carried_out(one)
        result = RunResult(
            outcome,
            EXIT_CODES[outcome] or code,
            workspace,
            plan.output,
            answer.complaints,
            len(one.attempts),
            trajectory.turns,
            round(time.monotonic() - began, 3),
            trajectory.usage,
        )
        _tell(one, result, answer)
        return result


def _carried_out(one: _Run) -> tuple[Outcome, answers.Answer, int]:
    """Outcome, answer, and the CLI's own code where it is ours to hand on."""
    plan = one.plan
    if not plan.invocation.interactive:
        try:
            return (*one.run(), 0)
        except KeyboardInterrupt:
            return Outcome.INTERRUPTED, one.examined(), 0
    workspaces.write_files(one.adapter, plan)
    with one.enclosed(one.adapter.start(plan)) as (command, environment, keep):
        place = plan.workspace
        code = converse(command, cwd=place, environment=environment, keep=keep, shielded=plan.sandboxed)
    return Outcome.CONVERSED, one.examined(), code


def _tell(one: _Run, result: RunResult, answer: answers.Answer) -> None:
    """Write down how the run ended, and put its configuration beside the record."""
    prepared, plan = one.prepared, one.plan
    document = {
        "schema_version": RUN_SCHEMA,
        "outcome": str(result.outcome),
        "exit_code": result.exit_code,
        "cli": one.adapter.name,
        "cli_version": plan.version,
        "model": one.trajectory.model or plan.invocation.model,
        "provider": plan.provider.name if plan.provider else None,
        "prompt": prepared.request.prompt,
        "sandbox": prepared.room,
        "without_sandbox": prepared.without_sandbox,
        "refused_connections": sorted(set(one.relay.refused)) if one.relay else [],
        "output_file": str(plan.output.relative_to(plan.workspace)),
        "output_valid": answer.good,
        "output_readable": answer.good or answer.readable,
        "complaints": list(answer.complaints),
        "seconds": result.seconds,
        "turns": result.turns,
        "usage": result.usage.metrics(),
        "errors": one.trajectory.errors,
        "attempts": one.attempts,
    }
    write_json(prepared.traces / "run.json", document)
    extra = {"outcome": str(result.outcome), "seconds": result.seconds, "attempts": len(one.attempts)}
    write_json(prepared.traces / "trajectory.json", one.trajectory.document(**extra))
