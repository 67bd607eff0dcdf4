"""`python -m itbench_leaderboard --config model_leaderboard.toml`; the same command resumes.

Exit codes: 0 all done, 1 an error to fix first (one line says what), 2 wrong usage, 3 some runs are unfinished (budget,
no verdict, or locked by another process), 130 stopped.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from math import inf, nan
from pathlib import Path
from types import FrameType

from itbench_leaderboard import results
from itbench_leaderboard.campaign import Campaign
from itbench_leaderboard.config import AgentTable, Configuration, load
from itbench_leaderboard.errors import ConfigurationError
from itbench_leaderboard.executors.base import Executor
from itbench_leaderboard.incidents import choose, find
from itbench_leaderboard.judging import Judge, judge_settings
from srearena.errors import SreArenaError
from zero.record import printable


def parser() -> argparse.ArgumentParser:
    arguments = argparse.ArgumentParser(
        prog="itbench-leaderboard", description="Run agents on incidents and rank them."
    )
    add = arguments.add_argument
    add("--config", type=Path, required=True, metavar="FILE", help="model_leaderboard.toml")
    add("--runs", type=int, metavar="N", help="runs of each agent on each incident")
    add("--agents", nargs="+", action="extend", default=[], metavar="NAME", help="only these agents")
    add(
        "--scenarios", nargs="+", action="extend", default=[], metavar="ID", help="only these: Scenario-3, 3, a problem"
    )
    add("--rejudge", action="store_true", help="judge all existing runs again; run no agent")
    add("--aggregate-only", action="store_true", help="write the results again; run and judge nothing")
    add("--retry-failed", action="store_true", help="retry failed runs")
    add("--parallel", type=int, metavar="N", help="number of parallel runs")
    add("--budget-usd", type=float, metavar="USD", help="start no run after spending this much")
    add("--timeout", type=float, metavar="SECONDS", help="time limit of one run")
    add(
        "--cold", action="store_true", help="prepare every live problem from scratch, none in a copy of its application"
    )
    add("--executor", choices=("local", "ray"), default="local", help="where runs are executed")
    add("--ray-address", metavar="ADDRESS", help="address of the Ray cluster; by default the one of this machine")
    add("--ray-cpus", type=float, default=1.0, metavar="N", help="CPUs that Ray reserves for a run")
    add("--ray-resources", nargs="+", action="extend", default=[], metavar="NAME=N", help="further resources for a run")
    add("--ray-shared-files", action="store_true", help="all machines share the file system: send no files")
    add("--no-connection-test", action="store_true", help="skip the test requests to models")
    add("--verbose", "-v", action="store_true", help="also print when runs start")
    return arguments


def _overridden(config: Configuration, options: argparse.Namespace) -> Configuration:
    overrides = {"runs_per_scenario": options.runs, "budget_usd": options.budget_usd, "timeout": options.timeout}
    for flag, value in (("--runs", options.runs), ("--parallel", options.parallel)):
        if value is not None and value < 1:
            raise ConfigurationError(f"{flag} must be at least 1")
    for flag, amount in (("--budget-usd", options.budget_usd), ("--timeout", options.timeout)):
        if amount is not None and not amount > 0:
            raise ConfigurationError(f"{flag} must be more than 0")
    return config.model_copy(update={key: value for key, value in overrides.items() if value is not None})


def _agents(config: Configuration, names: Sequence[str]) -> dict[str, AgentTable]:
    agents = config.named_agents()
    for name in names:
        if name not in agents:
            raise ConfigurationError(f"there is no agent {name!r}: there are {', '.join(agents)}")
    return {name: agent for name, agent in agents.items() if not names or name in names}


def _amount(text: str) -> tuple[str, float]:
    name, equals, number = text.partition("=")
    try:
        amount = float(number if equals else "1")
    except ValueError:
        amount = nan
    if not name or not 0 < amount < inf:
        raise ConfigurationError(f"--ray-resources {text}: expected NAME=N, with a number above 0")
    return name, amount


def _executor(options: argparse.Namespace, campaign: Campaign) -> Executor:
    if options.executor == "ray":
        from itbench_leaderboard.executors.ray_cluster import RayCluster

        resources = dict(_amount(each) for each in options.ray_resources)
        cluster = RayCluster(options.ray_address, options.ray_cpus, resources, shared_files=options.ray_shared_files)
        for line in cluster.warnings():
            _say(line)
        return cluster
    from itbench_leaderboard.executors.local import Local

    return Local(() if options.cold else campaign.live_plan())


def _say(line: str) -> None:
    print(printable(line), file=sys.stderr, flush=True)


def execute(options: argparse.Namespace) -> int:
    config = _overridden(load(options.config), options)
    judge = Judge(
        None if options.aggregate_only else judge_settings(config.judge),
        config.k,
        config.leaderboard_dir / ".judge-cache",
        config.judge.provider,
    )
    campaign = Campaign(
        config,
        _agents(config, options.agents),
        choose(find(config), options.scenarios),
        judge,
        _say,
        rejudge=options.rejudge,
        retry_failed=options.retry_failed,
        verbose=options.verbose,
    )
    unfinished = 0
    if not options.aggregate_only:
        campaign.check(connect=not options.no_connection_test)
        executor = _executor(options, campaign)
        try:
            workers = options.parallel or config.workers
            unfinished = campaign.run_all(executor, workers)
        except KeyboardInterrupt:
            _table(campaign).aggregate()
            raise
        finally:
            executor.close()
    leaderboard = _table(campaign).aggregate()
    for line in results.lines(leaderboard):
        print(line)
    print(f"Results: {config.leaderboard_dir / 'results'}")
    if unfinished:
        _say(f"{unfinished} run(s) are left: give the same command again, with more budget if that is spent")
    return 3 if unfinished else 0


def _table(campaign: Campaign) -> Campaign:
    """The campaign of the table: selected agents and incidents, and those that have been run before."""
    config, root = campaign.config, campaign.root
    configured = config.named_agents()
    agents = {n: a for n, a in configured.items() if n in campaign.agents or (root / n / "agent.json").is_file()}
    incidents = [
        one for one in find(config) if one in campaign.incidents or any((root / n / one.name).is_dir() for n in agents)
    ]
    return Campaign(config, agents, incidents, campaign.judge)


def _stop(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


def main(argv: Sequence[str] | None = None) -> int:
    options = parser().parse_args(argv)
    signal.signal(signal.SIGTERM, _stop)
    try:
        return execute(options)
    except KeyboardInterrupt:
        _say("stopped: the same command resumes")
        return 130
    except SreArenaError as problem:
        if os.environ.get("SREARENA_DEBUG"):
            raise
        _say(f"Error: {problem}")
        return 1
