"""`mark_fault_injected`: a problem knows whether its fault is in place, whoever calls its methods."""

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
    """Sets `fault_injected` when `inject_fault` has succeeded, and clears it when `recover_fault` has."""
    injects = "recover" not in getattr(method, "__name__", "")

    @functools.wraps(method)
    def marked(self: S, /, *args: Any, **kwargs: Any) -> R:
        answer = method(self, *args, **kwargs)
        self.fault_injected = injects
        return answer

    return marked
