"""Run a coding CLI on a recorded incident: one run of Zero, with the recording as evidence."""

from __future__ import annotations

from pathlib import Path

import zero
from itbench_leaderboard.config import AgentTable
from itbench_leaderboard.jobs import Job
from itbench_leaderboard.outcomes import Outcome, Report
from zero.trajectory import Prices

OUTCOMES = {
    zero.Outcome.ANSWERED: Outcome.ANSWERED,
    zero.Outcome.NO_ANSWER: Outcome.NO_ANSWER,
    zero.Outcome.AGENT_FAILED: Outcome.AGENT_FAILED,
    zero.Outcome.TURNS: Outcome.TURNS,
    zero.Outcome.COST: Outcome.COST,
    zero.Outcome.TIMEOUT: Outcome.TIMEOUT,
    zero.Outcome.INTERRUPTED: Outcome.INTERRUPTED,
}


def request_for(
    agent: AgentTable,
    workspace: Path,
    snapshot: Path | None,
    *,
    timeout: float | None = None,
    collect_traces: bool = False,
) -> zero.Request:
    """The request to Zero for one run of this agent."""
    prices = None
    if agent.price_input is not None and agent.price_output is not None:
        prices = Prices(agent.price_input, agent.price_output, agent.price_cached)
    query = [agent.user_query] if agent.user_query else []
    return zero.Request(
        workspace,
        cli=agent.cli,
        cli_args=("exec", *(("-m", agent.model) if agent.model else ()), *query),
        command=agent.command,
        program=agent.program,
        read_only_dirs=() if snapshot is None else (snapshot,),
        prompt=agent.prompt_file or None,
        variables={key.upper(): value for key, value in agent.variables.items()},
        mcp_servers=agent.mcp_servers,
        max_retries=agent.max_retries,
        timeout=timeout,
        max_cost=agent.max_cost,
        max_turns=agent.max_turns,
        prices=prices,
        provider=agent.provider or None,
        base_url=agent.base_url,
        key_variable=agent.api_key_env,
        wire_api=agent.wire_api,
        litellm_config=agent.litellm_config,
        sandbox=agent.sandbox,
        exposed=agent.expose,
        passed_variables=agent.pass_env,
        collect_traces=collect_traces,
    )


def execute(job: Job) -> Report:
    agent = job.table
    request = request_for(
        agent,
        Path(job.workspace),
        Path(job.incident.path),
        timeout=agent.timeout or job.timeout,
        collect_traces=job.collect_traces,
    )
    log: list[str] = []
    result = zero.run(request, log.append)
    usage = result.usage
    has_tokens = bool(usage.prompt or usage.completion)
    reason = "" if result.outcome is zero.Outcome.ANSWERED else "; ".join(result.complaints) or "".join(log[-1:])
    return Report(
        OUTCOMES[result.outcome],
        reason,
        result.seconds,
        result.turns,
        usage.prompt if has_tokens else None,
        usage.completion if has_tokens else None,
        usage.cost_usd,
        agent.model,
    )
