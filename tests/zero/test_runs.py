"""Whole runs with agents of a few lines: answers, attempts, limits, and how each of them ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.zero.watching import comes, goes
from zero import Outcome, Request, adapters, run

GOOD = '{"entities": [], "propagations": [], "alerts_explained": []}'
WRITES = f"pathlib.Path(sys.argv[2]).write_text('{GOOD}')"
Agent = Callable[[str], str]
Zero = Callable[..., Any]


def run_file(workspace: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((workspace / "traces" / "run.json").read_text())
    return found


def options(command: str, *more: str) -> list[str]:
    return ["--cli", "command", "--command", command, "--sandbox", "off", *more]


def test_a_good_answer_ends_the_run(zero: Zero, agent: Agent, workspace: Path) -> None:
    done = zero(*options(agent(f"print('working'); {WRITES}")), after=("exec", "-m", "gpt", "go on"))
    assert done.code == 0, done.stderr
    assert done.stdout == ""
    record = run_file(workspace)
    assert (record["outcome"], record["output_valid"], record["model"], len(record["attempts"])) == (
        "answered",
        True,
        "gpt",
        1,
    )
    steps = json.loads((workspace / "traces" / "trajectory.json").read_text())["steps"]
    assert [(step["source"], step["message"]) for step in steps] == [("user", "go on"), ("agent", "working")]
    assert (workspace / "traces" / "stdout.log").read_text() == "working\n"


def test_the_agent_is_told_exactly_what_is_wrong_until_it_is_right(zero: Zero, agent: Agent, workspace: Path) -> None:
    command = agent(
        f"""
        print(sys.argv[3], file=sys.stderr)
        out = pathlib.Path(sys.argv[2])
        print("attempt", sys.argv[1])
        if sys.argv[1] == "2":
            out.write_text("[1,")
        elif sys.argv[1] == "3":
            out.write_text('{GOOD}')
        """
    )
    done = zero(*options(command), after=("exec",))
    assert done.code == 0, done.stderr
    logs = [(workspace / "traces" / "attempts" / str(n) / "stderr.log").read_text() for n in (1, 2, 3)]
    assert "does not exist" in logs[1]
    assert "is not JSON" in logs[2]
    assert (workspace / "traces" / "attempts" / "2" / "agent_output.json").read_text() == "[1,"
    everything = (workspace / "traces" / "stdout.log").read_text()
    assert [f"attempt {n}" in everything for n in (1, 2, 3)] == [True] * 3, "nothing of an attempt is lost"


@pytest.mark.parametrize(("retries", "attempts"), [("0", 1), ("2", 3)])
def test_retries_have_an_end(zero: Zero, agent: Agent, workspace: Path, retries: str, attempts: int) -> None:
    done = zero(*options(agent("print('hm')"), "--max-retries", retries), after=("exec",))
    assert done.code == 3
    assert done.stderr.strip().splitlines()[-1].startswith("zero: no_answer: the file")
    assert len(run_file(workspace)["attempts"]) == attempts


def test_the_output_of_an_earlier_run_never_counts(zero: Zero, agent: Agent, workspace: Path) -> None:
    assert zero(*options(agent(WRITES)), after=("exec",)).code == 0
    done = zero(*options(agent("print('nothing')"), "--max-retries", "0"), after=("exec",))
    assert done.code == 3, "the answer of the first run is still a valid file somewhere, but not this run's"
    assert "of an earlier run was moved to" in done.stderr
    assert not (workspace / "agent_output.json").exists()
    archived = list((workspace / ".zero").rglob("run.json"))
    assert [json.loads(path.read_text())["outcome"] for path in archived] == ["answered"], "and its record is kept"


def test_an_agent_that_does_not_work_is_not_tried_for_ever(zero: Zero, agent: Agent, workspace: Path) -> None:
    done = zero(*options(agent("sys.exit('no key')")), after=("exec",))
    assert done.code == 4
    assert len(run_file(workspace)["attempts"]) == 2
    assert "ended with code 1" in done.stderr


def test_time_is_limited_for_the_whole_run(zero: Zero, agent: Agent, workspace: Path) -> None:
    slow = agent("import time; print('begun', flush=True); time.sleep(600)")
    done = zero(*options(slow, "--timeout", "2"), after=("exec",))
    assert done.code == 124
    assert run_file(workspace)["outcome"] == "timeout"
    assert (workspace / "traces" / "stdout.log").read_text() == "begun\n"


def test_an_answer_in_time_counts_even_if_the_agent_then_dawdles(zero: Zero, agent: Agent, workspace: Path) -> None:
    done = zero(*options(agent(f"{WRITES}; import time; time.sleep(600)"), "--timeout", "2"), after=("exec",))
    assert done.code == 0
    assert run_file(workspace)["attempts"][0]["stopped_by"] == "timeout"


def test_the_agents_environment_holds_what_it_needs_and_no_secrets(zero: Zero, agent: Agent, workspace: Path) -> None:
    command = agent(f"print(json.dumps(dict(os.environ))); {WRITES}")
    extra = {"JUDGE_API_KEY": "judge-secret", "WANTED": "wanted-value"}
    done = zero(*options(command, "--pass-env", "WANTED"), after=("exec",), **extra)
    assert done.code == 0, done.stderr
    seen = json.loads((workspace / "traces" / "stdout.log").read_text())
    assert seen["WANTED"] == "wanted-value"
    assert "judge-secret" not in json.dumps(seen)
    assert seen["HOME"].startswith(str(workspace))


def test_evidence_is_copied_without_the_answer_key(
    zero: Zero, agent: Agent, workspace: Path, snapshot: Path, tmp_path: Path
) -> None:
    prompt = tmp_path / "prompt.md"
    prompt.write_text("---\nmcp_servers: []\n---\nLook into $SNAPSHOT_DIRS.\n")
    command = agent(f"[print(p) for p in pathlib.Path('evidence').rglob('*')]; {WRITES}")
    more = ("-r", str(snapshot), "--prompt-file", str(prompt), "-V", f"snapshot_dirs={snapshot}")
    done = zero(*options(command, *more), after=("exec",))
    assert done.code == 0, done.stderr
    assert "no sandbox" in done.stderr
    listed = (workspace / "traces" / "stdout.log").read_text()
    assert "otel_logs_raw.tsv" in listed and "ground_truth" not in listed
    assert (workspace / "AGENTS.md").read_text() == f"Look into {workspace / 'evidence' / 'Scenario-7'}.\n"
    assert (snapshot / "ground_truth.yaml").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--prompt-file", "offline_investigation"), "SNAPSHOT_DIRS"),
        (("--prompt-file", "nowhere.md"), "no prompt at nowhere.md"),
        (("-r", "/nowhere"), "no directory at /nowhere"),
        (("--output-file", "../out.json"), "not inside the workspace"),
        (("--max-cost", "1"), "--price-input"),
        (("--pass-env", "NO_SUCH_VARIABLE"), "no such variable"),
        (("--cli", "abacus"), "no coding CLI is called abacus"),
        (("--cli", "codex", "--program", "no-such-codex"), "npm install -g @openai/codex"),
        (("--command", "agent {oops}"), "agent is not installed"),
        (("--command", "cat {oops}"), "unknown placeholder {oops}"),
        (("--command", "'"), "cannot be split"),
    ],
)
def test_errors_are_reported_before_the_start(zero: Zero, arguments: tuple[str, ...], says: str) -> None:
    done = zero(*options("cat"), *arguments, after=("exec",))
    assert done.code == 1
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_dry_run_builds_and_starts_nothing(zero: Zero, agent: Agent, workspace: Path) -> None:
    done = zero(*options(agent(WRITES), "--dry-run"), after=("exec", "-m", "gpt"))
    assert done.code == 0
    assert "would run:" in done.stderr
    assert not (workspace / "agent_output.json").exists()
    assert (workspace / "mcp.json").exists()


def test_the_documented_dry_run_works_without_codex(zero: Zero, workspace: Path) -> None:
    prompt = Path(__file__).parents[2] / "zero" / "zero-config" / "prompts" / "react_shell_investigation.md"
    arguments = ("--dry-run", "--prompt-file", str(prompt), "--variable", "SNAPSHOT_DIRS=/path/to/scenario")
    done = zero(*arguments, "--program", "no-such-codex", after=("exec", "-m", "openai/gpt-5.1"))
    assert done.code == 0, done.stderr
    assert "/path/to/scenario" in (workspace / "AGENTS.md").read_text()
    assert (workspace / "config.toml").exists()
    (rules,) = (path for path in workspace.rglob("*.rules"))
    assert rules.read_text() == (prompt.parents[1] / "policy" / "investigation.rules").read_text()


def test_two_runs_do_not_share_a_workspace(zero: Zero, agent: Agent, workspace: Path) -> None:
    slow = agent("import time; pathlib.Path('begun').touch(); time.sleep(600)")
    command = [sys.executable, "-m", "zero", "-w", str(workspace), *options(slow), "--", "exec"]
    first = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        comes(workspace / "begun")
        second = zero(*options(agent(WRITES)), after=("exec",))
        assert second.code == 1
        assert "another run uses" in second.stderr
        assert (workspace / "begun").exists()
    finally:
        first.terminate()
        first.wait(30)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_everything_in_good_order(
    agent: Agent, workspace: Path, number: signal.Signals, code: int
) -> None:
    slow = agent(
        """
        import subprocess, time
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
        pathlib.Path("child").write_text(str(child.pid))
        pathlib.Path("begun").touch()
        time.sleep(600)
        """
    )
    command = [sys.executable, "-m", "zero", "-w", str(workspace), *options(slow), "--", "exec"]
    run = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    comes(workspace / "begun")
    run.send_signal(number)
    _, errors = run.communicate(timeout=30)
    assert run.returncode == code, errors
    assert "Traceback" not in errors
    assert run_file(workspace)["outcome"] == "interrupted"
    goes(int((workspace / "child").read_text()))


def test_an_agent_does_not_outlive_a_killed_zero(agent: Agent, workspace: Path) -> None:
    slow = agent("import time; pathlib.Path('pid').write_text(str(os.getpid())); time.sleep(600)")
    command = [sys.executable, "-m", "zero", "-w", str(workspace), *options(slow), "--", "exec"]
    run = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    comes(workspace / "pid")
    run.kill()
    run.wait(30)
    goes(int((workspace / "pid").read_text() or "0"))


def test_terminal_escapes_of_an_agent_are_shown_without_control_characters(zero: Zero, agent: Agent) -> None:
    done = zero(*options(agent(f"print('\\x1b]0;owned\\x07'); {WRITES}"), "--verbose"), after=("exec",))
    assert "owned" in done.stderr
    assert "\x1b" not in done.stderr and "\x07" not in done.stderr


def test_turns_are_limited(zero: Zero, agent: Agent, workspace: Path) -> None:
    """A turn of a plain command is all it says; the third attempt is one too many."""
    done = zero(*options(agent("print('hm')"), "--max-turns", "2"), after=("exec",))
    assert done.code == 5
    assert run_file(workspace)["turns"] == 3


def test_every_adapter_is_there() -> None:
    assert set(adapters.adapters()) >= {"codex", "claude", "gemini", "opencode", "command"}


def test_the_caller_can_report_remaining_work(agent: Agent, workspace: Path) -> None:
    """The agent is resumed until no work remains, with or without an output file."""
    command = agent("pathlib.Path(f'done-{sys.argv[1]}').write_text(sys.argv[3] + os.environ['HINT'])")

    def remaining_work() -> list[str]:
        return [] if (workspace / "done-2").exists() else ["the second question is open"]

    request = Request(workspace, cli="command", cli_args=("exec",), command=command, output_form="none", sandbox="off")
    hint = {"HINT": "-hint"}
    done = run(replace(request, remaining_work=remaining_work, secrets=hint, passed_variables=("HINT",)))
    assert (done.outcome, done.attempts) == (Outcome.ANSWERED, 2)
    message = (workspace / "done-2").read_text()
    assert message.startswith("You are not done yet:\n- the second question is open") and message.endswith("-hint")
    mute = run(replace(request, remaining_work=lambda: ["all of it"], max_retries=1, secrets=hint))
    assert mute.outcome is Outcome.AGENT_FAILED, "it failed without its hint, and did nothing"
