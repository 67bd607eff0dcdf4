"""Progress output of a campaign: runs done, remaining time, cost, passes."""

from __future__ import annotations

import pytest

from itbench_leaderboard import progress
from itbench_leaderboard.progress import Progress


def test_every_run_that_ends_says_what_is_left_what_it_cost_and_how_well_it_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [1000.0]
    monkeypatch.setattr(progress, "monotonic", lambda: now[0])
    lines: list[str] = []
    campaign = Progress(5, lines.append)
    campaign.add_finished(0.5, 1.0)
    now[0] += 120.0
    campaign.add_cost(0.25)
    campaign.report_run("a / Scenario-1 / 1", "answered", {"flat_scores": {"score": 0.0}})
    assert lines[-1] == "[2/5] a / Scenario-1 / 1: answered, score 0.00; 6 min left, 0.75 USD, 1 of 2 passed"
    now[0] += 40.0
    campaign.report_run("b / Scenario-1 / 1", "timeout", {"flat_scores": {}}, "the limit\x1b[31m is reached")
    assert "score - (the limit" in lines[-1] and "\x1b" not in lines[-1]
    assert "3 min left" in lines[-1] and "1 of 2 passed" in lines[-1]
    for run in (2, 3):
        campaign.report_run(f"b / Scenario-1 / {run}", "answered", {"flat_scores": {"score": 1.0}})
    assert "all done" in lines[-1] and "3 of 4 passed" in lines[-1]
