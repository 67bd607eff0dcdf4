"""The registry of problems: the modules of this package, and other packages by entry point (`srearena.problems`).

A class is registered under one or more ids by decorator, with the arguments of its constructor:

    @problem("missing_service_hotel_reservation", app="hotel_reservation", service="mongodb-rate")
    class MissingService(Problem): ...

Ids of older benchmarks are supported: a task suffix (`-detection-1`) selects one stage. `a+b` combines two problems.
Incidents in files (`incidents`) have ids as well: those of the package their file's name, all others a digest.
"""

from __future__ import annotations

import difflib
import fnmatch
import importlib
import pkgutil
import random
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, TypeVar

from srearena.conductor.errors import ProblemError, UnknownProblem
from srearena.conductor.problems.base import Problem
from srearena.conductor.problems.incidents.document import Incident, is_incident_file, read_incident
from srearena.conductor.problems.incidents.library import find, is_incident_id, keep
from srearena.conductor.problems.metadata import contradiction
from srearena.conductor.problems.variation import varied
from srearena.conductor.stages import in_order
from srearena.service.apps import find_application

ENTRY_POINTS = "srearena.problems"
_TASK_SUFFIX = re.compile(r"(?P<name>.+)-(?P<stage>detection|localization|analysis|mitigation)(-(?P<number>\d+))?")
_NOT_PROBLEMS = frozenset(
    ("base", "registry", "metadata", "helpers", "composition", "incidents", "targets", "variation")
)
_COMPOUND = Path(__file__).parent / "compound"
"""Incidents in files that come with the package; the name of the file is the id."""

C = TypeVar("C", bound=type[Problem])


@dataclass(frozen=True, slots=True)
class Entry:
    """A registered problem."""

    id: str
    make: Callable[[random.Random | None], Problem]
    """Makes the problem, with target and parameters drawn from a stream, or the catalogue's own without one."""
    tags: frozenset[str] = frozenset()
    kind: type[Problem] | None = None
    """The class; None for an incident in a file."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """The registered arguments of its constructor."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The meaning of an id: the problems to combine, and the stages it restricts an episode to."""

    ids: tuple[str, ...]
    stages: tuple[str, ...] | None = None

    @property
    def id(self) -> str:
        return "+".join(self.ids)


_entries: dict[str, Entry] = {}
_aliases: dict[str, str] = {}


def problem(name: str, *, aliases: Sequence[str] = (), tags: Sequence[str] = (), **arguments: Any) -> Callable[[C], C]:
    """Register a class as the problem of this id; `arguments` go to its constructor. Can be stacked."""

    def register(kind: C) -> C:
        if name in _entries:
            raise ProblemError(f"two problems are called {name!r}: ids are unique")

        def make(stream: random.Random | None) -> Problem:
            return _instance(name, kind, arguments if stream is None else varied(kind, arguments, stream))

        _entries[name] = Entry(name, make, frozenset(tags), kind, arguments)
        _aliases.update(dict.fromkeys(aliases, name))
        return kind

    return register


def _instance(name: str, kind: type[Problem], arguments: Mapping[str, Any]) -> Problem:
    instance = kind(**arguments)
    instance.id = name
    wrong = contradiction(instance.level, instance.analysis_level, instance.fault_type)
    if wrong:
        raise ProblemError(f"{name}: {wrong}")
    return instance


def _with_arguments(name: str, arguments: Mapping[str, Any]) -> Problem:
    """The problem of a registered class, with other arguments of its constructor."""
    discover()
    entry = _entries.get(_aliases.get(name, name))
    if entry is None or entry.kind is None:
        raise UnknownProblem(f"an incident consists of registered problems, and {name!r} is none")
    return _instance(entry.id, entry.kind, {**entry.arguments, **arguments})


def problem_of(incident: Incident) -> Problem:
    """Create the problem that a document describes, not attached to any cluster."""
    from srearena.conductor.problems.incidents.problem import IncidentProblem  # a composition, as below

    instance = IncidentProblem(incident, _with_arguments)
    application = find_application(incident.application)
    if application.namespace != instance.app.namespace:
        raise ProblemError(f"the faults of {incident.id} are not on {incident.application}")
    return instance


def _register_compound(path: Path) -> None:
    name = path.stem

    def make(stream: random.Random | None) -> Problem:
        instance = problem_of(read_incident(path))
        instance.id = name
        return instance

    _entries[name] = Entry(name, make, frozenset({"compound"}))


