"""The tools by name. A tool is an async function of its process and its arguments that returns the exit status.

Every image's file tree names its tools, few are ever run: their modules are imported when the first of them is.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import cache
from typing import Any

from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.userland import tools
from srearena.cluster.embedded.userland.posix_syntax import RegexError
from srearena.cluster.embedded.userland.tools.options import UsageError

ToolFunction = Callable[[Process, list[str]], Coroutine[Any, Any, int]]


@dataclass(frozen=True, slots=True)
class Tool:
    name: str

    async def run(self, process: Process) -> int:
        _discover()
        try:
            return await _functions[self.name](process, process.argv[1:])
        except UsageError as error:
            await process.error(error.text(process))
            return error.status(process)
        except RegexError as error:
            await process.error(f"{process.name}: {error}\n")
            return 2


_functions: dict[str, ToolFunction] = {}


def tool(*names: str) -> Callable[[ToolFunction], ToolFunction]:
    """Register a function under the names of the commands it is."""

    def register(function: ToolFunction) -> ToolFunction:
        for name in names:
            _functions[name] = function
        return function

    return register


@cache
def _discover() -> None:
    for module in pkgutil.iter_modules(tools.__path__, f"{tools.__name__}."):
        importlib.import_module(module.name)


def tool_names() -> frozenset[str]:
    _discover()
    return frozenset(_functions)
