"""`prepare` and `EpisodeProcess`: prepared episodes in processes of their own, and their copies.

The process of the caller is never forked, so it may have threads, event loops and devices of its own.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import time as wall_now  # noqa: TID251 - an episode without a start begins now
from typing import Any

from srearena.closeable import Closeable
from srearena.conductor.episode.spec import EpisodeSpec
from srearena.conductor.errors import ArenaError, BadSubmission
from srearena.conductor.problems.base import Problem
from srearena.conductor.results.store import folder_of
from srearena.conductor.worlds.journal import FILE, Journal
from srearena.conductor.worlds.messages import Hangup, MessageSocket
from srearena.conductor.worlds.quiescence import SINGLE_THREADED, fork_is_safe
from srearena.interpreters import python_module

_STOP_SECONDS = 30.0
"""Real seconds for the processes to end after the last connection to them was closed."""
_LONG = 2.0
"""Seconds that flowed during an action which most likely watched the cluster, as `rollout status` does. Chosen."""
_FAST = 10.0
"""Virtual seconds per real second while such an action is performed again. Chosen."""


@dataclass(frozen=True, slots=True)
class Step:
    """What an episode answers to an action or a submission."""

    state: str
    """The answer of the action, or the next question."""
    question: str
    stage: str | None
    """The stage that is open for a submission; None after the last."""
    finished: bool
    steps: int
    invalid_actions: int


class WorldClient(Closeable):
    """A process with a world. Requests from several threads are answered one after the other."""

    def __init__(self, connection: MessageSocket, family: _Family) -> None:
        self._connection = connection
        self._family = family
        self._lock = threading.Lock()
        self._closed = False
        family.join()

    def _copy(self, seed: int | None = None) -> tuple[MessageSocket, int]:
        """Fork the process: the connection to the copy, and its process id."""
        here, there = socket.socketpair()
        with there:
            try:
                copy = self._ask("fork", descriptors=[there.fileno()], seed=seed)
            except BaseException:
                here.close()
                raise
        return MessageSocket(here), int(copy["process"])

    def _ask(self, do: str, *, descriptors: Sequence[int] = (), **content: Any) -> Any:
        with self._lock:
            if self._closed:
                raise ArenaError("the episode is closed")
            try:
                self._connection.send({"do": do, **content}, descriptors)
                answer, _ = self._connection.receive()
            except Hangup as problem:
                raise ArenaError(f"the process of the episode has ended: {problem}") from problem
        if "error" in answer:
            raise (BadSubmission if answer.get("refused") else ArenaError)(answer["error"])
        return answer["result"]

    def close(self) -> None:
        """End the process; its copies go on. Calling it again does nothing."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._connection.close()
        self._family.leave()


