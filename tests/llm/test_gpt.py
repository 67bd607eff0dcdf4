"""`python3 clients/gpt.py` as a user runs it, with a scripted model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srearena.conductor.trials.shared_budget import SharedBudget
from tests.llm.model_server import Turn, call, results_in, serving

GPT = Path(__file__).parents[2] / "clients" / "gpt.py"


def typed(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    environment = {**kept, "SREARENA_RESULTS": str(folder / "results"), **variables}
    command = [sys.executable, str(GPT), *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_a_problem_is_solved_with_a_transcript_to_read(tmp_path: Path) -> None:
    def script(body: dict[str, Any], number: int) -> Turn:
        return call("submit", solution="Yes") if results_in(body) else call("get_alerts")

    with serving(script) as model:
        (tmp_path / ".env").write_text(
            f"SREARENA_MODEL=gpt-4.1\nOPENAI_BASE_URL={model.url}/v1\nOPENAI_API_KEY=k-4711\n"
        )
        done = typed(tmp_path, "--stages", "detection", "--budget-usd", "1", "--max-steps", "5")
    assert done.returncode == 0, done.stderr
    assert "Outcome: pass" in done.stdout and "2 steps, 2,000 tokens in" in done.stdout
    assert "I will use get_alerts." in done.stderr and "[2] submit(solution='Yes')" in done.stderr
    assert model.headers[0]["authorization"] == "Bearer k-4711"
    records = "".join(path.read_text() for path in (tmp_path / "results").rglob("*") if path.is_file())
    assert '"model call"' in records and "k-4711" not in records + done.stdout + done.stderr


def test_what_is_missing_is_one_line(tmp_path: Path) -> None:
    for words, output in (
        ((), "OPENAI_API_KEY"),  # the GPT-4 baseline, unless a model is named
        (("--model", "gpt-4.1"), "OPENAI_API_KEY"),
        (("--model", "local/mine", "--budget-usd", "1"), "needs prices"),
        (("--model", "local/mine", "--agent-option", "red"), "KEY=VALUE"),
        (("--model", "local/mine", "--suite", "scale_*", "--budget-usd", "1"), "needs prices"),
        (("--model", "local/mine", "--suite", "no_such_*"), "no_such_"),
        (("--model", "local/mine", "--agent-option", "base_url=http://127.0.0.1:9/v1"), "cannot be reached"),
    ):
        done = typed(tmp_path, *words)
        assert done.returncode == 1 and output in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_a_suite_shares_one_budget_and_goes_on_with_a_larger_one(tmp_path: Path) -> None:
    def cautious(body: dict[str, Any], number: int) -> Turn:
        return call("submit", solution="Yes")  # $0.0021 apiece

    words = ("--suite", "pod_failure_hotel_res", "--suite", "scale_pod_zero_social_net", "--stages", "detection")
    with serving(cautious) as model:
        (tmp_path / ".env").write_text(f"OPENAI_BASE_URL={model.url}/v1\nOPENAI_API_KEY=k\nSREARENA_MODEL=gpt-4.1\n")
        first = typed(tmp_path, *words, "--budget-usd", "0.002")
        assert first.returncode == 0 and len(model.requests) == 1, first.stderr + first.stdout
        assert "1 more were not started" in first.stdout and "1 trials: " in first.stdout
        second = typed(tmp_path, *words, "--budget-usd", "0.1")
        assert second.returncode == 0 and len(model.requests) == 2, second.stderr + second.stdout
    assert "2 trials: " in second.stdout and "not begun" not in second.stdout


def test_a_single_problem_is_told_to_the_real_wandb_offline(tmp_path: Path) -> None:
    pytest.importorskip("wandb")
    with serving(lambda body, number: call("submit", solution="Yes")) as model:
        (tmp_path / ".env").write_text(
            f"OPENAI_BASE_URL={model.url}/v1\nOPENAI_API_KEY=k-4711\nUSE_WANDB=true\nWANDB_MODE=offline\n"
        )
        done = typed(tmp_path, "--model", "gpt-4.1", "--stages", "detection", "--quiet", WANDB_SILENT="true")
    assert done.returncode == 0 and "W&B: " in done.stderr, done.stderr
    (result,) = (json.loads(path.read_text()) for path in (tmp_path / "results").rglob("result.json"))
    (table,) = (tmp_path / "results").rglob("summary_*.table.json")
    shown = json.loads(table.read_text())
    row = dict(zip(shown["columns"], shown["data"][0], strict=True))
    assert row["session_id"] == result["session"] and row["tokens_in"] == 1000 and row["outcome"] == "pass"
    (log,) = (tmp_path / "results").rglob("*.wandb")
    assert b"trajectories-" in log.read_bytes() and b"k-4711" not in log.read_bytes()


DOLLARS = st.one_of(st.just(0.0), st.floats(1e-6, 10))


@given(
    DOLLARS,
    st.lists(st.tuples(st.floats(0, 1), st.booleans(), st.one_of(st.none(), DOLLARS))),
    st.integers(1, 4),
)
def test_no_more_is_spent_than_there_is(
    total: float, trials: list[tuple[float, bool, float | None]], parallel: int
) -> None:
    shared = SharedBudget(total)
    running: dict[int, tuple[float, bool]] = {}
    for number, (share, lost, most) in enumerate(trials):
        if len(running) == parallel:
            done, (cost, gone) = running.popitem()
            shared.settle(done, None if gone else cost)
        free = shared.free
        part = shared.reserve(number, parallel - len(running), most)
        assert (part is None) == (min(free, 10 if most is None else most) == 0.0)
        if part is not None:
            assert part <= free and (most is None or part <= most)
            running[number] = (part * share, lost)
        assert shared.spent + sum(shared.reserved.values()) <= total * (1 + 1e-9) + 1e-12
    for done, (cost, _) in running.items():
        shared.settle(done, cost)
    assert not shared.reserved and shared.free == pytest.approx(total - shared.spent, abs=1e-9)
