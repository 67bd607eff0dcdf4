"""Systems of finished trials that are built again for the pages, each in a process of its own.

They end with the view, and at most `_AT_ONCE` are kept: opening another ends the one whose latest use is longest ago. A
journal may come from anywhere, so it is bounded before anything is built; what it performs are actions of an agent,
under the policy that agents are under, on an embedded cluster.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import replace
from secrets import token_hex
from typing import Any

from srearena.conductor.episode.limits import Limits
from srearena.conductor.worlds import EpisodeProcess, Journal, load
from srearena.errors import SreArenaError
from srearena.view.catalog import Catalog
from srearena.view.incidents import objects
from srearena.view.incidents.base import Incident
from srearena.view.incidents.rebuilt import RebuiltIncident
from srearena.view.transcript import Step
from srearena.view.trials import ViewedTrial

BUILDING, READY, FAILED, ENDED = "building", "ready", "failed", "ended"
_AT_ONCE = 2
"""Each has the memory of a cluster. Chosen."""
_MOST_REQUESTS = 5_000
_LONGEST_PHASE = 86_400.0
_AGE = re.compile(r"\b(?:\d+[ydhms])+\b")
_UNLIMITED = Limits(None, None, None, None, None, invalid_submissions=1_000_000)
"""The limits of the trial have done their work: the same requests are made as then."""


class WorldError(SreArenaError):
    """A system cannot be built again; the text says why."""


class _Closed(Exception):
    """The system is not wanted any more."""


class World:
    """One system: being built, open, or ended."""

    def __init__(self, trial: ViewedTrial, step: int, journal: Journal, answers: list[str | None]) -> None:
        self.id = token_hex(8)
        self.key = (trial.id, step)
        self.last_use = 0
        """The number of the latest request to open it."""
        self.state = BUILDING
        self.incident: Incident | None = None
        self._journal = journal
        self._answers = answers
        self._performed = -1
        self._equal = 0
        self._error = ""
        self._lock = threading.Lock()
        threading.Thread(target=self._build, daemon=True).start()

    @property
    def is_open(self) -> bool:
        return self.state in (BUILDING, READY)

    def document(self) -> dict[str, Any]:
        known = [answer for answer in self._answers if answer is not None]
        return {
            "world": self.id,
            "trial": self.key[0],
            "step": self.key[1],
            "state": self.state,
            "performed": max(self._performed, 0),
            "prepared": self._performed >= 0,
            "requests": len(self._journal.requests),
            "answers": {"equal": self._equal, "of": len(known)},
            **({"error": self._error} if self._error else {}),
            **({"incident": self.incident.id} if self.incident is not None else {}),
        }

    def close(self) -> None:
        """End the system; one that is being built ends with the request that it performs."""
        with self._lock:
            self.state = ENDED if self.is_open else self.state
            incident, self.incident = self.incident, None
        if incident is not None:
            incident.close()

    def _build(self) -> None:
        try:
            episode = load(self._journal, observed=objects.COMPARED, watch=self._watch)
            try:
                self._open(episode)
            except BaseException:
                episode.close()
                raise
        except _Closed:
            return
        except Exception as problem:
            expected = isinstance(problem, SreArenaError)
            self._error = str(problem) if expected else f"{type(problem).__name__}: {problem}"
            self.state = FAILED if self.state == BUILDING else self.state

    def _open(self, episode: EpisodeProcess) -> None:
        facts = {"trial": self.key[0], "step": self.key[1], "world": self.id}
        incident = RebuiltIncident(f"world:{self.id}", episode, facts)
        with self._lock:
            if self.state == BUILDING:
                self.incident, self.state = incident, READY
                return
        incident.close()

    def _watch(self, performed: int, answer: str) -> None:
        if self.state != BUILDING:
            raise _Closed
        self._performed = performed
        recorded = self._answers[performed - 1] if performed else None
        if recorded is not None and _without_ages(recorded) == _without_ages(answer):
            self._equal += 1


class Worlds:
    """The systems by id. Safe to use from several threads."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._worlds: dict[str, World] = {}
        self._opened = 0
        self._lock = threading.Lock()
        self.routes: dict[tuple[str, str], Callable[[dict[str, str]], Any]] = {
            ("POST", "/api/world/open"): self._open,
            ("GET", "/api/world"): lambda query: self._find(query).document(),
            ("POST", "/api/world/close"): self._end,
        }

    def incidents(self) -> dict[str, Incident]:
        """The systems that are open, by the ids of their incidents."""
        found = [world.incident for world in list(self._worlds.values())]
        return {incident.id: incident for incident in found if incident is not None}

    def close(self) -> None:
        for world in self._worlds.values():
            world.close()

    def _find(self, query: dict[str, str]) -> World:
        world = self._worlds.get(query.get("world", ""))
        if world is None:
            raise WorldError("there is no such system: it has ended")
        return world

    def _open(self, query: dict[str, str]) -> dict[str, Any]:
        trial = self._catalog.find(query.get("trial", ""))
        if trial is None:
            raise WorldError(f"there is no trial {query.get('trial', '')!r}")
        steps = trial.steps()
        step = _step_in(query, len(steps))
        with self._lock:
            self._opened += 1
            key = (trial.id, step)
            world = next((one for one in self._worlds.values() if one.key == key and one.is_open), None)
            if world is None:
                journal, answers = recorded(trial, steps, step)
                self._make_room()
                world = World(trial, step, journal, answers)
                self._worlds[world.id] = world
            world.last_use = self._opened
        return world.document()

    def _make_room(self) -> None:
        present = sorted((one for one in self._worlds.values() if one.is_open), key=lambda one: one.last_use)
        for oldest in present[: max(0, len(present) - _AT_ONCE + 1)]:
            oldest.close()

    def _end(self, query: dict[str, str]) -> dict[str, Any]:
        world = self._find(query)
        world.close()
        return world.document()


