"""Base class of adapters: everything that is specific to one coding CLI.

An adapter converts a `Plan` to files, environment variables and a command line, and the CLI's output to a `Trajectory`.
It starts no process and writes no file. Secrets never appear in files or arguments, only names of variables do.
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
    """The parsed arguments after `--`."""

    interactive: bool
    model: str = ""
    query: str = ""
    extra: tuple[str, ...] = ()  # passed to the CLI unchanged
    notes: tuple[str, ...] = ()  # one line per translated option


@dataclass(frozen=True, slots=True)
class Plan:
    """The complete configuration of one run."""

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
    install: ClassVar[str] = ""  # install command, for the error message if it is missing
    default_provider: ClassVar[str | None] = None
    api_root: ClassVar[str] = "/v1"  # path of its base URL
    instructions_file: ClassVar[str] = "AGENTS.md"
    reports_cost: ClassVar[bool] = False
    # Options of the CLI that take a value, to distinguish values from the query.
    value_options: ClassVar[frozenset[str]] = frozenset()
    # Options that Zero sets.
    reserved_options: ClassVar[frozenset[str]] = frozenset()

    def parse(self, arguments: Sequence[str], version: str) -> Invocation:
        """Parse the arguments after `--`: `exec`, the model, options to pass on, the query."""
        remaining = list(arguments)
        interactive = not (remaining and remaining[0] in ("exec", "e"))
        if not interactive:
            remaining.pop(0)
        model, extra, words = "", [], []
        while remaining:
            argument = remaining.pop(0)
            name, joined, value = argument.partition("=")
            if name in self.reserved_options:
                raise RequestError(f"{name} is set by Zero: leave it out after --")
            if name in ("-m", "--model"):
                if not joined and not remaining:
                    raise RequestError(f"{name} needs a model's name")
                model = value if joined else remaining.pop(0)
            elif argument == "--":
                words += remaining
                break
            elif argument.startswith("-") and argument != "-":
                extra.append(argument)
                if not joined and name in self.value_options and remaining:
                    extra.append(remaining.pop(0))
            else:
                words.append(argument)
        return Invocation(interactive, model, " ".join(words), tuple(extra))

    def files(self, plan: Plan) -> Mapping[str, str]:
        """Configuration files by path within the workspace; written before each attempt."""
        return {}

    def environment(self, plan: Plan, host_environment: Mapping[str, str]) -> dict[str, str]:
        """Environment variables of the CLI's process. `host_environment` is Zero's environment, which has the keys."""
        return {}

    @abstractmethod
    def start(self, plan: Plan) -> list[str]:
        """The command line of the first attempt, or of an interactive session."""

    @abstractmethod
    def resume(self, plan: Plan, session: str, message: str) -> list[str]:
        """The command line that resumes a session."""

    @abstractmethod
    def read(self, line: str, trajectory: Trajectory) -> None:
        """Parse one line of the CLI's standard output."""

    def usage_from_telemetry(self, attributes: Mapping[str, Any]) -> Usage | None:
        """Tokens of one turn in an OTLP record, for CLIs that report them by telemetry."""
        return None

    def key(self, plan: Plan, host_environment: Mapping[str, str], name: str) -> dict[str, str]:
        """The provider's key, under the variable name that the CLI expects."""
        variable = plan.provider.key_variable if plan.provider else ""
        return {name: host_environment[variable]} if variable and variable in host_environment else {}


@dataclass(slots=True)
class Event:
    """One JSON line; missing fields and fields of other types are empty."""

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


def result_text(value: Any) -> str:
    """The text of a tool result of any JSON type."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(result_text(item) for item in value)
    if isinstance(value, dict) and isinstance(value.get("text"), str):
        return str(value["text"])
    return "" if value is None else json.dumps(value)