@cache
def discover() -> None:
    """Import all modules that register problems. A broken built-in raises, a broken plugin only warns."""
    package = importlib.import_module("srearena.conductor.problems")
    for module in pkgutil.iter_modules(package.__path__):
        if module.name not in _NOT_PROBLEMS:
            importlib.import_module(f"{package.__name__}.{module.name}")
    for path in sorted(_COMPOUND.glob("*.yaml")):
        _register_compound(path)
    for point in entry_points(group=ENTRY_POINTS):
        try:
            point.load()
        except Exception as error:
            warnings.warn(f"problems of {point.name} ({point.value}) cannot be loaded: {error}", stacklevel=2)


class ProblemRegistry:
    """All problems by id."""

    def __init__(self) -> None:
        discover()

    def get_problem_ids(self, task_type: str | None = None) -> list[str]:
        """All ids, sorted; `task_type` names a stage, and every problem has all stages."""
        if task_type is not None:
            in_order((task_type,))
        return sorted(_entries)

    def entries(self) -> list[Entry]:
        return [_entries[name] for name in self.get_problem_ids()]

    def get_problem_count(self, task_type: str | None = None) -> int:
        return len(self.get_problem_ids(task_type))

    def resolve(self, text: str) -> Selection:
        """Resolve an id, an old id with a task suffix, or `a+b`; UnknownProblem names the nearest ids."""
        parts = [self._resolve_one(part.strip()) for part in text.split("+")]
        ids = tuple(dict.fromkeys(part.ids[0] for part in parts))
        restricted = [part.stages for part in parts if part.stages is not None]
        return Selection(ids, restricted[0] if restricted else None)

    def _resolve_one(self, text: str) -> Selection:
        name = _aliases.get(text, text)
        if name in _entries or is_incident_id(name):
            return Selection((name,))
        old = _TASK_SUFFIX.fullmatch(text)
        if old is not None:
            for candidate in _numbered(old["name"], old["number"]):
                name = _aliases.get(candidate, candidate)
                if name in _entries:
                    return Selection((name,), (old["stage"],))
        raise UnknownProblem(self._unknown(text))

    def _unknown(self, text: str) -> str:
        near = difflib.get_close_matches(text, [*_entries, *_aliases], n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else "`srearena problems` lists them all"
        return f"there is no problem called {text!r}: {hint}"

    def get_problem(self, text: str, variant: int | None = None) -> Problem:
        """Create a problem, not attached to any cluster.

        With a `variant` (`EpisodeSpec.variant`), its target and parameters are drawn from that seed; without one they
        are the catalogue's own. Combined problems keep the catalogue's, whose targets do not interfere.
        """
        selection = self.resolve(text)
        if any(is_incident_id(name) for name in selection.ids):
            if len(selection.ids) > 1:
                raise ProblemError(f"{selection.id} cannot be combined: put all faults into one incident's file")
            return problem_of(find(selection.ids[0]))
        if len(selection.ids) == 1:
            name = selection.ids[0]
            return _entries[name].make(None if variant is None else random.Random(f"{variant}:{name}:target"))
        parts = [_entries[name].make(None) for name in selection.ids]
        from srearena.conductor.problems.composition import Composition

        return Composition(parts)

    get_problem_instance = get_problem

    def identify(self, text: str) -> str:
        """The id for what a user has typed: an incident's file goes into the library and has an id from then on.

        Only for what the local user types. What comes over the network is resolved as an id, and opens no file.
        """
        if not is_incident_file(text):
            return text
        incident = read_incident(Path(text))
        problem_of(incident)  # says now what is wrong with it
        return keep(incident)

    def match(self, patterns: Iterable[str]) -> list[str]:
        """The ids that match globs or ids; UnknownProblem where one of them matches nothing."""
        matches: dict[str, None] = {}
        for pattern in map(self.identify, patterns):
            if any(mark in pattern for mark in "*?["):
                ids = fnmatch.filter(sorted(_entries), pattern)
                if not ids:
                    raise UnknownProblem(f"no problem matches {pattern!r}: `srearena problems` lists them all")
            else:
                selection = self.resolve(pattern)
                # The canonical id, under which results are stored; an old id with a stage stays as it is.
                ids = [pattern] if selection.stages is not None or len(selection.ids) > 1 else list(selection.ids)
            matches.update(dict.fromkeys(ids))
        return list(matches)


def _numbered(name: str, number: str | None) -> tuple[str, ...]:
    """Candidate ids of a numbered variant: the first of a family often has no number."""
    if number is None:
        return (name, f"{name}-1")
    return (f"{name}-{number}", name) if number == "1" else (f"{name}-{number}",)
