"""Results on disk: one JSON document per trial with a versioned schema, and a CSV of all trials of a run.

`data/results/<run>/trials/<problem>/<number>/{result.json,session.jsonl}`, and `summary.csv` in the run's folder. A
trial's folder is created after the last submission: until then nothing on disk names the problem.
"""

from __future__ import annotations

import csv
import json
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from importlib.metadata import version as installed_version
from pathlib import Path
from secrets import randbelow, token_hex
from typing import Any

from srearena.conductor.episode.episode import Episode
from srearena.conductor.errors import ArenaError
from srearena.conductor.grading.stored_state import STATE
from srearena.conductor.stages import STAGES
from srearena.paths import results_directory

SCHEMA = "srearena.trial/1"
GRADER = "2"
"""Version of the graders; increased whenever the same trial could be graded differently."""
_COLUMNS = (
    "problem",
    "trial",
    "seed",
    "agent",
    "isolation",
    "outcome",
    *(f"{name}_{field}" for name in STAGES for field in ("passed", "score")),
    *(stage.clock for stage in STAGES.values()),
    "mitigation_submitted_seconds",
    "steps",
    "tokens_in",
    "tokens_out",
    "cost",
    "wall_seconds",
    "virtual_seconds",
    "collateral",
    "harmful_collateral",
    "reason",
)


def trial_document(
    episode: Episode, *, agent: str, isolation: str, seed: int, trial: int = 0, run: str = ""
) -> dict[str, Any]:
    """The result document of a graded episode."""
    ending = episode.ending
    assert ending is not None, "only a graded episode has a result"
    stages = [record.as_document() for record in episode.records]
    return {
        "schema": SCHEMA,
        "srearena": installed_version("srearena"),
        "grader": GRADER,
        "run": run,
        "problem": episode.problem.id,
        "application": episode.problem.app.name,
        "level": episode.problem.level,
        "agent": agent,
        "isolation": isolation,
        "trial": trial,
        "seed": seed,
        "variant": episode.variant,
        "session": episode.session.session_id,
        "outcome": str(ending.outcome),
        "reason": ending.reason,
        "stages": stages,
        "asked": list(episode.stages),
        "scores": {stage["stage"]: stage["verdict"]["score"] for stage in stages if stage["verdict"]},
        "collateral": [change.as_document() for change in ending.collateral],
        "usage": episode.usage.as_document(),
        "limits": episode.limits.as_document(),
        "noise": episode.noise.performed if episode.noise else [],
        "ground_truth": episode.problem.ground_truth.as_document(),
    }


def failed_document(
    problem: str, *, agent: str, seed: int, trial: int, run: str, reason: str, outcome: str = "environment error"
) -> dict[str, Any]:
    """The result document of a trial that was not graded."""
    return {
        "schema": SCHEMA,
        "srearena": installed_version("srearena"),
        "grader": GRADER,
        "run": run,
        "problem": problem,
        "agent": agent,
        "trial": trial,
        "seed": seed,
        "outcome": outcome,
        "reason": reason,
        "stages": [],
        "asked": [],
        "scores": {},
        "collateral": [],
        "usage": {},
        "limits": {},
    }


def folder_of(run: Path, problem: str, trial: int) -> Path:
    return run / "trials" / problem / str(trial)


def write_trial(run: Path, document: dict[str, Any]) -> Path:
    """Write a result atomically."""
    folder = folder_of(run, document["problem"], document["trial"])
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / "result.json.new"
    draft.write_text(json.dumps(document, indent=2, default=str) + "\n")
    return draft.replace(folder / "result.json")


def write_traceback(run: Path, document: dict[str, Any], failure: BaseException) -> None:
    """Store the traceback of the exception that ended a trial."""
    folder = folder_of(run, document["problem"], document["trial"])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "traceback.txt").write_text("".join(traceback.format_exception(failure)))


