"""Trials and proofs on the machines of a Ray cluster (`--executor ray`): the same workers as on this machine.

A machine gets a chunk of trials that begin with the same healthy system, prepares it once, and sends every result home
as soon as it is there, with the files of the trial. What a lost machine had not sent is done by another one, so the
command ends with the same results, and resumes as it does without Ray.
"""

from __future__ import annotations

import io
import os
import queue
import tarfile
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from srearena.conductor.results.store import write_trial
from srearena.conductor.trials.suite import Progress, Suite
from srearena.conductor.trials.trial import Trial
from srearena.conductor.trials.workers import Task, in_workers, system_of
from srearena.ray_machines import RayMachines

_LARGEST_CHUNK = 8
"""Items of one machine at a time: a lost machine loses the trial in progress, and a small chunk balances the load."""


def chunks_of(items: Mapping[Hashable, Any], system: Callable[[Any], str], machines: int) -> list[dict[Hashable, Any]]:
    """Items with the same healthy system together, in at least so many chunks where there are enough items."""
    groups: dict[str, list[Hashable]] = defaultdict(list)
    for name, item in items.items():
        groups[system(item)].append(name)
    size = max(1, min(_LARGEST_CHUNK, -(-len(items) // max(1, machines))))
    return [
        {name: items[name] for name in names[first : first + size]}
        for names in groups.values()
        for first in range(0, len(names), size)
    ]


@dataclass(slots=True)
class RemoteSuite(Suite):
    """The trials of a run, on other machines."""

    machines: RayMachines | None = None

    def _perform(self, waiting: list[Progress], spent: float, watch: Callable[[Progress], None]) -> None:
        assert self.machines is not None
        entries: dict[Hashable, Progress] = {(one.trial.problem, one.trial.number): one for one in waiting}
        for entry in waiting:
            entry.trial.discard_logs()
            entry.state = "on the cluster"
            watch(entry)
        documents = {name: _packed(entry.trial, self.warm) for name, entry in entries.items()}
        chunks = chunks_of(
            documents,
            lambda item: system_of(item["problem"], entries[item["problem"], item["number"]].trial.spec),
            self.machines.processors(),
        )
        for name, result in self.machines.stream(_trials, chunks):
            entry = entries[name]
            if result is None:
                entry.result = entry.trial.failure("lost on the Ray cluster, with every machine that tried it")
                write_trial(Path(entry.trial.run), entry.result)
            else:
                entry.result = result["result"]
                _unpack(result["files"], entry.trial.folder)
            entry.state = str(entry.result["outcome"])
            watch(entry)


def _packed(trial: Trial, warm: bool) -> dict[str, Any]:
    """A trial with the files that its agent's options name."""
    files = {
        key: (Path(value).name, Path(value).read_bytes())
        for key, value in trial.agent_options.items()
        if isinstance(value, str) and os.sep in value and Path(value).is_file()
    }
    return {
        "problem": trial.problem,
        "number": trial.number,
        "trial": trial.as_document(),
        "files": files,
        "warm": warm,
    }


def _trials(items: list[dict[str, Any]]) -> Iterator[tuple[Hashable, Any]]:
    """On another machine: perform trials, and yield each with its folder."""
    ended: queue.Queue[Progress | None] = queue.Queue()
    with tempfile.TemporaryDirectory(prefix="run-") as folder:
        trials = [_unpacked(item, Path(folder)) for item in items]
        run = Path(trials[0].run)
        suite = Suite(trials, run, warm=items[0]["warm"])

        def watch(entry: Progress) -> None:
            if entry.result is not None:
                ended.put(entry)

        def perform() -> None:
            try:
                suite.perform(watch)
            finally:
                ended.put(None)

        thread = threading.Thread(target=perform, daemon=True)
        thread.start()
        while (entry := ended.get()) is not None:
            trial = entry.trial
            yield (trial.problem, trial.number), {"result": entry.result, "files": _archive(trial.folder)}
        thread.join()


def _unpacked(item: Mapping[str, Any], folder: Path) -> Trial:
    """The trial with the paths of this machine."""
    trial = Trial.from_document(item["trial"])
    options = dict(trial.agent_options)
    for key, (name, content) in item["files"].items():
        place = folder / "files" / f"{trial.problem}-{trial.number}"
        place.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(content)
        options[key] = str(place / name)
    return replace(trial, run=str(folder / Path(trial.run).name), agent_options=options)


def _archive(folder: Path) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        archive.add(folder, arcname=".")
    return packed.getvalue()


def _unpack(packed: bytes, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(packed), mode="r:gz") as archive:
        archive.extractall(folder, filter="data")


def proofs_on(
    machines: RayMachines, module: str, tasks: Sequence[Task], *, warm: bool = True
) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """Yield the problems with their proofs, as `in_workers` does here; None where every machine was lost."""
    items: dict[Hashable, Any] = {task.problem: (module, task, warm) for task in tasks}
    chunks = chunks_of(items, lambda item: system_of(item[1].problem, item[1].spec), machines.processors())
    for name, proof in machines.stream(_proofs, chunks):
        yield str(name), proof


def _proofs(items: list[tuple[str, Task, bool]]) -> Iterator[tuple[Hashable, Any]]:
    """On another machine: prove problems one after the other."""
    module, _, warm = items[0]
    for proof in in_workers(module, [task for _, task, _ in items], 1, warm=warm):
        yield proof["id"], proof
