"""Aggregation of verdicts into a ranking: denominators, significance, ties."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from itbench_leaderboard.config import AgentTable
from itbench_leaderboard.incidents import Incident
from itbench_leaderboard.outcomes import Outcome, Report
from itbench_leaderboard.results import aggregate
from itbench_leaderboard.runner import run_of


def judged(root: Path, agent: str, incident: str, number: int, score: float | None, outcome: Outcome) -> None:
    run = run_of(root, agent, incident, number)
    run.directory.mkdir(parents=True)
    run.end(run.begin("now"), Report(outcome, cost_usd=0.5))
    run.store_verdict(
        {
            "schema_version": "leaderboard-judge-v1",
            "metadata": {"outcome": str(outcome), "error": None, "cost_usd": 0.5},
            "eval_result": {"justification": ""},
            "flat_scores": {} if score is None else {"score": score},
        }
    )


def board(root: Path, agents: dict[str, list[float | None]], runs: int = 1) -> list[dict[str, Any]]:
    """Agents with a score for each incident; None is a run with an environment error."""
    count = max(len(scores) for scores in agents.values())
    for agent, scores in agents.items():
        for place, score in enumerate(scores):
            outcome = Outcome.ENVIRONMENT_ERROR if score is None else Outcome.ANSWERED if score else Outcome.TIMEOUT
            judged(root, agent, f"Scenario-{place + 1}", 1, score, outcome)
    incidents = [Incident(f"Scenario-{number}", "snapshot") for number in range(1, count + 1)]
    tables = {name: AgentTable(name=name) for name in agents}
    rows: list[dict[str, Any]] = aggregate(root, tables, incidents, runs=runs, k=3)["rankings"]
    return rows


def test_failures_are_zeros_spoilt_runs_are_named_and_missing_ones_counted(tmp_path: Path) -> None:
    (row,) = board(tmp_path, {"a": [1.0, 0.0, None]}, runs=2)
    assert row["score"] == 0.5
    assert (row["planned"], row["graded"], row["excluded"], row["missing"]) == (6, 2, 1, 3)
    assert row["outcomes"] == {"answered": 1, "environment_error": 1, "not_run": 3, "timeout": 1}
    assert row["cost_usd"] == 1.5


def test_a_small_difference_is_called_noise_and_a_large_one_is_not(tmp_path: Path) -> None:
    rows = board(tmp_path, {"low": [0.0] * 8, "top": [1.0] * 8, "near": [1.0] * 7 + [0.0]})
    assert [row["agent"] for row in rows] == ["top", "near", "low"]
    assert [row["against_next"]["within_noise"] for row in rows[:2]] == [True, False]
    assert rows[2]["against_first"]["difference"] == -1.0


def test_equal_agents_share_a_rank(tmp_path: Path) -> None:
    rows = board(tmp_path, {"b": [1.0, 0.5], "a": [0.5, 1.0], "c": [0.1, 0.1]})
    assert [(row["rank"], row["agent"]) for row in rows] == [(1, "a"), (1, "b"), (3, "c")]


def test_an_agent_with_nothing_graded_is_last_and_has_no_score(tmp_path: Path) -> None:
    rows = board(tmp_path, {"a": [None], "b": [0.0]})
    assert [(row["agent"], row["score"]) for row in rows] == [("b", 0.0), ("a", None)]


@pytest.mark.parametrize("metric", ["score"])
def test_aggregating_twice_is_aggregating_once(tmp_path: Path, metric: str) -> None:
    first = board(tmp_path, {"a": [1.0, 0.5], "b": [0.5, 0.5]})
    tables = {name: AgentTable(name=name) for name in "ab"}
    incidents = [Incident(f"Scenario-{number}", "snapshot") for number in (1, 2)]
    assert aggregate(tmp_path, tables, incidents, runs=1, k=3, metric=metric)["rankings"] == first
