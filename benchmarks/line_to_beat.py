"""What the built-in agents that need no model win on the starter suite: the table of the README.

    python -m benchmarks.line_to_beat                               21 problems at two seeds: a quarter of an hour
    python -m benchmarks.line_to_beat --results FILE --report README.md

Every problem is prepared once per seed, with noise, and each agent plays all of its stages in a fork of that episode.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from math import sqrt
from pathlib import Path
from statistics import NormalDist
from typing import Any

from benchmarks.trivial_agents import AGENTS as TRIVIAL_AGENTS
from benchmarks.trivial_agents import play, store, stored, write_table
from srearena.conductor.trials.problem_suites import problem_suite

AGENTS = ("nothing", *TRIVIAL_AGENTS, "rules")
MARKER = "<!-- line to beat -->"
STAGES = ("detection", "localization", "mitigation")


def table(results: Sequence[dict[str, Any]], suite: str) -> str:
    """Markdown: for each agent the share of trials that it won, its 95 % interval, and the stages that it passed."""
    trials = {(result["problem"], result["seed"]) for result in results}
    lines = [
        f"`{suite}` with noise, {len(trials)} trials (`python -m benchmarks.line_to_beat`):",
        "",
        f"| agent | end to end | {' | '.join(STAGES)} |",
        f"| --- | ---: |{' ---: |' * len(STAGES)}",
    ]
    for agent in AGENTS:
        own = [result for result in results if result["agent"] == agent]
        if own:
            lines.append(f"| `{agent}` | {' | '.join(_cells(own))} |")
    return "\n".join(lines)


def _cells(results: Sequence[dict[str, Any]]) -> list[str]:
    won, count = sum(bool(result["won"]) for result in results), len(results)
    low, high = interval(won, count)
    passed = [sum(bool(result["stages"].get(stage)) for result in results) for stage in STAGES]
    return [f"{won / count:.0%} ({low:.0%} to {high:.0%})", *(f"{number / count:.0%}" for number in passed)]


def interval(successes: int, trials: int) -> tuple[float, float]:
    """Wilson's 95 % interval, which is sensible for shares of 0 and 1 too."""
    z = NormalDist().inv_cdf(0.975)
    share, weight = successes / trials, 1 + z**2 / trials
    centre = (share + z**2 / (2 * trials)) / weight
    half = z / weight * sqrt(share * (1 - share) / trials + z**2 / (4 * trials**2))
    return max(0.0, centre - half), min(1.0, centre + half)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="31,32", help="numbers, separated by commas")
    parser.add_argument("--suite", default="lite")
    parser.add_argument("--results", type=Path, help="file of results, one JSON object per line; what it has is kept")
    parser.add_argument("--report", type=Path, help="page with the markers of the table")
    options = parser.parse_args()
    suite = problem_suite(options.suite)
    results = stored(options.results)
    known = {(result["problem"], result["seed"]) for result in results}
    for seed in map(int, options.seeds.split(",")):
        for problem in suite.problems:
            if (problem, seed) in known:
                continue
            fresh = list(play(problem, seed, AGENTS))
            results += fresh
            store(options.results, fresh)
    print(table(results, suite.name))
    if options.report is not None:
        write_table(options.report, table(results, suite.name), MARKER)


if __name__ == "__main__":
    main()