class EpisodeProcess(WorldClient):
    """One episode in its own process."""

    def __init__(
        self, connection: MessageSocket, family: _Family, task: Mapping[str, Any], journal: Journal | None
    ) -> None:
        super().__init__(connection, family)
        self._task = task
        self._journal = journal

    # What an agent gets

    @property
    def description(self) -> str:
        return str(self._task["description"])

    @property
    def instructions(self) -> str:
        return str(self._task["instructions"])

    @property
    def actions(self) -> dict[str, str]:
        """The signature and description of every action."""
        return dict(self._task["actions"])

    @property
    def question(self) -> str:
        return self.status().question

    def status(self) -> Step:
        return Step(state="", **self._ask("status"))

    def act(self, action: str) -> Step:
        """Perform one action, given as text: `kubectl("get pods")`."""
        self._note("act", action=action)
        return self._act(action)

    def _act(self, action: str, speed: float | None = None, until: float | None = None) -> Step:
        return Step(**self._ask("act", action=action, speed=speed, until=until))

    def submit(self, solution: Any, stage: str | int | None = None) -> Step:
        """Answer the open stage; BadSubmission where the answer is malformed."""
        self._note("submit", solution=solution, stage=stage)
        return Step(**self._ask("submit", solution=solution, stage=stage))

    def connect(self) -> dict[str, str]:
        """The paths and addresses for tools of the agent's own: kubeconfig, prometheus, loki, jaeger, token."""
        return dict(self._ask("connect"))

    # What the harness gets

    @property
    def journal(self) -> Journal:
        """How this episode came to be what it is, for `load`; ArenaError where its clock runs with real time."""
        if self._journal is None:
            raise ArenaError("an episode in real time has no journal before its grade: prepare it with speed 0")
        return self._journal

    def observe(self) -> dict[str, Any]:
        """For an operator: an administrator's kubeconfig, the telemetry, the fault's instant, the healthy objects."""
        return dict(self._ask("observe"))

    def wait(self, seconds: float) -> float:
        """Let time pass without an action, which no journal has; returns the instant after it."""
        self._journal = None
        return float(self._ask("stand at", instant=None, seconds=seconds)["now"])

    def _stand_at(self, instant: float) -> None:
        """Let time pass up to an instant; nothing happens where it has passed."""
        self._ask("stand at", instant=instant, seconds=0.0)

    def _note(self, do: str, **content: Any) -> None:
        if self._journal is not None:
            self._journal = self._journal.then(do, **content)

    def grade(self, *, agent: str = "agent", results: Path | None = None, trial: int = 0) -> dict[str, Any]:
        """Grade the episode and return the result document, which names the answer. `results` is a run's folder."""
        folder = str(results) if results is not None else ""
        document = dict(self._ask("grade", agent=agent, results=folder, trial=trial))
        if results is not None and self._journal is not None:
            self._journal.write(folder_of(results, document["problem"], trial) / FILE)
        return document

    def fork(self, count: int = 1, seeds: Sequence[int] | None = None) -> list[EpisodeProcess]:
        """Copy the episode as it is now: world, time, open stage and all. Copies and original are independent.

        The same actions have the same effects in every copy. With `seeds`, one for each copy, what happens by chance
        from here on differs. Connections of tools to the original are closed; its addresses stay.
        """
        if not fork_is_safe():
            raise ArenaError("episodes can be forked on Linux only: prepare one for each run instead")
        if seeds is not None and len(seeds) != count:
            raise ArenaError(f"{count} copies need as many seeds, not {len(seeds)}")
        copies: list[EpisodeProcess] = []
        try:
            for number in range(count):
                copies.append(self._fork(seeds[number] if seeds is not None else None))
        except BaseException:
            for copy in copies:
                copy.close()
            raise
        return copies

    def _fork(self, seed: int | None) -> EpisodeProcess:
        connection, _ = self._copy(seed)
        copy = EpisodeProcess(connection, self._family, self._task, self._journal)
        if seed is not None:
            copy._note("reseed", seed=seed)
        return copy


class HealthySystem(WorldClient):
    """A healthy system in its own process: the template of the episodes of all problems with the same `healthy_key`."""

    def __init__(self, connection: MessageSocket, family: _Family) -> None:
        super().__init__(connection, family)
        self._edited: frozenset[str] = frozenset()

    def serves(self, problem: Problem) -> bool:
        """Whether the system is also that of this problem: noise has changed nothing that it would have spared."""
        return not problem.affected_components & self._edited

    def begin(self, problem: str, spec: EpisodeSpec, *, speed: float = 0.0) -> EpisodeProcess:
        """Prepare a problem in a copy: the same episode, to the byte, that `prepare` makes with the same arguments."""
        spec = _settled(spec, speed)
        connection, _ = self._copy()
        episode = EpisodeProcess(connection, self._family, {}, Journal(problem, spec) if not speed else None)
        return _begun(episode, "begin", problem, spec)

    def work(self, module: str, stdin: int, stdout: int, stderr: int) -> WorkingCopy:
        """Run the `main` of a module in a copy, with these file descriptors; it gets the healthy system."""
        connection, process = self._copy()
        return WorkingCopy(connection, self._family, process, module, [stdin, stdout, stderr])


class WorkingCopy(WorldClient):
    """A copy of a healthy system that runs a program."""

    def __init__(
        self, connection: MessageSocket, family: _Family, process: int, module: str, descriptors: Sequence[int]
    ) -> None:
        super().__init__(connection, family)
        self.pid = process
        self._ask("work", descriptors=descriptors, module=module, environment=dict(os.environ))

    def wait(self) -> int:
        """Wait for the end of the program, and return its exit status; -9 where the process was killed."""
        try:
            answer, _ = self._connection.receive()
        except Hangup:
            return -signal.SIGKILL
        return int(answer["status"])