def write_state(run: Path, document: dict[str, Any], state: dict[str, Any]) -> None:
    """Store the application's state with the result, so that it can be graded again."""
    folder = folder_of(run, document["problem"], document["trial"])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / STATE).write_text(json.dumps(state) + "\n")


def read_trials(run: Path) -> Iterator[dict[str, Any]]:
    """Yield the results of a run, in order."""
    for path in sorted((run / "trials").glob("*/*/result.json")):
        try:
            document = json.loads(path.read_text())
        except ValueError:
            continue
        if str(document.get("schema", "")).startswith("srearena.trial/"):
            yield document


def summary_row(document: dict[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {
        key: document.get(key, "") for key in ("problem", "trial", "seed", "agent", "isolation", "outcome", "reason")
    }
    for stage in document.get("stages", ()):
        name, verdict = stage["stage"], stage.get("verdict") or {}
        row[f"{name}_passed"] = verdict.get("passed", "")
        row[f"{name}_score"] = verdict.get("score", "")
        if stage["submitted"]:
            row[STAGES[name].clock] = stage["wall_seconds"]
        if name == "mitigation":  # the system's recovery counts, not the agent's claim
            row["mitigation_submitted_seconds"] = row.get(STAGES[name].clock, "")
            row[STAGES[name].clock] = (stage.get("recovery") or {}).get("seconds", "")
    usage = document.get("usage", {})
    for key in ("steps", "tokens_in", "tokens_out", "cost", "wall_seconds", "virtual_seconds"):
        row[key] = usage.get(key, "")
    changes = document.get("collateral", ())
    row["collateral"] = len(changes)
    row["harmful_collateral"] = sum(change["class"] != "harmless" for change in changes)
    return row


def write_summary(run: Path, documents: Iterable[dict[str, Any]]) -> Path:
    path = run / "summary.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, _COLUMNS)
        writer.writeheader()
        for document in documents:
            writer.writerow(summary_row(document))
    return path


def find_run(name: str) -> Path:
    """Find the folder of a run by name or path; ArenaError where there is none."""
    for path in (Path(name), results_directory() / name):
        if (path / "trials").is_dir():
            return path
    names = ", ".join(path.name for path in all_runs()) or "none yet"
    raise ArenaError(f"there is no run {name!r} (runs in {results_directory()}: {names})")


def run_seed(run: Path) -> int:
    """The seed of a run that was started without one: drawn once, and the same when the run is resumed.

    A known seed would make names and UIDs known: an agent could compare them with those of a healthy system.
    """
    path = run / "seed"
    if not path.is_file():
        draft = run / f".seed-{token_hex(8)}"
        draft.write_text(f"{drawn_seed()}\n")
        with suppress(FileExistsError):  # of several trials that start at once, the first decides
            path.hardlink_to(draft)
        draft.unlink()
    return int(path.read_text())


def drawn_seed() -> int:
    return randbelow(2**31)


def all_runs() -> list[Path]:
    root = results_directory()
    runs = [path for path in root.iterdir() if (path / "trials").is_dir()] if root.is_dir() else []
    return sorted(runs, key=lambda path: path.stat().st_mtime)


def totals(documents: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Totals over a run: outcomes, passed stages, and false alarms on healthy systems."""
    outcomes: dict[str, int] = {}
    stages: dict[str, list[bool]] = {}
    alarms: list[bool] = []
    for document in documents:
        outcomes[document["outcome"]] = outcomes.get(document["outcome"], 0) + 1
        for stage in document.get("stages", ()):
            verdict = stage.get("verdict")
            if verdict is None:
                continue
            stages.setdefault(stage["stage"], []).append(bool(verdict["passed"]))
            healthy = stage["stage"] == "noop" or (stage["stage"] == "detection" and document.get("level") == "none")
            if healthy:
                alarms.append(not verdict["passed"])
    return {
        "trials": len(documents),
        "outcomes": outcomes,
        "stages": {name: {"passed": sum(passes), "of": len(passes)} for name, passes in stages.items()},
        "false_alarms": {"raised": sum(alarms), "of": len(alarms)},
    }
