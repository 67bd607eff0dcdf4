"""The process of one episode: `python -m srearena.conductor.worlds.process FD`, started by `worlds.client`.

It has one thread beside the cluster's, answers one request after the other on the socket FD, and ends with that
connection. Or it is that of a healthy system, whose copies become episodes of several problems, or worker processes.
To be forked it suspends the cluster; the copy takes ports, keys, tokens and files of its own and answers on the socket
that came with the request. Both resume when they next need the cluster, so a template that is only forked never serves.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from srearena.cluster import Cluster
from srearena.conductor.actions.telemetry import Telemetry
from srearena.conductor.agent_process.isolation import EXTERNAL
from srearena.conductor.episode.addresses import addresses
from srearena.conductor.episode.environment import open_cluster
from srearena.conductor.episode.episode import Episode
from srearena.conductor.episode.records import seconds_of
from srearena.conductor.episode.spec import EpisodeSpec
from srearena.conductor.errors import ArenaError, BadAction, BadSubmission
from srearena.conductor.problems.base import Problem
from srearena.conductor.problems.registry import ProblemRegistry
from srearena.conductor.results.store import folder_of, trial_document, write_state, write_trial
from srearena.conductor.session import Session
from srearena.conductor.worlds.messages import Hangup, MessageSocket
from srearena.conductor.worlds.quiescence import adopt_orphans, reap_until_alone, require_one_thread
from srearena.errors import SreArenaError
from srearena.service.kubernetes import Kubernetes, Obj

Answer = dict[str, Any]
_LONGEST_ACTION = 600.0
"""Seconds of the cluster's time that commands in pods may take; with a stopped clock nothing else lets it pass."""


_COLLECTED = 50_000
"""New objects that start a garbage collection, as in a cluster's own process: there is one cluster in this one, too."""


