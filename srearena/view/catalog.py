"""The catalog: all trials in the folders that are viewed, found again on every request and read when they changed."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from srearena.conductor.errors import ArenaError
from srearena.paths import results_directory
from srearena.view.inspect_logs import InspectTrial, inspect_trials, log_files
from srearena.view.trials import (
    FinishedTrial,
    LeaderboardTrial,
    LiveTrial,
    Row,
    ViewedTrial,
    listed,
    mapping,
    number,
    read_json,
    text,
)

LEADERBOARD_RESULTS = Path("leaderboard_results")
"""The folder that `itbench-leaderboard` writes by default."""
INSPECT_LOGS = Path("logs")
"""The folder that `inspect eval` writes by default."""


class Catalog:
    """Trials by id. Safe to use from several threads."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = tuple(folders)
        self._rows: dict[str, tuple[tuple[int, ...], Row]] = {}
        self._samples: dict[Path, tuple[tuple[int, ...], list[InspectTrial]]] = {}
        self._lock = threading.Lock()

    @property
    def folders(self) -> tuple[Path, ...]:
        return self._folders

    def rows(self) -> list[Row]:
        """All trials, the newest first."""
        with self._lock:
            rows = {trial.id: self._row(trial) for trial in self._trials()}
            for identity in self._rows.keys() - rows.keys():
                del self._rows[identity]
        return sorted(rows.values(), key=lambda row: (row.at, row.id), reverse=True)

    def find(self, identity: str) -> ViewedTrial | None:
        """A trial by its id. A running trial that has ended since is found under the id it had while it ran."""
        for trial in self._trials():
            if trial.id == identity:
                return trial
        return self.of_session(identity.rpartition("/")[2]) if "/.live/" in identity else None

    def of_session(self, session: str) -> ViewedTrial | None:
        """The trial of an event log, running or finished."""
        for trial in self._trials():
            if isinstance(trial, LiveTrial):
                if trial.path.stem == session:
                    return trial
            elif isinstance(trial, FinishedTrial):
                with self._lock:
                    if self._row(trial).session == session:
                        return trial
        return None

    def _row(self, trial: ViewedTrial) -> Row:
        known = self._rows.get(trial.id)
        # A lock on an event log is no change of the file: running trials are read again.
        if known is not None and known[0] == trial.stamp and not isinstance(trial, LiveTrial):
            return known[1]
        row = trial.row()
        self._rows[trial.id] = (trial.stamp, row)
        return row

    def _trials(self) -> Iterator[ViewedTrial]:
        for number_, folder in enumerate(self._folders):
            prefix = f"{number_}"
            if log_files(folder):
                yield from self._inspect_trials(folder, prefix)
            if is_leaderboard(folder):
                yield from _leaderboard_trials(folder, prefix)
            elif (folder / "result.json").is_file():
                yield from _finished(folder, prefix)
            elif (folder / "trials").is_dir():
                yield from _run_trials(folder, prefix)
            else:  # a folder of runs, which may also have event logs of episodes that ran by themselves
                yield from _live_trials(folder, prefix, "")
                for run in sorted(path for path in _children(folder) if is_run(path)):
                    yield from _run_trials(run, prefix)

    def _inspect_trials(self, folder: Path, prefix: str) -> Iterator[ViewedTrial]:
        """The samples of Inspect's logs; an archive is read again only when it has changed."""
        stamp = _stamp(*log_files(folder))
        known = self._samples.get(folder)
        if known is None or known[0] != stamp:
            known = self._samples[folder] = (stamp, list(inspect_trials(folder, prefix)))
        yield from known[1]


def viewed_folders(names: Sequence[str]) -> list[Path]:
    """The folders that the user named, or those where results are by default; ArenaError where one holds none."""
    if not names:
        board = [LEADERBOARD_RESULTS] if is_leaderboard(LEADERBOARD_RESULTS) else []
        logs = [INSPECT_LOGS] if log_files(INSPECT_LOGS) else []
        return [results_directory().absolute(), *(folder.absolute() for folder in [*board, *logs])]
    return [_viewed_folder(name) for name in names]


def _viewed_folder(name: str) -> Path:
    for path in (Path(name), results_directory() / name):
        if path.name == "result.json" and path.is_file():
            return path.absolute().parent
        if path.name == "results" and (path / "leaderboard.json").is_file():
            return path.absolute().parent
        if is_leaderboard(path) or is_run(path) or (path / "result.json").is_file() or log_files(path):
            return path.absolute()
        if path.is_dir() and any(is_run(child) for child in _children(path)):
            return path.absolute()
    raise ArenaError(
        f"there is nothing to view in {name!r}: name a run, a folder of runs, a trial's folder, a leaderboard or "
        f"Inspect's logs (`srearena results` lists the runs in {results_directory()})"
    )


def is_run(folder: Path) -> bool:
    return (folder / "trials").is_dir() or (folder / ".live").is_dir()


def is_leaderboard(folder: Path) -> bool:
    return (folder / "results" / "leaderboard.json").is_file()


def _children(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")]
    except OSError:
        return []


def _stamp(*paths: Path) -> tuple[int, ...]:
    stamp: list[int] = []
    for path in paths:
        try:
            status = path.stat()
        except OSError:
            stamp += [0, 0]
        else:
            stamp += [status.st_mtime_ns, status.st_size]
    return tuple(stamp)


def _run_trials(run: Path, prefix: str) -> Iterator[ViewedTrial]:
    yield from _live_trials(run, prefix, run.name)
    for path in sorted((run / "trials").glob("*/*/result.json")):
        yield from _finished(path.parent, prefix)


def _finished(folder: Path, prefix: str) -> Iterator[ViewedTrial]:
    identity = "/".join((prefix, folder.parents[2].name, folder.parent.name, folder.name))
    yield FinishedTrial(identity, folder, _stamp(folder / "result.json", folder / "session.jsonl"))


def _live_trials(run: Path, prefix: str, name: str) -> Iterator[ViewedTrial]:
    for path in sorted((run / ".live").glob("*.jsonl")):
        yield LiveTrial(f"{prefix}/{name}/.live/{path.stem}", path, _stamp(path), name)


def _leaderboard_trials(folder: Path, prefix: str) -> Iterator[ViewedTrial]:
    board = mapping(read_json(folder / "results" / "leaderboard.json"))
    incidents = {name: mapping(facts) for name, facts in mapping(board.get("incidents")).items()}
    for ranking in map(mapping, listed(board.get("rankings"))):
        agent = text(ranking.get("agent"))
        if not agent or Path(agent).name != agent:
            continue
        results = folder / "results" / f"{agent}.json"
        for incident, scenario in mapping(mapping(read_json(results)).get("scenarios")).items():
            for run in map(mapping, listed(mapping(scenario).get("runs"))):
                name = str(int(number(run.get("run")) or 0))
                place = folder / agent / incident / name
                if Path(incident).name != incident or not place.is_dir():
                    continue
                facts: dict[str, Any] = {**incidents.get(incident, {}), **run, "model": ranking.get("model")}
                verdict = place / "judge_output.json"
                yield LeaderboardTrial(
                    "/".join((prefix, agent, incident, name)), place, _stamp(results, verdict), facts
                )
