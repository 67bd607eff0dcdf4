"""Which of a program's operations answers a request: by name for RPCs, by method and path for HTTP."""

from __future__ import annotations

import re
from functools import lru_cache

from srearena.application_model.schema import Operation, ProgramModel


def find_operation(program: ProgramModel, protocol: str, wanted: str) -> tuple[str, Operation] | None:
    """An operation by its name, or for HTTP by the route it serves; None where the program has none such."""
    if wanted in program.operations:
        return wanted, program.operations[wanted]
    if protocol != "http" or " " not in wanted:
        return None
    method, _, path = wanted.partition(" ")
    path = path.partition("?")[0]
    fallback: tuple[str, Operation] | None = None
    for name, operation in program.operations.items():
        if operation.route is None or operation.header or not serves(operation.route, method, path):
            continue
        if not operation.route.endswith("*"):
            return name, operation
        # Of the routes that end in a star the longest counts.
        if fallback is None or len(operation.route) > len(fallback[1].route or ""):
            fallback = (name, operation)
    return fallback


def keeps_route(operation: Operation) -> bool:
    """Whether what was asked for must be known further on: an operation that serves many routes may pass them on."""
    return operation.route is not None and ("*" in operation.route or operation.route.startswith("ANY "))


def serves(route: str, method: str, path: str) -> bool:
    wanted, _, shape = route.partition(" ")
    if wanted not in ("ANY", method) and not (wanted == "GET" and method == "HEAD"):
        return False
    return _pattern(shape).fullmatch(path) is not None


@lru_cache(maxsize=2048)
def _pattern(shape: str) -> re.Pattern[str]:
    parts = re.split(r"(\{[^}]*\}|\*)", shape)
    text = "".join(".*" if part == "*" else "[^/]+" if part.startswith("{") else re.escape(part) for part in parts)
    return re.compile(text)
