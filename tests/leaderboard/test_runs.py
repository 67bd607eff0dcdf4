"""The state machine of one run, in every state that a kill can leave."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from itbench_leaderboard.errors import Busy
from itbench_leaderboard.outcomes import RETRIED, Outcome, Report
from itbench_leaderboard.runner import Run, run_of


@pytest.fixture
def run(tmp_path: Path) -> Run:
    created = run_of(tmp_path, "agent", "Scenario-1", 1)
    created.directory.mkdir(parents=True)
    return created


def answer(run: Run, text: str = "{}") -> Report:
    attempt = run.begin("now")
    (attempt.workspace / "agent_output.json").write_text(text)
    report = Report(Outcome.ANSWERED, cost_usd=0.5)
    run.end(attempt, report)
    return report


def test_a_run_ends_with_its_output_published(run: Run) -> None:
    answer(run, '{"a": 1}')
    assert json.loads(run.output.read_text()) == {"a": 1}
    assert run.state()["state"] == "ended"
    assert not run.needs_agent(5, RETRIED)


def test_killed_while_the_agent_worked_the_attempt_is_repeated_and_does_not_count_as_a_try(run: Run) -> None:
    attempt = run.begin("now")
    (attempt.workspace / "agent_output.json").write_text('{"half": ')
    assert not run.recover()
    assert run.needs_agent(0, RETRIED)
    assert not run.output.exists()
    assert run.state()["attempts"][0]["outcome"] == "interrupted"


def test_killed_between_report_and_publication_the_answer_is_not_lost(run: Run) -> None:
    attempt = run.begin("now")
    (attempt.workspace / "agent_output.json").write_text('{"a": 1}')
    (attempt.directory / "report.json").write_text(json.dumps(Report(Outcome.ANSWERED).as_document()))
    assert run.recover()
    assert json.loads(run.output.read_text()) == {"a": 1}
    assert not run.needs_agent(5, RETRIED)


def test_what_an_earlier_attempt_published_never_counts_for_a_later_one(run: Run) -> None:
    attempt = run.begin("now")
    (attempt.workspace / "agent_output.json").write_text('{"old": 1}')
    run.end(attempt, Report(Outcome.AGENT_FAILED))
    run.store_verdict({"flat_scores": {}})
    run.end(run.begin("later"), Report(Outcome.NO_ANSWER))
    assert not run.output.exists()
    assert not run.verdict.exists()


def test_a_link_in_place_of_an_answer_does_not_bring_an_earlier_one_back(run: Run) -> None:
    attempt = run.begin("now")
    (attempt.workspace / "agent_output.json").write_text('{"old": 1}')
    run.end(attempt, Report(Outcome.AGENT_FAILED))
    later = run.begin("later")
    os.symlink("elsewhere", later.workspace / "agent_output.json")
    run.end(later, Report(Outcome.NO_ANSWER))
    assert not run.output.exists()


def test_failures_are_tried_again_by_policy_and_then_stand(run: Run) -> None:
    for tries in range(1, 3):
        run.end(run.begin("now"), Report(Outcome.AGENT_FAILED))
        assert run.needs_agent(1, RETRIED) == (tries == 1)
    run.end(run.begin("now"), Report(Outcome.TIMEOUT))
    assert not run.needs_agent(9, RETRIED)


def test_one_process_at_a_time(run: Run) -> None:
    with run.locked(), pytest.raises(Busy, match="another process"), run.locked():
        pass


def test_links_out_of_a_workspace_are_not_followed(run: Run, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("key")
    attempt = run.begin("now")
    os.symlink(secret, attempt.workspace / "agent_output.json")
    (attempt.workspace / "more").mkdir()
    os.symlink(tmp_path, attempt.workspace / "more" / "all")
    run.end(attempt, Report(Outcome.ANSWERED))
    assert not run.output.exists()
    assert list((run.directory / "more").iterdir()) == []


def test_an_agent_cannot_publish_its_own_verdict(run: Run) -> None:
    attempt = run.begin("now")
    for name in ("judge_output.json", "state.json"):
        (attempt.workspace / name).write_text('{"flat_scores": {"score": 1}}')
    run.end(attempt, Report(Outcome.ANSWERED))
    assert not run.verdict.exists()
    assert run.state()["state"] == "ended"


def test_a_damaged_state_file_is_a_run_not_begun(run: Run) -> None:
    (run.directory / "state.json").write_text("{")
    assert run.needs_agent(0, ())
