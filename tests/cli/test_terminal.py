"""What a person at a terminal meets: suggestions, completion, suites, and the end of a command by a signal."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

import pytest
from click.testing import CliRunner

from srearena.cli import cli, run
from srearena.conductor.errors import ArenaError
from srearena.conductor.problems.metadata import Difficulty, Level
from srearena.conductor.problems.registry import ProblemRegistry
from srearena.conductor.results.store import failed_document, write_trial
from srearena.conductor.trials.problem_suites import problem_suite
from srearena.conductor.trials.suite import Suite
from srearena.conductor.trials.trial import Trial
from srearena.temporary import sweep
from tests.cli.terminals import started_on_terminal

PROBLEM = "noop_social_network"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("problmes",), "there is no command 'problmes': did you mean problems?"),
        (("xyzzy",), "there is no command 'xyzzy', `srearena --help` lists them"),
        (("problems", "--level", "foo"), "'foo' is not one of 'none', 'application'"),
        (("run", "--suite", "lit"), "there is no suite 'lit': did you mean lite?"),
        (("run", "--suite", "lite@99"), "there is no suite 'lite@99'"),
        (("completion", "tcsh"), "'tcsh' is not one of 'bash', 'zsh', 'fish'"),
    ],
)
def test_a_mistake_is_named_with_what_was_meant(
    words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        run(list(words))
    assert ended.value.code in (1, 2)
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "shows"),
    [
        (("judge", "--help"), "itbench-eval"),
        (("leaderboard", "--help"), "itbench-leaderboard"),
        (("tools", "--list"), "alert_summary"),
        (("zero", "--help"), "zero [OPTIONS] --"),
    ],
)
def test_the_other_commands_are_reached_from_one(
    words: tuple[str, ...], shows: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with pytest.raises(SystemExit) as ended:
            run(list(words))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert not ended.value.code
    assert shows in capsys.readouterr().out


def completed(monkeypatch: pytest.MonkeyPatch, *words: str) -> list[str]:
    """What bash is offered for the last of the words."""
    monkeypatch.setenv("COMP_WORDS", " ".join(("srearena", *words)))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    monkeypatch.setenv("_SREARENA_COMPLETE", "bash_complete")
    done = CliRunner().invoke(cli, prog_name="srearena")
    return [line.partition(",")[2] for line in done.output.splitlines()]


def test_commands_problems_agents_suites_and_runs_are_completed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "rules-1" / "trials").mkdir(parents=True)
    monkeypatch.setenv("SREARENA_RESULTS", str(tmp_path))
    assert completed(monkeypatch, "prob") == ["problems"]
    assert completed(monkeypatch, "lead") == ["leaderboard"]
    assert completed(monkeypatch, "run", "noop_soc") == [PROBLEM]
    assert completed(monkeypatch, "run", "--agent", "rul") == ["rules"]
    assert completed(monkeypatch, "run", "--suite", "li") == ["lite"]
    assert completed(monkeypatch, "results", "ru") == completed(monkeypatch, "view", "ru") == ["rules-1"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_has_its_script(shell: str) -> None:
    script = CliRunner().invoke(cli, ["completion", shell]).output
    assert f"_SREARENA_COMPLETE={shell}_complete" in script


def test_the_lite_suite_spans_levels_difficulties_and_applications() -> None:
    registry = ProblemRegistry()
    suite = problem_suite("lite")
    assert suite == problem_suite("lite@1") and len(set(suite.problems)) == len(suite.problems) == 21
    summaries = [registry.get_problem(name).summary() for name in suite.problems]
    assert [summary.id for summary in summaries] == list(suite.problems)
    assert {summary.level for summary in summaries} == set(get_args(Level))
    assert {summary.difficulty for summary in summaries} == set(get_args(Difficulty))
    assert len({summary.application for summary in summaries}) == 7, "every application of the catalogue"


def test_suites_follow_the_catalogue() -> None:
    names = set(ProblemRegistry().get_problem_ids())
    assert set(problem_suite("full").problems) == names
    assert PROBLEM in problem_suite("noop").problems
    assert "capacity_decrease_rpc_retry_storm" in problem_suite("metastable").problems
    with pytest.raises(ArenaError, match="choose from lite, full, noop"):
        problem_suite("nothing-like-it")


def test_an_old_id_with_a_stage_runs_under_the_id_of_its_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned: list[Trial] = []

    def perform(self: Suite, watch: object) -> list[dict[str, Any]]:
        planned.extend(self.trials)
        return [{"problem": trial.problem, "trial": trial.number, "outcome": "pass"} for trial in self.trials]

    monkeypatch.setenv("SREARENA_RESULTS", str(tmp_path))
    monkeypatch.setattr(Suite, "perform", perform)
    done = CliRunner().invoke(cli, ["run", "k8s_target_port-misconfig-mitigation-1", "--json"])
    assert json.loads(done.output)["trials"] == 1
    assert [(trial.problem, trial.spec.stages) for trial in planned] == [("k8s_target_port-misconfig", ("mitigation",))]
    both = ["run", "k8s_target_port-misconfig-mitigation-1", "k8s_target_port-misconfig-detection-1"]
    assert "with another choice of stages" in str(CliRunner().invoke(cli, both).exception)


def test_colours_are_for_terminals_and_those_who_want_them(tmp_path: Path) -> None:
    document = failed_document("wrong_port", agent="rules", seed=0, trial=0, run="run-1", reason="no such model")
    write_trial(tmp_path / "run-1", document)
    words, variables = ("-m", "srearena", "results", "run-1"), {"SREARENA_RESULTS": str(tmp_path), "TERM": "xterm"}
    plain = subprocess.run([sys.executable, *words], env={**os.environ, **variables}, capture_output=True, text=True)
    assert "environment error" in plain.stdout and "\x1b" not in plain.stdout
    with started_on_terminal(*words, **variables, NO_COLOR="") as terminal:
        assert "\x1b[" in terminal.read_all()
    with started_on_terminal(*words, **variables, NO_COLOR="1") as terminal:
        assert "\x1b" not in terminal.read_all() and "environment error" in terminal.printed


@contextmanager
def started(tmp_path: Path, *words: str, module: str = "srearena") -> Iterator[subprocess.Popen[str]]:
    """A command in a process group of its own, with its own folders; nothing of the group survives the block."""
    folders = {"TMPDIR": tmp_path / "tmp", "SREARENA_RESULTS": tmp_path / "results"}
    for folder in folders.values():
        folder.mkdir()
    environment = {**os.environ, **{name: str(folder) for name, folder in folders.items()}}
    command = [sys.executable, "-m", module, *words]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, env=environment, text=True, start_new_session=True, **pipes) as process:
        try:
            yield process
        finally:
            if group_is_alive(process.pid):
                os.killpg(process.pid, signal.SIGKILL)


def group_is_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def wait_for(condition: Any) -> None:
    deadline = time.monotonic() + 200
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_sigterm_ends_the_processes_of_all_trials_and_says_how_to_resume(tmp_path: Path) -> None:
    with started(tmp_path, "run", PROBLEM, "--agent", "nothing", "--run", "ended") as process:
        live = tmp_path / "results" / "ended" / ".live"
        wait_for(lambda: live.is_dir() and any(live.iterdir()))
        process.terminate()
        _, errors = process.communicate(timeout=200)
        assert process.returncode == 143
        assert "Stopped: 0 of 1 trials have results" in errors and "The same command resumes." in errors
        wait_for(lambda: not group_is_alive(process.pid))
    assert list(live.iterdir()) == [], "the log of a trial that was stopped"


def test_a_trial_that_is_told_to_stop_again_and_again_leaves_no_log(tmp_path: Path) -> None:
    """Ctrl-C reaches the process of a trial twice, from the terminal and from the run, as it does after SIGTERM."""
    for number in (signal.SIGTERM, signal.SIGINT):
        folder = tmp_path / str(int(number))
        folder.mkdir()
        trial = Trial(PROBLEM, "nothing", str(folder / "run"))
        with started(folder, module="srearena.conductor.trials.worker") as process:
            assert process.stdin is not None
            process.stdin.write(json.dumps(trial.as_document()) + "\n")
            process.stdin.flush()
            live = folder / "run" / ".live"
            wait_for(lambda live=live: live.is_dir() and any(live.iterdir()))
            while process.poll() is None:
                process.send_signal(number)
                time.sleep(0.002)
        assert process.returncode == 130
        assert list(live.iterdir()) == []


def test_the_processes_of_trials_end_with_a_killed_run(tmp_path: Path) -> None:
    with started(tmp_path, "run", PROBLEM, "--agent", "nothing", "--run", "killed") as process:
        live = tmp_path / "results" / "killed" / ".live"
        wait_for(lambda: live.is_dir() and any(live.iterdir()))
        process.kill()
        process.wait()
        wait_for(lambda: not group_is_alive(process.pid))
    assert list(live.iterdir()) == [], "the log of a trial that was stopped"
    sweep()  # of what was made in the very moment of the end
    assert list((tmp_path / "tmp").iterdir()) == []


def test_serve_grades_and_prints_its_result_when_it_is_terminated(tmp_path: Path) -> None:
    with started(tmp_path, "serve", PROBLEM, "--mcp", "none", "--json") as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["url"].startswith("http://127.0.0.1:")
        process.terminate()
        output, errors = process.communicate(timeout=200)
        assert (process.returncode, errors) == (0, "")
        result = json.loads(output)["result"]
        assert (result["problem"], result["outcome"]) == (PROBLEM, "agent error")
    assert list((tmp_path / "results" / ".live").iterdir()) == []
    assert list((tmp_path / "tmp").iterdir()) == []
    assert (tmp_path / "results" / result["session"] / "trials" / PROBLEM / "0" / "result.json").is_file()