def _without_ages(answer: str) -> str:
    """An answer without the ages of objects, which differ by a second where milliseconds do."""
    return re.sub(r" +", " ", _AGE.sub("", answer))


def _step_in(query: dict[str, str], last: int) -> int:
    try:
        step = int(query.get("step", ""))
    except ValueError as problem:
        raise WorldError(f"a step is a number, not {query.get('step', '')!r}") from problem
    if not 0 <= step <= last:
        raise WorldError(f"there is no step {step}: the trial has {last}")
    return step


def recorded(trial: ViewedTrial, steps: list[Step], step: int) -> tuple[Journal, list[str | None]]:
    """The journal of a trial up to a step of its transcript, and what was answered to each request, where known."""
    path, reason = trial.journal_file(), trial.no_world()
    if path is None or reason:
        raise WorldError(reason)
    journal = Journal.read(path)
    if journal.began is not None:
        journal = journal.up_to_line(max((one.line for one in steps[:step]), default=-1))
        answers = _answers_by_line(steps)
        known = [answers.get(request["line"]) for request in journal.requests]
    else:
        actions = [one for one in steps[:step] if one.is_action]
        journal = journal.up_to(len(actions))
        texts = iter([one.answer for one in steps if one.is_action])
        known = [next(texts, None) if request["do"] == "act" else None for request in journal.requests]
    return _bounded(journal), known


def _answers_by_line(steps: list[Step]) -> dict[int, str]:
    """The answers of actions; those to tools of other kinds are cut, or printed in another way."""
    return {step.line: step.answer for step in steps if step.is_action}


def _bounded(journal: Journal) -> Journal:
    """The journal with bounds that no trial reaches; WorldError where it is not to be performed at all."""
    timeline = journal.spec.timeline
    phases = (timeline.before, timeline.after, timeline.deployment, journal.late)
    if not all(0 <= seconds <= _LONGEST_PHASE for seconds in phases) or len(journal.requests) > _MOST_REQUESTS:
        raise WorldError("the journal of this trial is of no real trial: it asks for days, or for thousands of actions")
    if not journal.spec.backend.embedded:
        raise WorldError("this trial was on a real cluster, which cannot be built again")
    instants = [journal.began or 0.0, *(float(request.get("until", 0.0)) for request in journal.requests)]
    if journal.began is not None and max(instants) - (journal.spec.start or 0.0) > _LONGEST_PHASE:
        raise WorldError("the journal of this trial is of no real trial: it lasts for days")
    return replace(journal, spec=replace(journal.spec, limits=_UNLIMITED))
