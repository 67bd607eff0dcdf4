"""`Workers`: the processes of trials and proofs, forked from healthy systems where several begin with the same one.

A worker is a module with a `main`, which reads one line from standard input and writes its messages to standard output.
Started *cold*, it is a new interpreter, and prepares its system itself. Started *warm*, it is a copy of a process in
which the application runs already, healthy and under load: `main` gets that system, and injects its own fault. What
follows is the same, to the byte where the clock stands still (`tests/worlds`). A healthy system that cannot be prepared
is no error here: the workers start cold, and say what is wrong.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import IO, Any, Protocol

from srearena.closeable import Closeable
from srearena.conductor.episode.healthy import healthy_key
from srearena.conductor.episode.spec import EpisodeSpec
from srearena.conductor.errors import ArenaError
from srearena.conductor.problems.base import Problem
from srearena.conductor.problems.registry import ProblemRegistry
from srearena.conductor.worlds import HealthySystem, WorkingCopy, fork_is_safe, prepare_healthy
from srearena.errors import SreArenaError
from srearena.interpreters import python_module

_MOST_SYSTEMS = 4
"""Healthy systems that are kept at a time, each with the memory of a cluster."""
_STOP = 15.0
"""Real seconds for a worker to end with its agent before it is killed."""
_OLDEST = 900.0
"""Real seconds after which a system is prepared anew: a copy first has to live through the time since."""


class Worker(Protocol):
    """A process with pipes."""

    stdin: IO[str] | None
    stdout: IO[str] | None
    stderr: IO[str] | None

    def terminate(self) -> None: ...

    def kill(self) -> None: ...

    def wait(self) -> int: ...


class WarmWorker:
    """A copy of a healthy system that runs the module of the workers."""

    def __init__(self, system: HealthySystem, module: str) -> None:
        pipes = [os.pipe() for _ in range(3)]
        (there_in, here_in), (here_out, there_out), (here_err, there_err) = pipes
        try:
            self._copy: WorkingCopy = system.work(module, there_in, there_out, there_err)
        except BaseException:
            for descriptor in (here_in, here_out, here_err):
                os.close(descriptor)
            raise
        finally:
            for descriptor in (there_in, there_out, there_err):
                os.close(descriptor)
        self.stdin: IO[str] | None = os.fdopen(here_in, "w", encoding="utf-8")
        self.stdout: IO[str] | None = os.fdopen(here_out, encoding="utf-8", errors="replace")
        self.stderr: IO[str] | None = os.fdopen(here_err, encoding="utf-8", errors="replace")
        self._status: int | None = None

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        if self._status is None:
            with suppress(ProcessLookupError):
                os.kill(self._copy.pid, number)

    def wait(self) -> int:
        if self._status is None:
            self._status = self._copy.wait()
            self._copy.close()
        return self._status

    def communicate(self, line: str, timeout: float) -> tuple[int, str]:
        """Write a line, and wait for the end: status and standard error; TimeoutExpired after so many real seconds.

        Standard input stays open until then, so that the worker learns when this process ends.
        """
        assert self.stdin is not None and self.stdout is not None and self.stderr is not None
        errors: list[str] = []
        stream = self.stderr
        with ThreadPoolExecutor(2) as pool, self.stdout, self.stderr:
            with suppress(BrokenPipeError):
                self.stdin.write(line)
                self.stdin.flush()
            reader, ending = pool.submit(lambda: errors.extend(stream)), pool.submit(self.wait)
            try:
                status = ending.result(timeout)
            except TimeoutError:
                self.terminate()
                with suppress(TimeoutError):
                    ending.result(_STOP)
                self.kill()
                raise subprocess.TimeoutExpired("worker", timeout) from None
            finally:
                with suppress(BrokenPipeError):
                    self.stdin.close()
                reader.result()
        return status, "".join(errors)


@dataclass(slots=True)
class _Template:
    """A healthy system, and how many workers will still ask for it."""

    expected: int = 0
    system: HealthySystem | None = None
    failed: bool = False
    since: float = 0.0
    used: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def close(self) -> None:
        with self.lock:
            if self.system is not None:
                self.system.close()
                self.system = None


class Workers(Closeable):
    """Starts the workers of one run, from several threads. `plan` is what they will be started for."""

    def __init__(self, module: str, plan: Iterable[tuple[str, EpisodeSpec]], *, warm: bool = True) -> None:
        self._module = module
        self._begins: dict[tuple[str, int], tuple[str, Problem]] = {}
        """The key of the healthy system of an episode, and its problem."""
        self._templates: dict[str, _Template] = {}
        self._lock = threading.Lock()
        self._closed = False
        counts: Counter[str] = Counter()
        if warm and fork_is_safe():
            for problem, spec in plan:
                begin = _begin_of(problem, spec)
                if begin is not None:
                    self._begins[problem, spec.seed] = begin
                    counts[begin[0]] += 1
        self._templates = {key: _Template(count) for key, count in counts.items() if count > 1}

    def start(self, problem: str, spec: EpisodeSpec) -> Worker:
        """Start a worker for an episode of the plan. It does not know more of it than what it reads."""
        return self.start_warm(problem, spec) or subprocess.Popen(
            python_module(self._module),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def start_warm(self, problem: str, spec: EpisodeSpec) -> WarmWorker | None:
        """Start a worker in a copy of a healthy system; None where the plan has no other use for such a system."""
        template = self._template(problem, spec)
        if template is not None:
            with suppress(SreArenaError), template.lock:
                system = self._system(template, problem, spec)
                if system is not None and system.serves(self._begins[problem, spec.seed][1]):
                    return WarmWorker(system, self._module)
        return None

    def ended(self, problem: str, spec: EpisodeSpec) -> None:
        """A worker of the plan has ended: the last one of a healthy system ends that too."""
        template = self._template(problem, spec)
        if template is not None:
            with template.lock:
                template.expected -= 1
            if template.expected <= 0:
                template.close()

    def _template(self, problem: str, spec: EpisodeSpec) -> _Template | None:
        key, _ = self._begins.get((problem, spec.seed), ("", None))
        return self._templates.get(key)

    def _system(self, template: _Template, problem: str, spec: EpisodeSpec) -> HealthySystem | None:
        now = monotonic()
        if template.system is not None and spec.start is None and now - template.since > _OLDEST:
            template.system.close()
            template.system = None
        if template.system is None and not template.failed and not self._closed:
            self._make_room(template)
            template.since = now
            try:
                template.system = prepare_healthy(problem, spec, [self._module])
            except SreArenaError:
                template.failed = True
        template.used = now
        return template.system

    def _make_room(self, newest: _Template) -> None:
        with self._lock:
            others = [one for one in self._templates.values() if one.system is not None and one is not newest]
            for oldest in sorted(others, key=lambda one: one.used)[: max(0, len(others) - _MOST_SYSTEMS + 1)]:
                if oldest.lock.acquire(blocking=False):  # one that is in use now is not the oldest
                    try:
                        if oldest.system is not None:
                            oldest.system.close()
                            oldest.system = None
                    finally:
                        oldest.lock.release()

    def close(self) -> None:
        self._closed = True
        for template in self._templates.values():
            template.close()


def system_of(problem: str, spec: EpisodeSpec) -> str:
    """What is equal for episodes that may begin with the same healthy system; the problem where there is none."""
    begin = _begin_of(problem, spec)
    return begin[0] if begin is not None else problem


def _begin_of(problem: str, spec: EpisodeSpec) -> tuple[str, Problem] | None:
    """The `healthy_key` and the problem of an episode; None on real clusters, and for what a worker will refuse."""
    if not spec.backend.embedded:
        return None
    try:
        found = ProblemRegistry().get_problem(problem, spec.variant)
        return healthy_key(found, spec.pinned_by(found)), found
    except SreArenaError:
        return None


@dataclass(frozen=True, slots=True)
class Task:
    """What one worker gets, and the episode that it will prepare for it."""

    problem: str
    spec: EpisodeSpec
    document: Mapping[str, Any]


def in_workers(module: str, tasks: Sequence[Task], parallel: int, *, warm: bool = True) -> Iterator[dict[str, Any]]:
    """Yield the one line that each worker answers to its document, in the order of completion."""
    running: set[Worker] = set()
    plan = [(task.problem, task.spec) for task in tasks]
    with Workers(module, plan, warm=warm) as workers, ThreadPoolExecutor(max(1, parallel)) as pool:
        waiting = [pool.submit(_answer, workers, task, running) for task in tasks]
        try:
            for done in as_completed(waiting):
                yield done.result()
        finally:
            for future in waiting:
                future.cancel()
            for worker in list(running):
                worker.terminate()


def _answer(workers: Workers, task: Task, running: set[Worker]) -> dict[str, Any]:
    worker = workers.start(task.problem, task.spec)
    running.add(worker)
    try:
        output, errors = _communicate(worker, json.dumps(task.document) + "\n")
        status = worker.wait()
    finally:
        running.discard(worker)
        workers.ended(task.problem, task.spec)
    try:
        answer: Any = json.loads(output)
    except ValueError:
        last = (errors.strip().splitlines() or [f"status {status}"])[-1]
        raise ArenaError(
            f"the process for {task.problem} died ({last}): is there enough memory for this --parallel?"
        ) from None
    return dict(answer)


def _communicate(worker: Worker, line: str) -> tuple[str, str]:
    """Write a line, and read everything that the worker writes."""
    assert worker.stdin is not None and worker.stdout is not None and worker.stderr is not None
    errors: list[str] = []
    stream = worker.stderr
    reader = threading.Thread(target=lambda: errors.extend(stream), daemon=True)
    reader.start()
    with worker.stdout, worker.stderr:
        with suppress(BrokenPipeError), worker.stdin:
            worker.stdin.write(line)
        output = worker.stdout.read()
        reader.join()
    return output, "".join(errors)
