"""Agents by name: ours from `clients`, other packages' by entry point (`srearena.agents`).

An agent is any class with `async def get_action(self, state: str) -> str`. Some more things are used where it has them:
`keep_record(note)`, given a function `note(what, **facts)` that writes to the record of the trial;
`init_context(description, instructions, actions)`, told once before it starts; `connect(kubeconfig)`, given the file
with its own identity in the cluster, for those who would rather ask the API themselves; `usage()`, a mapping with
`tokens_in`, `tokens_out` and `cost` so far; and `async def aclose()`, at the end.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from typing import Any, Protocol, TypeVar, runtime_checkable

from srearena.conductor.errors import ArenaError, UnknownProblem

ENTRY_POINTS = "srearena.agents"
_OURS = {
    "nothing": "clients.nothing",
    "scripted": "clients.scripted",
    "rules": "clients.rules",
    "llm": "clients.llm",
}
_registered: dict[str, Callable[..., Agent]] = {}


@runtime_checkable
class Agent(Protocol):
    async def get_action(self, state: str) -> str: ...


A = TypeVar("A", bound=Callable[..., Any])


def agent(name: str) -> Callable[[A], A]:
    """Register a class, or a function that makes an agent, under a name for `--agent`."""

    def register(made: A) -> A:
        _registered[name] = made
        return made

    return register


def agent_names() -> list[str]:
    return sorted({*_OURS, *_registered, *(point.name for point in entry_points(group=ENTRY_POINTS))})


def make_agent(name: str, options: Mapping[str, Any] | None = None) -> Agent:
    """A fresh agent; UnknownProblem names the nearest ones."""
    if name not in _registered:
        if name in _OURS:
            importlib.import_module(_OURS[name])
        else:
            for point in entry_points(group=ENTRY_POINTS):
                if point.name == name:
                    _registered[name] = point.load()
    if name not in _registered:
        near = difflib.get_close_matches(name, agent_names(), n=2)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(agent_names())}"
        raise UnknownProblem(f"there is no agent called {name!r}: {hint}")
    try:
        return _registered[name](**(options or {}))
    except TypeError as problem:
        raise ArenaError(f"agent {name!r} cannot be made with these options: {problem}") from problem
