"""Runs many trials in parallel, each in its own process. Running the same suite again resumes it.

A trial is done when its result is on disk, so an interrupt or a kill loses only the trials in progress. A trial that
ended in an error of the agent or the environment was not graded: it is run again.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

from srearena.conductor.conductor import GRADING
from srearena.conductor.results.store import read_trials, write_summary, write_trial
from srearena.conductor.trials.shared_budget import SharedBudget
from srearena.conductor.trials.trial import AGENT_WORKS, Trial
from srearena.conductor.trials.workers import Worker, Workers
from srearena.utils.status import Outcome

ERRORS = (Outcome.AGENT_ERROR.value, Outcome.ENVIRONMENT_ERROR.value)
"""Outcomes of trials that were not graded."""
_STOP_SECONDS = 10.0
_TICK_SECONDS = 1.0
_OVERTIME = 60.0
"""Real seconds after the time limit of a trial until its process is killed, whatever keeps it from reacting."""
_CORES = os.cpu_count() or 1
_MODULE = "srearena.conductor.trials.worker"
_RESTORE_SECONDS = 600.0
"""A trial on a real cluster restores the cluster before it ends."""


@dataclass(slots=True)
class Progress:
    """The progress of one trial."""

    trial: Trial
    state: str = "waiting"
    result: dict[str, Any] | None = None
    from_earlier_run: bool = False
    """Whether the result is that of an earlier run of the same suite."""
    stage: str = ""
    """The question that the agent works on."""
    usage: dict[str, Any] = field(default_factory=dict)
    """What the agent has used so far."""
    began: float | None = None
    seconds: float = 0.0


@dataclass(slots=True)
class Suite:
    """The trials of one run."""

    trials: Sequence[Trial]
    run: Path
    parallel: int = 1
    progress: list[Progress] = field(default_factory=list)
    budget: float | None = None
    """US dollars that all trials together may cost, including earlier ones; without budget left, none is started."""
    warm: bool = True
    """Whether trials that begin with the same healthy system are forks of one, where forks are safe."""

    def perform(self, watch: Callable[[Progress], None] = lambda progress: None) -> list[dict[str, Any]]:
        """Run the trials without a result and return all results. `watch` is called in this thread on every change."""
        self.progress = [Progress(trial) for trial in self.trials]
        waiting: list[Progress] = []
        spent = 0.0
        for entry in self.progress:
            stored = entry.trial.stored_result()
            spent += _cost(stored or {})
            if stored is not None and stored.get("outcome") not in ERRORS:
                entry.result, entry.state, entry.from_earlier_run = stored, "kept", True
                watch(entry)
            else:
                waiting.append(entry)
        self._perform(waiting, spent, watch)
        results = list(read_trials(self.run))
        write_summary(self.run, results)
        return results

    def _perform(self, waiting: list[Progress], spent: float, watch: Callable[[Progress], None]) -> None:
        """Run the trials that have no result; earlier ones have cost `spent`."""
        changes: queue.Queue[tuple[Progress, dict[str, Any]]] = queue.Queue()
        running: dict[Path, _TrialProcess] = {}
        prepared: set[Path] = set()
        """Trials whose agent has started."""
        shared = SharedBudget(self.budget, spent) if self.budget is not None else None
        workers = Workers(_MODULE, [(entry.trial.problem, entry.trial.spec) for entry in waiting], warm=self.warm)
        try:
            while waiting or running:
                # Preparing an episode uses a whole core; agents mostly wait. So at most one preparation per core runs.
                while waiting and len(running) < max(1, self.parallel) and len(running.keys() - prepared) < _CORES:
                    entry = waiting[0]
                    if shared is not None:
                        slots = min(max(1, self.parallel) - len(running), len(waiting))
                        share = shared.reserve(entry.trial.folder, slots, entry.trial.spec.limits.cost)
                        if share is None:
                            break
                        entry.trial = entry.trial.with_cost_limit(share)
                    waiting.pop(0)
                    entry.trial.discard_logs()
                    entry.began, entry.state = monotonic(), "starting"
                    running[entry.trial.folder] = _TrialProcess(entry, changes, workers)
                    watch(entry)
                if not running:
                    for entry in waiting:
                        entry.state = "no budget left"
                        watch(entry)
                    break
                try:
                    entry, message = changes.get(timeout=_TICK_SECONDS)
                except queue.Empty:
                    self._tick(watch)
                    continue
                entry.seconds = monotonic() - (entry.began or 0.0)
                if "progress" in message:
                    entry.stage = str(message["progress"].pop("stage") or "")
                    entry.usage = message["progress"]
                elif "say" in message:
                    entry.state = message["say"]
                    if message["say"] == AGENT_WORKS:
                        prepared.add(entry.trial.folder)
                else:
                    running.pop(entry.trial.folder).finish()
                    entry.result = message["result"]
                    if shared is not None:
                        shared.settle(entry.trial.folder, None if message["lost"] else _cost(message["result"]))
                    entry.state = str(entry.result["outcome"])
                watch(entry)
        finally:
            for worker in running.values():
                worker.terminate()  # all at once, then wait for each
            for worker in running.values():
                worker.stop()
            workers.close()

    def _tick(self, watch: Callable[[Progress], None]) -> None:
        """Report that time has passed, where nothing else happens."""
        running = [entry for entry in self.progress if entry.began is not None and entry.result is None]
        for entry in running:
            entry.seconds = monotonic() - (entry.began or 0.0)
        for entry in running[:1]:
            watch(entry)


def _ending(status: int) -> str:
    """How a process ended, from its return code."""
    if status >= 0:
        return f"exit status {status}, see stderr.txt in its folder"
    return f"ended by {signal.Signals(-status).name}"


def _cost(result: dict[str, Any]) -> float:
    return float((result.get("usage") or {}).get("cost") or 0.0)


class _TrialProcess:
    """A worker for one trial, and a thread that starts it and reads its messages."""

    def __init__(
        self, entry: Progress, changes: queue.Queue[tuple[Progress, dict[str, Any]]], workers: Workers
    ) -> None:
        self._entry = entry
        self._changes = changes
        self._workers = workers
        self._process: Worker | None = None
        self._stopped = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        trial = self._entry.trial
        try:
            self._follow(trial, self._workers.start(trial.problem, trial.spec))
        finally:
            self._workers.ended(trial.problem, trial.spec)

    def _follow(self, trial: Trial, process: Worker) -> None:
        with self._lock:
            self._process = process
            if self._stopped:
                process.terminate()
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        stderr: list[str] = []
        reader = threading.Thread(target=lambda: stderr.extend(process.stderr or ()), daemon=True)
        reader.start()
        with contextlib.suppress(BrokenPipeError):  # it has been stopped already
            process.stdin.write(json.dumps(trial.as_document()) + "\n")
            process.stdin.flush()  # stays open: its end would stop the trial
        result: dict[str, Any] | None = None
        lost = False
        limit = trial.spec.limits.wall_seconds
        overdue = threading.Event()

        def kill() -> None:
            overdue.set()
            process.kill()

        watchdog = threading.Timer((limit or 0.0) + _OVERTIME, kill)
        watchdog.daemon = True
        for message in _objects(process.stdout):
            if "result" in message:
                result = message["result"]
            elif "say" in message:
                if message["say"] == AGENT_WORKS and limit is not None:
                    watchdog.start()
                elif message["say"] == GRADING:
                    watchdog.cancel()
                self._changes.put((self._entry, message))
            elif isinstance(message.get("progress"), dict):
                self._changes.put((self._entry, message))
        status = process.wait()
        watchdog.cancel()
        reader.join(_STOP_SECONDS)
        if result is None:
            lost = True
            # Exceptions are reported as results, so only the operating system has ended it without one.
            if overdue.is_set():
                reason = f"the limit of {limit:g} seconds is reached, and the process of the trial did not react"
                result = trial.failure(reason, Outcome.TIMEOUT)
            else:
                result = trial.failure(f"the process of the trial ended without a result: {_ending(status)}")
            if status not in (130, -signal.SIGINT, -signal.SIGTERM):
                write_trial(Path(trial.run), result)
                (trial.folder / "stderr.txt").write_text("".join(stderr))
        self._changes.put((self._entry, {"result": result, "lost": lost}))

    def finish(self) -> None:
        self._thread.join(_STOP_SECONDS)
        with self._lock:
            process = self._process
        for stream in (process.stdin, process.stdout, process.stderr) if process is not None else ():
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def terminate(self) -> None:
        with self._lock:
            self._stopped = True
            if self._process is not None:
                self._process.terminate()

    def stop(self) -> None:
        self.terminate()
        config = self._entry.trial.spec.config
        self._thread.join(_STOP_SECONDS if config is None or config.embedded else _RESTORE_SECONDS)
        if self._thread.is_alive() and self._process is not None:
            self._process.kill()
        self.finish()


def _objects(lines: Iterable[str]) -> Iterable[dict[str, Any]]:
    for line in lines:
        try:
            value = json.loads(line)
        except ValueError:
            continue  # an agent may print to standard output
        if isinstance(value, dict):
            yield value
