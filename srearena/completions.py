"""Completion of values on the command line: problems, suites, agents and runs.

A shell calls this while the user types, so modules are imported only for the value that is completed.
"""

from __future__ import annotations

import click


def problems(invocation: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    from srearena.conductor.problems.registry import ProblemRegistry

    return [name for name in ProblemRegistry().get_problem_ids() if name.startswith(incomplete)]


def agents(invocation: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    from srearena.conductor.agents import agent_names

    return [name for name in agent_names() if name.startswith(incomplete)]


def suites(invocation: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    from srearena.conductor.trials.problem_suites import suite_names

    return [name for name in suite_names() if name.startswith(incomplete)]


def runs(invocation: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    from srearena.conductor.results.store import all_runs

    return [path.name for path in all_runs() if path.name.startswith(incomplete)]
