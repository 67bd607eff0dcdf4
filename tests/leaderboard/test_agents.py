"""Errors before an agent starts do not count against it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from itbench_leaderboard import agents
from itbench_leaderboard.outcomes import Outcome
from srearena.errors import SreArenaError


@pytest.mark.parametrize(
    ("problem", "outcome", "reason"),
    [
        (SreArenaError("no cluster"), Outcome.ENVIRONMENT_ERROR, "no cluster"),
        (ValueError("a bug"), Outcome.ENVIRONMENT_ERROR, "ValueError: a bug"),
        (KeyboardInterrupt(), Outcome.INTERRUPTED, "stopped"),
    ],
)
def test_errors_become_reports(
    problem: BaseException, outcome: Outcome, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def execute(job: Any) -> None:
        raise problem

    monkeypatch.setattr(agents.importlib, "import_module", lambda name: SimpleNamespace(execute=execute))
    job: Any = SimpleNamespace(agent={"kind": "cli"}, incident=SimpleNamespace(kind="snapshot"))
    report = agents.execute(job)
    assert (report.outcome, report.reason) == (outcome, reason)
