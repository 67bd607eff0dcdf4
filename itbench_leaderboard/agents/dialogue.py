"""Run a stepwise agent on a recorded incident: the diagnostic tools are its actions, `submit` gives its answer."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from time import monotonic
from typing import Any

from itbench_leaderboard.agents import stepwise
from itbench_leaderboard.files import write_json
from itbench_leaderboard.jobs import Job
from itbench_leaderboard.outcomes import Outcome, Report
from itbench_leaderboard.runner import OUTPUT
from sre_tools.offline_incident_analysis import ToolError, Workspace, all_tools, call_tool
from srearena.conductor.actions.parsing import Call, parse
from srearena.conductor.agent_process.client import AgentFailed, AgentProcess
from srearena.conductor.errors import BadAction
from zero.answers import examine, retry_message
from zero.trajectory import Trajectory, Usage

_DESCRIPTION = (
    "An incident was recorded: alerts, Kubernetes events and objects, logs, traces, metrics. Find out what caused it "
    "and how it spread. There is no cluster to ask."
)
_INSTRUCTIONS = (
    "Answer every state with one call in a fenced block: a tool with keyword arguments, for example "
    "alert_summary(limit=10), or submit(diagnosis) with a dictionary or JSON text that has the lists entities (name as "
    "namespace/Kind/name, contributing_factor, reasoning, evidence), propagations (source, target, condition, effect) "
    "and alerts_explained (alert, explanation, explained)."
)
_LONGEST_STATE = 40_000  # characters; chosen: about ten thousand tokens


def execute(job: Job) -> Report:
    agent = stepwise.create(job.table, job.label)
    try:
        return asyncio.run(_Dialogue(job, agent).run())
    finally:
        if isinstance(agent, AgentProcess):
            agent.close()


class _Dialogue:
    """One run of an agent: states, actions and the record of them."""

    def __init__(self, job: Job, agent: stepwise.HttpAgent | AgentProcess) -> None:
        self._job = job
        self._table = job.table
        self._agent = agent
        self._workspace = Path(job.workspace)
        self._record = Trajectory(job.agent_name, "", self._table.model)
        self._complaints: tuple[str, ...] = ()

    async def run(self) -> Report:
        start = monotonic()
        limit = self._table.timeout or self._job.timeout
        reason = ""
        try:
            async with asyncio.timeout(limit):
                outcome = await self._converse()
            reason = "; ".join(self._complaints) if outcome is not Outcome.ANSWERED else ""
        except TimeoutError:
            outcome, reason = Outcome.TIMEOUT, f"the limit of {limit:g} seconds is reached"
        except asyncio.CancelledError:
            raise
        except AgentFailed as problem:
            outcome, reason = Outcome.AGENT_FAILED, str(problem)
        except Exception as problem:  # any exception of an agent counts against the agent
            outcome, reason = Outcome.AGENT_FAILED, f"{type(problem).__name__}: {problem}"
        usage = self._usage()
        if usage is not None:
            self._record.set_attempt_usage(usage)
            self._record.end_attempt()
        seconds = round(monotonic() - start, 3)
        traces = self._workspace / "traces"
        write_json(traces / "trajectory.json", self._record.document(outcome=str(outcome), seconds=seconds))
        return Report(
            outcome,
            reason,
            seconds,
            self._record.turns,
            usage.prompt if usage else None,
            usage.completion if usage else None,
            usage.cost_usd if usage else None,
            self._table.model,
        )

    def _usage(self) -> Usage | None:
        reported = self._agent.usage()
        if not reported:
            return None
        cost = reported.get("cost")
        return Usage(
            int(reported.get("tokens_in", 0)),
            int(reported.get("tokens_out", 0)),
            0,
            None if cost is None else float(cost),
        )

    async def _converse(self) -> Outcome:
        tools = all_tools()
        actions = {name: f"{tool.title}: {', '.join(tool.input_schema['properties'])}" for name, tool in tools.items()}
        (self._workspace / "AGENTS.md").write_text(f"{_DESCRIPTION}\n\n{_INSTRUCTIONS}\n", encoding="utf-8")
        self._record.add_message(f"{_DESCRIPTION}\n{_INSTRUCTIONS}", "system")
        if isinstance(self._agent, AgentProcess):
            await self._agent.begin(_DESCRIPTION, _INSTRUCTIONS, actions, None)
        else:
            self._agent.init_context(_DESCRIPTION, _INSTRUCTIONS, actions)
        state = f"{_DESCRIPTION}\n{_INSTRUCTIONS}\nTools: {', '.join(actions)}"
        with Workspace(self._job.incident.path, output=self._workspace) as workspace:
            for step in range(1, self._table.max_steps + 1):
                text = await self._agent.get_action(state)
                self._record.add_text(str(text))
                try:
                    call = parse(text, [*actions, "submit"])
                except BadAction as problem:
                    state = f"Error: {problem}"
                    continue
                self._record.add_tool_call(str(step), call.name, {**call.options, **_positional(call)})
                if call.name == "submit":
                    if self._accepted(call):
                        self._record.add_tool_result(str(step), "accepted")
                        return Outcome.ANSWERED
                    state = "\n".join(self._complaints)
                else:
                    state = await asyncio.to_thread(_call, workspace, call)
                self._record.add_tool_result(str(step), state)
        return Outcome.TURNS if not self._complaints else Outcome.NO_ANSWER

    def _accepted(self, call: Call) -> bool:
        values = [*call.arguments, *call.options.values()]
        diagnosis = values[0] if values else ""
        output = self._workspace / OUTPUT
        output.write_text(diagnosis if isinstance(diagnosis, str) else json.dumps(diagnosis), encoding="utf-8")
        answer = examine(output.resolve(), "diagnosis")
        if not answer.good:
            self._complaints = (retry_message(answer, Path("submit(...)"), "diagnosis"),)
        return answer.good


def _positional(call: Call) -> dict[str, Any]:
    return {f"argument_{index}": value for index, value in enumerate(call.arguments, 1)}


def _call(workspace: Workspace, call: Call) -> str:
    if call.arguments:
        return f"Error: {call.name} takes keyword arguments"
    try:
        text = json.dumps(call_tool(workspace, call.name, call.options), default=str)
    except ToolError as problem:
        return f"Error: {problem}"
    return text if len(text) <= _LONGEST_STATE else text[:_LONGEST_STATE] + "... (cut: ask for less)"
