"""Builtins by name. One is an async function of the shell and its arguments that returns the exit status."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Coroutine
from functools import cache
from typing import TYPE_CHECKING, Any

from srearena.cluster.embedded.userland.shell import builtins
from srearena.cluster.embedded.userland.shell.dialect import Dialect

if TYPE_CHECKING:
    from srearena.cluster.embedded.userland.shell.interpreter import Shell

BuiltinFunction = Callable[["Shell", list[str]], Coroutine[Any, Any, int]]

SPECIAL = frozenset(
    (
        *(".", ":", "break", "continue", "eval", "exec", "exit", "export"),
        *("readonly", "return", "set", "shift", "times", "trap", "unset"),
    )
)
"""POSIX's special builtins: an error in one ends a non-interactive shell."""

_builtins: dict[str, tuple[BuiltinFunction, bool]] = {}


def builtin(*names: str, extended: bool = False) -> Callable[[BuiltinFunction], BuiltinFunction]:
    """Register a builtin; an `extended` one is unknown to dash."""

    def register(function: BuiltinFunction) -> BuiltinFunction:
        for name in names:
            _builtins[name] = (function, extended)
        return function

    return register


@cache
def _discover() -> None:
    for module in pkgutil.iter_modules(builtins.__path__, f"{builtins.__name__}."):
        importlib.import_module(module.name)


def builtin_named(name: str, dialect: Dialect) -> BuiltinFunction | None:
    _discover()
    found = _builtins.get(name)
    if found is None or (found[1] and not dialect.extended):
        return None
    return found[0]
