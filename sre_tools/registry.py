"""The tool registry: one decorator, one tool type and one discovery for the recorded-incident and the live tools.

A tool is a function with two parameters, a context and its arguments, decorated with `@tool`:

    class CountArguments(ToolArguments):
        kind: str = Field(description="which objects to count")

    @tool()
    def count_objects(call: Call, arguments: CountArguments) -> Answer:
        '''What agents read about this tool.'''

The function's name, its docstring and the type of `arguments` become the tool's name, description and input schema.
`tools_in(package)` imports every module of a package and returns the tools defined there, so a new file is enough.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Any, TypeVar, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError

from sre_tools.errors import ToolError


class ToolArguments(BaseModel):
    """Base class of every tool's arguments: unknown names are refused."""

    model_config = ConfigDict(extra="forbid")


class NoArguments(ToolArguments):
    """The arguments of a tool that takes none."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A registered tool."""

    name: str
    description: str
    arguments: type[ToolArguments]
    run: Callable[[Any, Any], Any]
    """Called with the server's context and the validated arguments."""
    module: str
    title: str = ""
    output_schema: dict[str, Any] | None = None
    """JSON Schema of the reply, for tools that reply with a JSON object."""
    order: int = 1000
    """Position in the list of tools; equal positions are listed by name."""
    read_only: bool = True
    destructive: bool = False
    bounded: bool = False
    """The tool keeps its reply short itself, so the server does not split it into pages."""
    for_mode: Callable[[Tool, str], Tool | None] | None = None
    """Adapt the tool to the mode of a server; None leaves the tool out."""

    adapt_schema: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    """Adapts the input schema to what the server works on."""

    @property
    def input_schema(self) -> dict[str, Any]:
        schema = self.arguments.model_json_schema()
        schema.pop("title", None)
        schema.pop("description", None)
        return self.adapt_schema(schema) if self.adapt_schema else schema

    def validate(self, arguments: Mapping[str, Any]) -> Any:
        """The arguments as the tool's own type; ToolError names what is wrong and what the tool takes."""
        try:
            return self.arguments.model_validate(dict(arguments))
        except ValidationError as problem:
            parts = [f"{'.'.join(map(str, e['loc'])) or 'arguments'}: {e['msg'].lower()}" for e in problem.errors()]
            raise ToolError(
                f"{self.name}: {'; '.join(parts)}. It takes: {', '.join(self.input_schema['properties'])}"
            ) from problem


_TOOLS: dict[str, Tool] = {}
_Function = TypeVar("_Function", bound=Callable[[Any, Any], Any])


def tool(
    *,
    title: str = "",
    output_schema: dict[str, Any] | None = None,
    order: int = 1000,
    read_only: bool = True,
    destructive: bool | None = None,
    bounded: bool = False,
    for_mode: Callable[[Tool, str], Tool | None] | None = None,
) -> Callable[[_Function], _Function]:
    """Register a function as a tool; what is not read-only counts as destructive unless stated otherwise."""

    def register(function: _Function) -> _Function:
        name = function.__name__
        if name in _TOOLS:
            raise ValueError(f"tool {name} is defined in {_TOOLS[name].module} and in {function.__module__}")
        _TOOLS[name] = Tool(
            name,
            " ".join((function.__doc__ or "").split()),
            get_type_hints(function)["arguments"],
            function,
            function.__module__,
            title,
            output_schema,
            order,
            read_only,
            not read_only if destructive is None else destructive,
            bounded,
            for_mode,
        )
        return function

    return register


@cache
def tools_in(package: str) -> Mapping[str, Tool]:
    """The tools defined in a package's modules, by name, in listing order."""
    for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
        if not module.name.endswith(".__main__"):
            importlib.import_module(module.name)
    members = [tool for tool in _TOOLS.values() if tool.module.startswith(f"{package}.")]
    return {tool.name: tool for tool in sorted(members, key=lambda tool: (tool.order, tool.name))}


def lookup(tools: Mapping[str, Tool], name: str) -> Tool:
    """The tool of a name; ToolError suggests the nearest one."""
    if name not in tools:
        near = get_close_matches(name, tools, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(tools))}"
        raise ToolError(f"there is no tool {name!r}: {hint}")
    return tools[name]
