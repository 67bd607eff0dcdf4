"""Waiting for a cluster: on its own time, so that it takes minutes on a real one and milliseconds on an embedded one.

`wait_until` looks, lets time pass, and looks again. One request whose answer itself needs time in the cluster (a
command that sleeps, a request through the application) is sent while `Cluster.fast_forward`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from srearena.service.errors import TimedOut

T = TypeVar("T")
PassTime = Callable[[float], None]

_FIRST_STEP = 0.5
_LONGEST_STEP = 5.0


def doze(seconds: float) -> None:
    """Let real time pass: for a cluster whose time is ours."""
    threading.Event().wait(seconds)


def wait_until(
    check: Callable[[], T | None],
    pass_time: PassTime,
    timeout: float,
    *,
    what: str | Callable[[], str] = "it",
    step: float = _FIRST_STEP,
) -> T:
    """The first value of `check` that is neither None nor false; TimedOut after that much of the cluster's time."""
    passed = 0.0
    while True:
        found = check()
        if found:
            return found
        if passed >= timeout:
            said = what if isinstance(what, str) else what()
            raise TimedOut(f"waited {timeout:g} s in vain for {said}")
        nap = min(step, timeout - passed)
        pass_time(nap)
        passed += nap
        step = min(step * 1.5, _LONGEST_STEP)
