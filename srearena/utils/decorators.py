"""`mark_fault_injected`: keeps a problem's `fault_injected` up to date."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class _Marked(Protocol):
    fault_injected: bool


S = TypeVar("S", bound=_Marked)


def mark_fault_injected(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Set `fault_injected` after a successful `inject_fault`, and clear it after `recover_fault`."""
    injects = "recover" not in getattr(method, "__name__", "")

    @functools.wraps(method)
    def marked(self: S, /, *args: Any, **kwargs: Any) -> R:
        result = method(self, *args, **kwargs)
        self.fault_injected = injects
        return result

    return marked