class _Family:
    """The processes of an episode and of all its copies: one waits for the others, and ends after the last."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._members = 0
        self._lock = threading.Lock()

    def join(self) -> None:
        with self._lock:
            self._members += 1

    def leave(self) -> None:
        with self._lock:
            self._members -= 1
            if self._members:
                return
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, 9)
            self._process.wait()


def prepare(
    problem: str, spec: EpisodeSpec | None = None, *, speed: float = 0.0, observed: Sequence[str] = ()
) -> EpisodeProcess:
    """Prepare a problem up to the first question, in a process of its own.

    With `speed` 0 time passes in the cluster only as actions and grading wait, so a result depends on the actions and
    the seed alone, not on the load of the machine; 1 is real time. Only embedded clusters can be forked.
    Objects of the `observed` kinds are kept as they are before the fault, for `observe`.
    """
    spec = _settled(spec or EpisodeSpec(), speed)
    episode = EpisodeProcess(*_started(spec), {}, Journal(problem, spec) if not speed else None)
    return _begun(episode, "prepare", problem, spec, observed=list(observed), late=None)


def prepare_healthy(problem: str, spec: EpisodeSpec, modules: Sequence[str] = ()) -> HealthySystem:
    """Prepare the healthy system of a problem, in a process of its own, which imports the modules of its programs."""
    system = HealthySystem(*_started(spec))
    try:
        answer = system._ask("prepare healthy", problem=problem, spec=spec.as_document(), modules=list(modules))
    except BaseException:
        system.close()
        raise
    system._edited = frozenset(answer["edited"])
    return system


def _settled(spec: EpisodeSpec, speed: float) -> EpisodeSpec:
    """The specification with its cluster, and where the clock stands still, with the instant at which it does."""
    start = wall_now() if spec.start is None and not speed else spec.start
    return replace(spec, config=spec.backend, speed=speed, start=start)


def _started(spec: EpisodeSpec) -> tuple[MessageSocket, _Family]:
    """Start the process of a world."""
    if not spec.backend.embedded:
        raise ArenaError("only an embedded cluster can be forked: choose the backend `embedded`")
    here, there = socket.socketpair()
    with there:
        process = subprocess.Popen(
            python_module("srearena.conductor.worlds.process", str(there.fileno())),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[there.fileno()],
            env={**os.environ, **SINGLE_THREADED},
            start_new_session=True,
        )
    return MessageSocket(here), _Family(process)


def _begun(episode: EpisodeProcess, how: str, problem: str, spec: EpisodeSpec, **more: Any) -> EpisodeProcess:
    try:
        episode._task = episode._ask(how, problem=problem, spec=spec.as_document(), **more)
    except BaseException:
        episode.close()
        raise
    return episode


def load(
    journal: Journal,
    step: int | None = None,
    *,
    observed: Sequence[str] = (),
    watch: Callable[[int, str], None] = lambda performed, answer: None,
) -> EpisodeProcess:
    """Make the world of a journal again, up to one of its actions or to its end; see `EpisodeProcess.journal`.

    `watch` is called after each request with their number so far and the answer, first with 0 for the prepared world.
    """
    journal = journal.up_to(step)
    spec = _settled(journal.spec, 0.0)
    again = Journal(journal.problem, spec) if journal.began is None else None
    episode = EpisodeProcess(*_started(spec), {}, again)
    _begun(episode, "prepare", journal.problem, spec, observed=list(observed), late=journal.late)
    try:
        if journal.began is not None:
            episode._stand_at(journal.began)
        watch(0, "")
        for number, request in enumerate(journal.requests, 1):
            if journal.began is not None:
                episode._stand_at(request["at"])
            answer = ""
            match request["do"]:
                case "act":
                    episode._note("act", action=request["action"])
                    answer = episode._act(request["action"], _speed_of(request), request.get("until")).state
                case "submit":
                    with contextlib.suppress(BadSubmission):  # refused as it was the first time
                        episode.submit(request["solution"], request["stage"])
                case "reseed":
                    with episode:
                        (episode,) = episode.fork(seeds=[request["seed"]])
            if journal.began is not None:
                episode._stand_at(request["until"])
            watch(number, answer)
    except BaseException:
        episode.close()
        raise
    return episode


def _speed_of(request: Mapping[str, Any]) -> float | None:
    """How fast the clock flows while an action is performed again: one that watches the cluster has to see progress."""
    if "flowed" not in request:
        return None
    return _FAST if request["flowed"] >= _LONG else 1.0
