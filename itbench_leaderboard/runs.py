"""One run on disk: a state machine that a kill at any moment leaves in a state from which it goes on.

    (nothing) → running → ended → judged
                  ↑  └─ killed: its report is there → ended; it is not → the attempt was interrupted, a new one begins
                  └──── ended with an outcome that is tried again, and tries are left

`state.json` is replaced as a whole, last, after everything it speaks of is in place; until it says `ended` nothing of a
run counts. Every attempt has a directory of its own, `.attempts/N/`, with the agent's workspace and, when it is over,
the worker's `report.json`. What an attempt of a killed process still writes there reaches no result. The lock is the
kernel's: it falls with the process that holds it.
"""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from itbench_leaderboard.errors import Busy
from itbench_leaderboard.files import read_json, write_json
from itbench_leaderboard.outcomes import Outcome, Report
from zero.evidence import remove

STATE_SCHEMA = "leaderboard-run-v1"
WORKSPACE = "workspace"
OUTPUT, VERDICT = "agent_output.json", "judge_output.json"
_OURS = frozenset({"state.json", ".lock", ".attempts", VERDICT})
_LEFT_BEHIND = frozenset({"evidence", ".git", ".zero", ".home"})
_LARGEST = 64_000_000


@dataclass(frozen=True, slots=True)
class Attempt:
    number: int
    place: Path

    @property
    def workspace(self) -> Path:
        return self.place / WORKSPACE

    def report(self) -> Report | None:
        """What the worker said at the end; None while it has not."""
        document = read_json(self.place / "report.json")
        try:
            return Report.from_document(document) if isinstance(document, dict) else None
        except (KeyError, TypeError, ValueError):
            return None


@dataclass(frozen=True, slots=True)
class Run:
    """`<leaderboard>/<agent>/<incident>/<number>/`."""

    directory: Path
    agent: str
    incident: str
    number: int

    @contextmanager
    def locked(self) -> Iterator[None]:
        self.directory.mkdir(parents=True, exist_ok=True)
        with (self.directory / ".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as problem:
                raise Busy(f"{self.directory} is in the hands of another process") from problem
            yield

    # --- what is known --------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        document = read_json(self.directory / "state.json")
        if isinstance(document, dict) and document.get("schema_version") == STATE_SCHEMA:
            return document
        return {
            "schema_version": STATE_SCHEMA,
            "agent": self.agent,
            "incident": self.incident,
            "run": self.number,
            "state": "planned",
            "outcome": None,
            "attempts": [],
        }

    def needs_agent(self, retries: int, retry_on: Sequence[Outcome]) -> bool:
        """Whether an agent has to be started: the run did not end, or ended in a way that is tried again."""
        state = self.state()
        if state["state"] in ("planned", "running"):
            return True
        tries = sum(each["outcome"] != Outcome.INTERRUPTED for each in state["attempts"])
        return state["outcome"] in retry_on and tries <= retries

    @property
    def output(self) -> Path:
        return self.directory / OUTPUT

    @property
    def verdict(self) -> Path:
        return self.directory / VERDICT

    # --- transitions, all under the lock ----------------------------------------------------------------------------

    def recovered(self) -> bool:
        """Finish what a killed process left unfinished; True if that ended the run."""
        state = self.state()
        if state["state"] != "running":
            return False
        last = self._attempt(len(state["attempts"]))
        report = last.report()
        if report is not None and report.outcome is not Outcome.INTERRUPTED:
            self.end(last, report)
            return True
        state["attempts"][-1] |= {"outcome": str(Outcome.INTERRUPTED), "reason": "the leaderboard was stopped"}
        state["state"] = "planned"
        write_json(self.directory / "state.json", state)
        return False

    def begin(self, at: str) -> Attempt:
        """A new attempt, with an empty workspace."""
        state = self.state()
        state["attempts"].append({"number": len(state["attempts"]) + 1, "began": at, "outcome": None})
        attempt = self._attempt(len(state["attempts"]))
        remove(attempt.place)
        state["state"] = "running"
        write_json(self.directory / "state.json", state)
        attempt.workspace.mkdir(parents=True)
        return attempt

    def end(self, attempt: Attempt, report: Report) -> None:
        """Publish what the attempt left, then say that the run has ended."""
        self.verdict.unlink(missing_ok=True)
        self._publish(attempt.workspace, answered=report.outcome is not Outcome.ENVIRONMENT_ERROR)
        state = self.state()
        state["attempts"][attempt.number - 1] |= report.as_document()
        over = report.outcome is not Outcome.INTERRUPTED
        state |= {"state": "ended" if over else "planned", "outcome": str(report.outcome) if over else None}
        write_json(self.directory / "state.json", state)
        if report.outcome is Outcome.ANSWERED:
            remove(attempt.place)  # all of it is published; attempts that failed stay, for whoever asks why

    def judged(self, document: dict[str, Any]) -> None:
        write_json(self.verdict, document)
        state = self.state()
        write_json(self.directory / "state.json", {**state, "state": "judged"})

    def _attempt(self, number: int) -> Attempt:
        return Attempt(number, self.directory / ".attempts" / str(number))

    def _publish(self, workspace: Path, *, answered: bool) -> None:
        """Copy the workspace into the run's directory. Doing it twice does no harm."""
        sources = list(workspace.iterdir()) if workspace.is_dir() else []
        kept = {
            each.name: each
            for each in sources
            if each.name not in _LEFT_BEHIND | _OURS and not each.is_symlink() and (answered or each.name != OUTPUT)
        }
        for earlier in list(self.directory.iterdir()):
            if earlier.name not in _OURS and earlier.name not in kept:
                remove(earlier)
        for name, source in kept.items():
            draft = self.directory / f".{name}.draft"
            remove(draft)
            _copy(source, draft)
            remove(self.directory / name)
            if draft.exists():
                draft.rename(self.directory / name)


def _copy(source: Path, target: Path) -> None:
    """Regular files and directories; links and devices that an agent made are not followed, nor giants kept."""
    if source.is_symlink():
        return
    if source.is_dir():
        target.mkdir()
        for child in source.iterdir():
            if child.name not in _LEFT_BEHIND:
                _copy(child, target / child.name)
    elif source.is_file() and source.stat().st_size <= _LARGEST:
        shutil.copyfile(source, target)


def run_of(root: Path, agent: str, incident: str, number: int) -> Run:
    return Run(root / agent / incident / str(number), agent, incident, number)
