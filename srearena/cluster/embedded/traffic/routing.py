"""Routing of requests to operations of a program: by name for RPCs, by method and path for HTTP."""

from __future__ import annotations

import re
from functools import lru_cache

from srearena.application_model.schema import Operation, ProgramModel


def find_operation(program: ProgramModel, protocol: str, requested: str) -> tuple[str, Operation] | None:
    """Return an operation by its name, or for HTTP by the route it serves; None where there is none."""
    if requested in program.operations:
        return requested, program.operations[requested]
    if protocol != "http" or " " not in requested:
        return None
    method, _, path = requested.partition(" ")
    path = path.partition("?")[0]
    fallback: tuple[str, Operation] | None = None
    for name, operation in program.operations.items():
        if operation.route is None or operation.header or not serves(operation.route, method, path):
            continue
        if not operation.route.endswith("*"):
            return name, operation
        # Of several routes that end in a star the longest wins.
        if fallback is None or len(operation.route) > len(fallback[1].route or ""):
            fallback = (name, operation)
    return fallback


def keeps_route(operation: Operation) -> bool:
    """Return whether the requested route must be kept: an operation that serves many routes may forward them."""
    return operation.route is not None and ("*" in operation.route or operation.route.startswith("ANY "))


def serves(route: str, method: str, path: str) -> bool:
    """Return whether a route such as `GET /hotels/{id}` or `ANY /api/*` matches a request."""
    served_method, _, shape = route.partition(" ")
    if served_method not in ("ANY", method) and not (served_method == "GET" and method == "HEAD"):
        return False
    return _pattern(shape).fullmatch(path) is not None


@lru_cache(maxsize=2048)
def _pattern(shape: str) -> re.Pattern[str]:
    parts = re.split(r"(\{[^}]*\}|\*)", shape)
    text = "".join(".*" if part == "*" else "[^/]+" if part.startswith("{") else re.escape(part) for part in parts)
    return re.compile(text)
