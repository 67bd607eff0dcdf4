"""Agents by name, found in the entry-point group `srearena.agents`.

The agents that come with SREArena are entries of the same group (`pyproject.toml` declares them), so nothing here
imports a client. An entry names a class, or a function that creates an agent from keyword options.

An agent is any class with `async def get_action(self, state: str) -> str`. Optional methods are called where present:
`keep_record(note)` receives a function `note(kind, **facts)` that appends to the trial's session file;
`init_context(description, instructions, actions)` is called once before the first question; `connect(kubeconfig)`
receives the file with the agent's own identity in the cluster; `usage()` returns a mapping with `tokens_in`,
`tokens_out` and `cost` so far; `async def aclose()` is called at the end.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Protocol, runtime_checkable

from srearena.conductor.errors import ArenaError, UnknownProblem

ENTRY_POINTS = "srearena.agents"


@runtime_checkable
class Agent(Protocol):
    async def get_action(self, state: str) -> str: ...


def agent_names() -> list[str]:
    return sorted(_registered())


def make_agent(name: str, options: Mapping[str, Any] | None = None) -> Agent:
    """Create an agent; UnknownProblem where the name is not registered, with the nearest names."""
    registered = _registered()
    if name not in registered:
        near = difflib.get_close_matches(name, registered, n=2)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(sorted(registered))}"
        raise UnknownProblem(f"there is no agent called {name!r}: {hint}")
    try:
        factory = registered[name].load()
    except ImportError as problem:
        raise ArenaError(f"agent {name!r} ({registered[name].value}) cannot be imported: {problem}") from problem
    try:
        agent: Agent = factory(**(options or {}))
    except TypeError as problem:
        raise ArenaError(f"agent {name!r} cannot be created with these options: {problem}") from problem
    return agent


def _registered() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}