class WorldProcess:
    """Answers the requests to one episode."""

    def __init__(self, connection: MessageSocket) -> None:
        self._connection = connection
        self._episode: Episode | None = None
        self._seed = 0
        self._healthy: dict[str, list[Obj]] = {}
        """The objects of the healthy system, of the kinds that were asked for."""
        self._copies: set[int] = set()
        self._program: Callable[[Episode], int] | None = None
        """The program of a worker, which takes over when its request was answered."""
        self._handlers: dict[str, Callable[[Answer, list[int]], Answer | None]] = {
            "prepare": self._prepare,
            "prepare healthy": self._prepare_healthy,
            "begin": self._begin,
            "work": self._work,
            "status": lambda request, descriptors: self._status(),
            "act": self._act,
            "submit": self._submit,
            "connect": self._connect,
            "stand at": self._stand_at,
            "observe": self._observe,
            "fork": self._fork,
            "grade": self._grade,
        }

    def serve(self) -> None:
        """Answer requests until the client hangs up."""
        try:
            with contextlib.suppress(Hangup):
                while self._program is None:
                    answer = self._answer(*self._connection.receive())
                    if answer is not None:
                        self._connection.send(answer)
                self._connection.send({"status": self._program(self.episode)})
        finally:
            if self._episode is not None:
                self._episode.close()
            self._connection.close()

    def _answer(self, request: Answer, descriptors: list[int]) -> Answer | None:
        try:
            result = self._handlers[request.pop("do")](request, descriptors)
        except SreArenaError as problem:
            return {"error": str(problem), "refused": isinstance(problem, BadSubmission)}
        except Exception as error:
            traceback.print_exc()
            return {"error": f"the process of the episode failed: {type(error).__name__}: {error}"}
        return None if result is None else {"result": result}

    @property
    def episode(self) -> Episode:
        """The episode, with its cluster running."""
        if self._episode is None:
            raise ArenaError("no episode is prepared in this process")
        self._episode.resume()
        return self._episode

    # Requests

    def _prepare(self, request: Answer, descriptors: list[int]) -> Answer:
        def prepare(episode: Episode) -> None:
            episode.prepare_healthy()
            with Kubernetes.of(episode.cluster) as api:
                self._healthy = {kind: api.list(kind) for kind in request["observed"]}
            episode.prepare_incident(request["late"])

        return self._prepared(self._open(request), prepare)

    def _prepare_healthy(self, request: Answer, descriptors: list[int]) -> Answer:
        for name in request["modules"]:
            import_module(name)  # once, and not in every copy
        episode = self._open(request)
        episode.prepare_healthy(shared=True)
        gc.collect()
        return {"edited": sorted(episode.edited_by_noise)}

    def _begin(self, request: Answer, descriptors: list[int]) -> Answer:
        episode, (problem, spec) = self.episode, _of_request(request)
        episode.hand_to(problem, spec, session=Session())
        return self._prepared(episode, Episode.prepare_incident)

    def _open(self, request: Answer) -> Episode:
        problem, spec = _of_request(request)
        cluster = open_cluster(problem, spec)
        try:
            self._episode = Episode(problem, cluster, spec, session=Session())
        except BaseException:
            cluster.close()
            raise
        self._seed = spec.seed
        return self._episode

    def _prepared(self, episode: Episode, prepare: Callable[[Episode], None]) -> Answer:
        prepare(episode)
        _evaluate_alerts(episode.cluster)
        gc.collect()
        return {
            "description": episode.description,
            "instructions": episode.instructions,
            "actions": episode.actions,
        }

    def _work(self, request: Answer, descriptors: list[int]) -> Answer:
        """Become a worker: its standard streams come with the request, and its program is the `main` of a module."""
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
            os.close(descriptor)
        os.environ.clear()
        os.environ.update(request["environment"])
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self._program = partial(_main_of, request["module"])
        return {}

    def _status(self) -> Answer:
        episode = self._episode
        if episode is None:
            raise ArenaError("no episode is prepared in this process")
        return {
            "question": episode.question,
            "stage": episode.stage,
            "finished": episode.finished,
            "steps": episode.usage.steps,
            "invalid_actions": episode.usage.invalid_actions,
        }

    def _act(self, request: Answer, descriptors: list[int]) -> Answer:
        if not self.episode.within_limits():
            return {"state": "The episode is over.", **self._status()}
        with self._flowing(request["speed"], request["until"]), self.episode.cluster.fast_forward(_LONGEST_ACTION):
            state = self.episode.act(request["action"])
            self.episode.within_limits()  # ends the episode with the action that reaches a limit
        return {"state": state, **self._status()}

    @contextlib.contextmanager
    def _flowing(self, speed: float | None, until: float | None) -> Iterator[None]:
        """Let a clock that stands still flow up to an instant: who watches the cluster sees what happens there."""
        if not speed:
            yield
            return
        cluster = self.episode.cluster
        cluster.set_speed(speed, until)
        try:
            yield
        finally:
            cluster.set_speed(0)

    def _submit(self, request: Answer, descriptors: list[int]) -> Answer:
        return {"state": self.episode.submit(request["solution"], request["stage"]), **self._status()}

    def _connect(self, request: Answer, descriptors: list[int]) -> Answer:
        return dict(addresses(self.episode))

    def _stand_at(self, request: Answer, descriptors: list[int]) -> Answer:
        """Let time pass up to an instant, or for so many seconds."""
        cluster = self.episode.cluster
        clock = cluster.virtual_clock()
        assert clock is not None, "the clusters of this process are embedded"
        seconds = request["seconds"] if request["instant"] is None else request["instant"] - clock.now
        if seconds > 0:
            cluster.wait(seconds)
        return {"now": clock.now + max(seconds, 0.0)}

    def _observe(self, request: Answer, descriptors: list[int]) -> Answer:
        """What an operator needs to look at the system, with an administrator's access."""
        episode = self.episode
        fault = episode.problem.injected_at if episode.problem.fault_injected else ""
        return {
            "application": episode.problem.app.name,
            "kubeconfig": str(episode.cluster.kubeconfig),
            "telemetry": asdict(episode.cluster.telemetry),
            "fault": seconds_of(fault),
            "handed_over": seconds_of(episode.handed_over_at),
            "healthy": self._healthy,
        }

    def _grade(self, request: Answer, descriptors: list[int]) -> Answer:
        episode = self.episode
        episode.grade()
        run = Path(request["results"]) if request["results"] else None
        document = trial_document(
            episode,
            agent=request["agent"],
            isolation=EXTERNAL,
            seed=self._seed,
            trial=request["trial"],
            run=run.name if run is not None else "",
        )
        if run is not None:
            write_state(run, document, episode.state)
            write_trial(run, document)
            episode.session.write(folder_of(run, document["problem"], request["trial"]) / "session.jsonl")
        return document

    def _fork(self, request: Answer, descriptors: list[int]) -> Answer | None:
        self._reap()
        if self._episode is not None:
            self._episode.suspend()
        require_one_thread()
        process = os.fork()
        if process:
            os.close(descriptors[0])
            self._copies.add(process)
            return {"process": process}
        gc.freeze()  # a collection would write to every page of the original, and copy it
        self._copies.clear()
        self._connection.close()
        self._connection = MessageSocket(socket.socket(fileno=descriptors[0]))
        if self._episode is not None:
            self._episode.become_copy(request["seed"])
        if request["seed"] is not None:
            self._seed = int(request["seed"])
        return None

    def _reap(self) -> None:
        for process in list(self._copies):
            if os.waitpid(process, os.WNOHANG)[0]:
                self._copies.discard(process)


def _of_request(request: Answer) -> tuple[Problem, EpisodeSpec]:
    """The problem, and the specification of its episode."""
    spec = EpisodeSpec.from_document(request["spec"])
    registry = ProblemRegistry()
    selection = registry.resolve(request["problem"])
    problem = registry.get_problem(request["problem"], spec.variant)
    return problem, replace(spec, stages=spec.stages or selection.stages, in_process=True).pinned_by(problem)


def _main_of(module: str, healthy: Episode) -> int:
    """Run the `main` of a module with a healthy system, and return the exit status."""
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
    try:
        import_module(module).main(healthy)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def _evaluate_alerts(cluster: Cluster) -> None:
    """Evaluate the alerting rules over the history, which clusters do when first asked: once, not in every copy."""
    telemetry = Telemetry(cluster)
    try:
        telemetry.alerts()
    except BadAction:
        return  # no Prometheus in this application's cluster
    finally:
        telemetry.close()


def main(descriptor: int) -> None:
    """Serve in a child process. This one stays to wait for all copies, and ends after the last of them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the client decides when this ends
    gc.set_threshold(_COLLECTED, 10, 10)
    adopt_orphans()
    connection = MessageSocket(socket.socket(fileno=descriptor))
    if os.fork():
        connection.close()
        reap_until_alone()
        return
    WorldProcess(connection).serve()
    # An orderly end would free every object of the world, and so copy all of the memory that is still shared.
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
