"""Where problems are found: every module of this package, and what other packages offer by entry point.

A class is registered under one or more ids by decorator, with the arguments that make it that problem:

    @problem("missing_service_hotel_reservation", app="hotel_reservation", service="mongodb-rate")
    class MissingService(Problem): ...

Ids people know from older benchmarks work: a task suffix (`-detection-1`) chooses one stage. `a+b` is both at once.
"""

from __future__ import annotations

import difflib
import fnmatch
import importlib
import pkgutil
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import Any, TypeVar

from srearena.conductor.errors import ProblemError, UnknownProblem
from srearena.conductor.problems.base import Problem

ENTRY_POINTS = "srearena.problems"
_TASK_SUFFIX = re.compile(r"(?P<name>.+)-(?P<stage>detection|localization|analysis|mitigation)(-(?P<number>\d+))?")
_NOT_PROBLEMS = frozenset(("base", "registry", "metadata", "helpers", "composition"))

C = TypeVar("C", bound=type[Problem])


@dataclass(frozen=True, slots=True)
class Entry:
    """How to make one problem."""

    id: str
    make: Callable[[], Problem]
    tags: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Selection:
    """What an id asks for: problems to have at once, and the stages it restricts an episode to."""

    ids: tuple[str, ...]
    stages: tuple[str, ...] | None = None

    @property
    def id(self) -> str:
        return "+".join(self.ids)


_entries: dict[str, Entry] = {}
_aliases: dict[str, str] = {}


def problem(name: str, *, aliases: Sequence[str] = (), tags: Sequence[str] = (), **arguments: Any) -> Callable[[C], C]:
    """Register a class as the problem of this id; `arguments` go to its constructor. Can be stacked."""

    def register(made: C) -> C:
        if name in _entries:
            raise ProblemError(f"two problems are called {name!r}: ids are unique")

        def make() -> Problem:
            instance = made(**arguments)
            instance.id = name
            return instance

        _entries[name] = Entry(name, make, frozenset(tags))
        _aliases.update(dict.fromkeys(aliases, name))
        return made

    return register


@cache
def discover() -> None:
    """Import everything that may register problems. One of ours that is broken fails loudly, a guest's only warns."""
    package = importlib.import_module("srearena.conductor.problems")
    for module in pkgutil.iter_modules(package.__path__):
        if module.name not in _NOT_PROBLEMS:
            importlib.import_module(f"{package.__name__}.{module.name}")
    for point in entry_points(group=ENTRY_POINTS):
        try:
            point.load()
        except Exception as error:
            warnings.warn(f"problems of {point.name} ({point.value}) cannot be loaded: {error}", stacklevel=2)


class ProblemRegistry:
    """All problems there are, by id."""

    def __init__(self) -> None:
        discover()

    def get_problem_ids(self, task_type: str | None = None) -> list[str]:
        """Every id, sorted; with a stage, only of the problems that have it."""
        ids = sorted(_entries)
        return ids if task_type is None else [name for name in ids if task_type in self.get_problem(name).stages]

    def get_problem_count(self, task_type: str | None = None) -> int:
        return len(self.get_problem_ids(task_type))

    def resolve(self, text: str) -> Selection:
        """What an id, an old id with a task suffix, or `a+b` stands for; UnknownProblem says the nearest ids."""
        parts = [self._resolve_one(part.strip()) for part in text.split("+")]
        ids = tuple(dict.fromkeys(part.ids[0] for part in parts))
        restricted = [part.stages for part in parts if part.stages is not None]
        return Selection(ids, restricted[0] if restricted else None)

    def _resolve_one(self, text: str) -> Selection:
        name = _aliases.get(text, text)
        if name in _entries:
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

    def get_problem(self, text: str) -> Problem:
        """A fresh problem, not attached to any cluster."""
        selection = self.resolve(text)
        parts = [_entries[name].make() for name in selection.ids]
        if len(parts) == 1:
            return parts[0]
        from srearena.conductor.problems.composition import Composition

        return Composition(parts)

    get_problem_instance = get_problem

    def match(self, patterns: Iterable[str]) -> list[str]:
        """The ids that any of the patterns names, each pattern a glob or an id; UnknownProblem if one names none."""
        found: dict[str, None] = {}
        for pattern in patterns:
            if any(mark in pattern for mark in "*?["):
                ids = fnmatch.filter(sorted(_entries), pattern)
                if not ids:
                    raise UnknownProblem(f"no problem matches {pattern!r}: `srearena problems` lists them all")
            else:
                meant = self.resolve(pattern)
                # By its proper name, under which its results are found again; an old id that names a stage keeps it.
                ids = [pattern] if meant.stages is not None or len(meant.ids) > 1 else list(meant.ids)
            found.update(dict.fromkeys(ids))
        return list(found)


def _numbered(name: str, number: str | None) -> tuple[str, ...]:
    """Where a numbered variant may be found: the first of a family often carries no number."""
    if number is None:
        return (name, f"{name}-1")
    return (f"{name}-{number}", name) if number == "1" else (f"{name}-{number}",)
