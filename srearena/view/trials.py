"""Trials that can be viewed: of runs, of leaderboards, and those that are running now.

Each is found on disk by a fixed glob and has an id; a request names an id and never a path. What is read may be
incomplete or hostile: a file that cannot be read is left out, and no field is trusted to have its type.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from srearena.conductor.results.signals import SIGNALS
from srearena.conductor.session import is_written, read_session
from srearena.conductor.worlds.journal import FILE as JOURNAL
from srearena.view.incidents.finished import finished_system
from srearena.view.transcript import SessionTranscript, Step, trajectory_steps

RUN, LEADERBOARD = "run", "leaderboard"
RUNNING = "running"
"""The outcome of a trial whose process still writes its event log."""
INTERRUPTED = "interrupted"
"""The outcome of a trial whose process was killed."""
_LARGEST = 64_000_000
"""Bytes of one file; the largest event log of 2,000 steps has a fifth of it."""


@dataclass(slots=True)
class Row:
    """One trial in the list."""

    id: str
    source: str
    run: str
    problem: str
    agent: str
    outcome: str
    trial: int = 0
    model: str = ""
    family: str = ""
    application: str = ""
    reason: str = ""
    stages: list[tuple[str, bool | None]] = field(default_factory=list)
    """Each stage, and whether it passed; None without a verdict."""
    score: float | None = None
    steps: int | None = None
    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None
    at: str = ""
    session: str = ""

    def as_document(self) -> dict[str, Any]:
        return asdict(self)


class ViewedTrial(ABC):
    """One trial on disk."""

    def __init__(self, identity: str, folder: Path, stamp: tuple[int, ...]) -> None:
        self.id = identity
        self.folder = folder
        self.stamp = stamp
        """Changes whenever the files of the trial have changed."""

    @abstractmethod
    def row(self) -> Row: ...

    @abstractmethod
    def steps(self) -> list[Step]: ...

    def result(self) -> dict[str, Any]:
        """What was graded, and the ground truth; empty while the trial runs."""
        return {}

    def journal_file(self) -> Path | None:
        """From which the system of the trial can be built again; None where nothing of the kind is kept."""
        return None

    def no_world(self) -> str:
        """Why the system of the trial cannot be built again, in one sentence; "" where it can."""
        path = self.journal_file()
        if path is None:
            return "The logs of other programs hold no journal from which the system could be built again."
        if readable(path):
            return ""
        return (
            "The system of this trial cannot be built again, because the trial has no journal: it was on a real "
            "cluster, ended before an agent started, or is of an earlier version."
        )

    def world(self) -> dict[str, Any]:
        """Whether the system of the trial can be built again."""
        reason = self.no_world()
        return {"possible": not reason, "reason": reason}

    def system(self) -> dict[str, Any] | None:
        """What the system looked like; None where that is not known, or not to be disclosed yet."""
        return None

    def document(self) -> dict[str, Any]:
        steps = [step.as_document() for step in self.steps()]
        system = self.system()
        return {
            "row": self.row().as_document(),
            "result": self.result(),
            "steps": steps,
            **({"system": system} if system is not None else {}),
            "world": self.world(),
        }


class FinishedTrial(ViewedTrial):
    """A trial of a run: `<run>/trials/<problem>/<number>/`."""

    def _document(self) -> dict[str, Any]:
        return mapping(read_json(self.folder / "result.json"))

    def row(self) -> Row:
        document = self._document()
        row = Row(
            self.id,
            RUN,
            self.folder.parents[2].name,
            self.folder.parent.name,
            text(document.get("agent")),
            text(document.get("outcome")) or "unreadable",
        )
        fill_row(row, document)
        row.model = text(document.get("model")) or model_in(self.folder / "session.jsonl")
        row.at = modified(self.folder / "result.json")
        return row

    def steps(self) -> list[Step]:
        return SessionTranscript.of(session_entries(self.folder / "session.jsonl")).steps

    def system(self) -> dict[str, Any] | None:
        return finished_system(mapping(read_json(self.folder / SIGNALS)))

    def journal_file(self) -> Path:
        return self.folder / JOURNAL

    def result(self) -> dict[str, Any]:
        document = self._document()
        kept = ("stages", "collateral", "usage", "limits", "ground_truth", "isolation", "seed", "grader", "srearena")
        return {
            **{key: document[key] for key in kept if key in document},
            "logs": {
                name: read_text(self.folder / name)
                for name in ("agent.log", "stderr.txt", "traceback.txt")
                if (self.folder / name).is_file()
            },
        }


class LiveTrial(ViewedTrial):
    """A trial that has no result: its event log in `.live/` does not name the problem."""

    def __init__(self, identity: str, path: Path, stamp: tuple[int, ...], run: str) -> None:
        super().__init__(identity, path.parent, stamp)
        self.path = path
        self._run = run

    def row(self) -> Row:
        transcript = SessionTranscript.of(session_entries(self.path))
        outcome = RUNNING if is_written(self.path) else INTERRUPTED
        row = Row(self.id, RUN, self._run, "", "", outcome, model=transcript.model, session=self.path.stem)
        row.steps = sum(step.kind in ("action", "tool", "submission", "command") for step in transcript.steps)
        row.tokens = sum((step.tokens_in or 0) + (step.tokens_out or 0) for step in transcript.steps)
        row.cost = sum(step.cost or 0.0 for step in transcript.steps)
        row.stages = [(step.stage, None) for step in transcript.steps if step.kind == "stage"]
        row.at = modified(self.path)
        return row

    def steps(self) -> list[Step]:
        return SessionTranscript.of(session_entries(self.path)).steps

    def no_world(self) -> str:
        return "The system can be built again when the trial has ended."


class LeaderboardTrial(ViewedTrial):
    """A run of a leaderboard: `<leaderboard>/<agent>/<incident>/<number>/`."""

    def __init__(self, identity: str, folder: Path, stamp: tuple[int, ...], facts: Mapping[str, Any]) -> None:
        super().__init__(identity, folder, stamp)
        self._facts = facts
        """Of the agent's results: model, family, outcome, scores."""

    def row(self) -> Row:
        facts = self._facts
        agent, incident = self.folder.parents[1].name, self.folder.parent.name
        row = Row(self.id, LEADERBOARD, self.folder.parents[2].name, incident, agent, text(facts.get("outcome")))
        row.outcome = row.outcome.replace("_", " ") or "unknown"
        live = mapping(read_json(self.folder / "arena_result.json"))
        if live:
            fill_row(row, live)
            row.outcome = text(live.get("outcome")) or row.outcome
        row.trial = int(self.folder.name)
        row.model, row.family = text(facts.get("model")), text(facts.get("family")) or row.family
        row.application = text(facts.get("application")) or row.application
        row.score = number(mapping(facts.get("scores")).get("score"))
        row.cost = row.cost if row.cost is not None else number(facts.get("cost_usd"))
        row.seconds = row.seconds if row.seconds is not None else number(facts.get("duration_seconds"))
        row.reason = row.reason or text(facts.get("error")) or text(facts.get("justification"))
        row.at = modified(self.folder)
        return row

    def steps(self) -> list[Step]:
        session = self.folder / "traces" / "session.jsonl"
        if readable(session):
            return SessionTranscript.of(session_entries(session)).steps
        return trajectory_steps(read_json(self.folder / "traces" / "trajectory.json"))

    def system(self) -> dict[str, Any] | None:
        return finished_system(mapping(read_json(self.folder / SIGNALS)))

    def journal_file(self) -> Path:
        return self.folder / JOURNAL

    def no_world(self) -> str:
        if (self.folder / "arena_result.json").is_file():
            return super().no_world()
        return "This run is on a recorded incident: there is no system to be built again, only the recording."

    def result(self) -> dict[str, Any]:
        live = mapping(read_json(self.folder / "arena_result.json"))
        kept = ("stages", "collateral", "usage", "limits", "ground_truth", "isolation", "seed")
        verdict = mapping(read_json(self.folder / "judge_output.json"))
        truth = mapping(verdict.get("truth"))
        return {
            **{key: live[key] for key in kept if key in live},
            **({"ground_truth": {"roots": truth.get("gt_entities") or []}} if truth and not live else {}),
            "answer": read_json(self.folder / "agent_output.json"),
            "scores": mapping(self._facts.get("scores")),
        }


