"""One run on disk: a state machine that can be resumed after a kill at any moment.

    (nothing) → running → ended → judged
                  ↑  └─ killed: with a report → ended; without → the attempt was interrupted, a new one starts
                  └──── ended with an outcome that is retried, and tries are left

`state.json` is replaced atomically, after everything it refers to is in place; until it says `ended`, nothing of a run
counts. Every attempt has its own directory, `.attempts/N/`, with the agent's workspace and, at the end, the worker's
`report.json`. Late writes of a killed attempt do not reach any result. The lock is a kernel lock: it is released when
its process ends.
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
_OWN_FILES = frozenset({"state.json", ".lock", ".attempts", VERDICT})
_NOT_PUBLISHED = frozenset({"evidence", ".git", ".zero", ".home"})
_LARGEST = 64_000_000  # bytes of a file; chosen: no trajectory comes near it


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a run."""

    number: int
    directory: Path

    @property
    def workspace(self) -> Path:
        return self.directory / WORKSPACE

    def report(self) -> Report | None:
        """The worker's report; None if there is none yet."""
        document = read_json(self.directory / "report.json")
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
                raise Busy(f"{self.directory} is locked by another process") from problem
            yield

    # --- state ---------------------------------------------------------------------------------------------------

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
        """Whether the agent must be run: the run has not ended, or its outcome is retried."""
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

    def recover(self) -> bool:
        """Recover a run of a killed process; True if that ended the run."""
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
        """Start a new attempt with an empty workspace."""
        state = self.state()
        state["attempts"].append({"number": len(state["attempts"]) + 1, "began": at, "outcome": None})
        attempt = self._attempt(len(state["attempts"]))
        remove(attempt.directory)
        state["state"] = "running"
        write_json(self.directory / "state.json", state)
        attempt.workspace.mkdir(parents=True)
        return attempt

    def end(self, attempt: Attempt, report: Report) -> None:
        """Publish the attempt's files, then mark the run as ended."""
        self.verdict.unlink(missing_ok=True)
        self._publish(attempt.workspace, with_output=report.outcome is not Outcome.ENVIRONMENT_ERROR)
        state = self.state()
        state["attempts"][attempt.number - 1] |= report.as_document()
        over = report.outcome is not Outcome.INTERRUPTED
        state |= {"state": "ended" if over else "planned", "outcome": str(report.outcome) if over else None}
        write_json(self.directory / "state.json", state)
        if report.outcome is Outcome.ANSWERED:
            remove(attempt.directory)  # everything is published; failed attempts are kept for debugging

    def store_verdict(self, document: dict[str, Any]) -> None:
        write_json(self.verdict, document)
        state = self.state()
        write_json(self.directory / "state.json", {**state, "state": "judged"})

    def _attempt(self, number: int) -> Attempt:
        return Attempt(number, self.directory / ".attempts" / str(number))

    def _publish(self, workspace: Path, *, with_output: bool) -> None:
        """Copy the workspace into the run's directory; idempotent."""
        sources = list(workspace.iterdir()) if workspace.is_dir() else []
        published = {
            each.name: each
            for each in sources
            if each.name not in _NOT_PUBLISHED | _OWN_FILES
            and not each.is_symlink()
            and (with_output or each.name != OUTPUT)
        }
        for earlier in list(self.directory.iterdir()):
            if earlier.name not in _OWN_FILES and earlier.name not in published:
                remove(earlier)
        for name, source in published.items():
            draft = self.directory / f".{name}.draft"
            remove(draft)
            _copy(source, draft)
            remove(self.directory / name)
            if draft.exists():
                draft.rename(self.directory / name)


def _copy(source: Path, target: Path) -> None:
    """Copy regular files and directories; links, devices and very large files are skipped."""
    if source.is_symlink():
        return
    if source.is_dir():
        target.mkdir()
        for child in source.iterdir():
            if child.name not in _NOT_PUBLISHED:
                _copy(child, target / child.name)
    elif source.is_file() and source.stat().st_size <= _LARGEST:
        shutil.copyfile(source, target)


def run_of(root: Path, agent: str, incident: str, number: int) -> Run:
    return Run(root / agent / incident / str(number), agent, incident, number)
