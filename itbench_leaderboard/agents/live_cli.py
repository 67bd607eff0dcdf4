"""Run a coding CLI on a live problem: an episode whose tools the agent uses over MCP.

With a sandbox, the agent reaches only the tools and the model on this machine. Its workspace has a random name, because
the directories of runs contain the name of the problem.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import zero
from itbench_leaderboard.agents.arena import keep_for_view, outcome_of, store_result
from itbench_leaderboard.agents.coding_cli import OUTCOMES, request_for
from itbench_leaderboard.agents.episode_host import EpisodeHost
from itbench_leaderboard.config import AgentTable
from itbench_leaderboard.jobs import Job
from itbench_leaderboard.outcomes import Outcome, Report
from srearena.conductor.conductor import Conductor
from srearena.conductor.episode.episode import Episode
from srearena.conductor.episode.limits import Limits
from srearena.utils.status import Outcome as Ending

# Outcomes of episodes that the agent did not finish.
_ENDINGS = {
    zero.Outcome.TIMEOUT: Ending.TIMEOUT,
    zero.Outcome.TURNS: Ending.BUDGET,
    zero.Outcome.COST: Ending.BUDGET,
}
_REASONS = {
    zero.Outcome.TIMEOUT: "the time for the run is over",
    zero.Outcome.TURNS: "the agent has had all its turns",
    zero.Outcome.COST: "the agent has spent its money",
}


def live_request(
    agent: AgentTable, workspace: Path, url: str, token: str, *, timeout: float | None = None, traces: bool = False
) -> zero.Request:
    """The request to Zero for one run of this agent with the tools at `url`."""
    return replace(
        request_for(agent, workspace, None, timeout=timeout, collect_traces=traces),
        prompt=agent.live_prompt_file,
        secrets={"SREARENA_MCP_URL": url, "SREARENA_MCP_TOKEN": token},
    )


def execute(job: Job, healthy: Episode | None = None) -> Report:
    agent = job.table
    limit = agent.timeout or job.timeout
    with tempfile.TemporaryDirectory(prefix="run-") as folder:
        results, workspace = Path(folder) / "results", Path(folder) / "work"
        workspace.mkdir()
        limits = Limits(steps=None, wall_seconds=limit)
        conductor = Conductor(replace(job.spec, limits=limits), results=results, healthy=healthy)
        conductor.agent_name = job.agent_name
        try:
            conductor.init_problem(job.incident.name)
            assert conductor.episode is not None
            host = EpisodeHost(conductor.episode, agent.mcp_mode)
            try:
                return _run(job, conductor, host, workspace, limit)
            finally:
                host.abandon()
        finally:
            conductor.close()
            _move_files(workspace, Path(job.workspace))
            session = next(iter(results.rglob("session.jsonl")), None)
            if session is not None:
                keep_for_view(session.parent, Path(job.workspace))
                (Path(job.workspace) / "traces").mkdir(exist_ok=True)
                shutil.copyfile(session, Path(job.workspace) / "traces" / "session.jsonl")


def _run(job: Job, conductor: Conductor, host: EpisodeHost, workspace: Path, limit: float) -> Report:
    agent, episode = job.table, conductor.episode
    assert episode is not None
    request = live_request(agent, workspace, host.start(), host.token, timeout=limit, traces=job.collect_traces)
    log: list[str] = []
    result = zero.run(replace(request, remaining_work=host.remaining_work), log.append)
    if result.outcome is zero.Outcome.INTERRUPTED:
        return Report(Outcome.INTERRUPTED, "stopped", result.seconds)
    reason = _REASONS.get(result.outcome, "the agent stopped before its last submission")
    if result.outcome is zero.Outcome.AGENT_FAILED and log:
        reason = log[-1]
    usage = result.usage
    episode.usage.tokens_in, episode.usage.tokens_out = usage.prompt, usage.completion
    episode.usage.cost = usage.cost_usd or 0.0
    host.graded(_ENDINGS.get(result.outcome, Ending.AGENT_ERROR), reason)
    document = json.loads(json.dumps(conductor.finish(episode), default=str))
    store_result(job, document, workspace)
    has_tokens = bool(usage.prompt or usage.completion)
    outcome = outcome_of(document)
    if document["outcome"] in (Ending.AGENT_ERROR, Ending.BUDGET):
        outcome = OUTCOMES[result.outcome]  # the episode ended with the agent: use the outcome of Zero
    return Report(
        outcome,
        "" if document["outcome"] == "pass" else str(document.get("reason") or ""),
        _seconds(document, result.seconds),
        result.turns,
        usage.prompt if has_tokens else None,
        usage.completion if has_tokens else None,
        usage.cost_usd,
        agent.model,
    )


def _seconds(document: Mapping[str, object], otherwise: float) -> float:
    """Seconds until the last submission, not until the CLI ended."""
    used = document.get("usage")
    return float(used["wall_seconds"]) if isinstance(used, dict) and used.get("wall_seconds") else otherwise


def _move_files(workspace: Path, target: Path) -> None:
    """Move the agent's files to the workspace of the run."""
    target.mkdir(parents=True, exist_ok=True)
    for path in workspace.iterdir():
        if path.name not in (".zero", ".home"):
            shutil.move(path, target / path.name)