def fill_row(row: Row, document: Mapping[str, Any]) -> None:
    """Fill a row from the result document of a trial."""
    usage = mapping(document.get("usage"))
    row.trial = int(number(document.get("trial")) or 0)
    row.family, row.application = text(document.get("level")), text(document.get("application"))
    row.reason, row.session = text(document.get("reason")), text(document.get("session"))
    row.stages = stage_marks(document)
    scores = [score for score in map(number, mapping(document.get("scores")).values()) if score is not None]
    row.score = sum(scores) / len(scores) if scores else None
    if usage:
        row.steps = int(number(usage.get("steps")) or 0)
        row.tokens = int((number(usage.get("tokens_in")) or 0) + (number(usage.get("tokens_out")) or 0))
        row.cost, row.seconds = number(usage.get("cost")), number(usage.get("wall_seconds"))


def stage_marks(document: Mapping[str, Any]) -> list[tuple[str, bool | None]]:
    """Each stage of a result document, and whether it passed; None without a verdict."""
    stages = [mapping(stage) for stage in listed(document.get("stages"))]
    return [
        (text(stage.get("stage")), bool(mapping(stage["verdict"]).get("passed")) if stage.get("verdict") else None)
        for stage in stages
    ]


def readable(path: Path) -> bool:
    """Whether a file may be read: a regular file of bounded size. Agents write into some of these folders."""
    try:
        return path.is_file() and not path.is_symlink() and path.stat().st_size <= _LARGEST
    except OSError:
        return False


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace") if readable(path) else ""
    except OSError:
        return ""


def read_json(path: Path) -> Any:
    try:
        return json.loads(read_text(path))
    except (ValueError, RecursionError):
        return None


def session_entries(path: Path) -> Iterator[dict[str, Any]]:
    if readable(path):
        try:
            yield from read_session(path)
        except (OSError, UnicodeDecodeError, RecursionError):
            return


def model_in(session: Path) -> str:
    """The model of the first model call of an event log."""
    for entry in session_entries(session):
        if mapping(entry).get("what") == "model call":
            return text(entry.get("model"))
        if mapping(entry).get("what") == "state":
            return ""
    return ""


def modified(path: Path) -> str:
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="seconds")
    except OSError:
        return ""


def mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
