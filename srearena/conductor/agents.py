"""Agents by name, found in the entry-point group `srearena.agents`.

An entry names a class, or a function that creates an agent from keyword options. An entry may also name a package:
each of its modules that assigns `AGENT` is an agent under the module's name (`undo-everything`). The agents
that come with SREArena are found that way (`clients`), so a new one is one new file; no module is imported before its
agent is used.

An agent is any class with `async def get_action(self, state: str) -> str`. Optional methods are called where present:
`keep_record(note)` receives a function `note(kind, **facts)` that appends to the trial's session file;
`init_context(description, instructions, actions)` is called once before the first question; `connect(kubeconfig)`
receives the file with the agent's own identity in the cluster; `usage()` returns a mapping with `tokens_in`,
`tokens_out` and `cost` so far; `async def aclose()` is called at the end. `async def preflight()` is called once before
a run stages anything, and raises where the agent could not work: its endpoint does not answer, a program is missing.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from srearena.conductor.errors import ArenaError, UnknownProblem

ENTRY_POINTS = "srearena.agents"


@runtime_checkable
class Agent(Protocol):
    async def get_action(self, state: str) -> str: ...


def agent_names() -> list[str]:
    return sorted(_registered())


def make_agent(name: str, options: Mapping[str, Any] | None = None) -> Agent:
    """Create a registered agent, or one by its class (`module:Class`); UnknownProblem with the nearest names."""
    if ":" in name:
        return _agent_of_class(name, options or {})
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


def _agent_of_class(name: str, options: Mapping[str, Any]) -> Agent:
    module, _, attribute = name.partition(":")
    try:
        agent = getattr(import_module(module), attribute)(**options)
    except (ImportError, AttributeError, TypeError) as problem:
        raise ArenaError(f"the agent {name} cannot be created: {problem}") from problem
    if not isinstance(agent, Agent):
        raise ArenaError(f"{name} has no method get_action(state)")
    return agent


def _registered() -> dict[str, EntryPoint]:
    points = entry_points(group=ENTRY_POINTS)
    in_packages = [agent for point in points if not point.attr for agent in _agents_in(point.module)]
    return {point.name: point for point in (*in_packages, *(point for point in points if point.attr))}


@cache
def _agents_in(package: str) -> tuple[EntryPoint, ...]:
    """An entry for each module of a package that assigns `AGENT`, found without importing it."""
    spec = find_spec(package)
    folders = (spec.submodule_search_locations or ()) if spec is not None else ()
    names = sorted({name for folder in folders for name in _agent_modules(Path(folder))})
    return tuple(EntryPoint(name.replace("_", "-"), f"{package}.{name}:AGENT", ENTRY_POINTS) for name in names)


def _agent_modules(folder: Path) -> Iterator[str]:
    for source in (*folder.glob("*.py"), *folder.glob("*/__init__.py")):
        if re.search(r"^AGENT\b", source.read_text(encoding="utf-8"), re.MULTILINE):
            yield source.parent.name if source.name == "__init__.py" else source.stem
