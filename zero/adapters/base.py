"""What an adapter is: everything that Zero has to know about one coding CLI.

An adapter turns a `Plan` into files, environment and a command line, and the CLI's output into a `Trajectory`. It
starts nothing and writes nothing itself. Secrets never appear in files or arguments: adapters see names of variables.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from zero.errors import RequestError
from zero.providers import Provider
from zero.servers import Server
from zero.trajectory import Trajectory, Usage


@dataclass(frozen=True, slots=True)
class Invocation:
    """What the user wrote after `--`, taken apart."""

    interactive: bool
    model: str = ""
    query: str = ""
    extra: tuple[str, ...] = ()  # passed on as it stands
    notes: tuple[str, ...] = ()  # what was translated, one line each


@dataclass(frozen=True, slots=True)
class Plan:
    """One run, with everything decided."""

    workspace: Path
    program: str
    version: str
    invocation: Invocation
    instructions: str  # the rendered prompt
    output: Path
    servers: Sequence[Server] = ()
    provider: Provider | None = None
    evidence: Sequence[Path] = ()
    sandboxed: bool = False
    otel_url: str = ""
    max_turns: int | None = None
    max_cost: float | None = None
    template: str = ""

    @property
    def first_message(self) -> str:
        return self.invocation.query or "Carry out the task that your instructions describe."


class Adapter(ABC):
    """One coding CLI."""

    name: ClassVar[str]
    program: ClassVar[str]
    install: ClassVar[str] = ""  # how to get it, for the message when it is missing
    default_provider: ClassVar[str | None] = None
    api_root: ClassVar[str] = "/v1"  # what its base URL ends in
    instructions_file: ClassVar[str] = "AGENTS.md"
    tells_cost: ClassVar[bool] = False
    # Options of the CLI that take a value, so that the query can be told from one.
    valued: ClassVar[frozenset[str]] = frozenset()
    # Options that Zero sets itself.
    reserved: ClassVar[frozenset[str]] = frozenset()

    def parse(self, arguments: Sequence[str], version: str) -> Invocation:
        """Take apart what stands after `--`: `exec`, the model, options to pass on, the query."""
        rest = list(arguments)
        interactive = not (rest and rest[0] in ("exec", "e"))
        if not interactive:
            rest.pop(0)
        model, extra, words = "", [], []
        while rest:
            argument = rest.pop(0)
            name, joined, value = argument.partition("=")
            if name in self.reserved:
                raise RequestError(f"{name} is set by Zero: leave it out after --")
            if name in ("-m", "--model"):
                if not joined and not rest:
                    raise RequestError(f"{name} needs a model's name")
                model = value if joined else rest.pop(0)
            elif argument == "--":
                words += rest
                break
            elif argument.startswith("-") and argument != "-":
                extra.append(argument)
                if not joined and name in self.valued and rest:
                    extra.append(rest.pop(0))
            else:
                words.append(argument)
        return Invocation(interactive, model, " ".join(words), tuple(extra))

    def files(self, plan: Plan) -> Mapping[str, str]:
        """Configuration to write, by path within the workspace; written anew before each attempt."""
        return {}

    def environment(self, plan: Plan, given: Mapping[str, str]) -> dict[str, str]:
        """Variables of the CLI's process. `given` is Zero's own environment, to take keys from by name."""
        return {}

    @abstractmethod
    def start(self, plan: Plan) -> list[str]:
        """The command line of the first attempt, or of an interactive session."""

    @abstractmethod
    def resume(self, plan: Plan, session: str, message: str) -> list[str]:
        """The command line that goes on with a session."""

    @abstractmethod
    def read(self, line: str, trajectory: Trajectory) -> None:
        """Take in one line of the CLI's standard output."""

    def usage_from_telemetry(self, attributes: Mapping[str, Any]) -> Usage | None:
        """Tokens of one turn, where the CLI tells them by OTLP while it works."""
        return None

    def key(self, plan: Plan, given: Mapping[str, str], name: str) -> dict[str, str]:
        """The provider's key under the name that the CLI expects."""
        variable = plan.provider.key_variable if plan.provider else ""
        return {name: given[variable]} if variable and variable in given else {}


@dataclass(slots=True)
class Event:
    """One JSON line, read forgivingly: what is not there is empty."""

    data: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, line: str) -> Event | None:
        if not line.startswith("{"):
            return None
        try:
            data = json.loads(line)
        except (ValueError, RecursionError):
            return None
        return cls(data) if isinstance(data, dict) else None

    def text(self, key: str) -> str:
        value = self.data.get(key)
        return value if isinstance(value, str) else ""

    def number(self, key: str) -> int:
        value = self.data.get(key)
        return int(value) if isinstance(value, int | float) else 0

    def child(self, key: str) -> Event:
        value = self.data.get(key)
        return Event(value if isinstance(value, dict) else {})

    def children(self, key: str) -> list[Event]:
        value = self.data.get(key)
        return [Event(item) for item in value if isinstance(item, dict)] if isinstance(value, list) else []

    def mapping(self, key: str) -> dict[str, Any]:
        value = self.data.get(key)
        if isinstance(value, dict):
            return value
        return {} if value is None else {"value": value}


def plain(value: Any) -> str:
    """The text of a result, whatever shape it has."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(plain(item) for item in value)
    if isinstance(value, dict) and isinstance(value.get("text"), str):
        return str(value["text"])
    return "" if value is None else json.dumps(value)
