"""Polling a cluster in its own time: minutes on a real cluster, milliseconds on an embedded one.

A single request whose response takes time in the cluster (a command that sleeps, a request through the application) is
sent inside `Cluster.fast_forward` instead.
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


def sleep(seconds: float) -> None:
    """Sleep in real time."""
    threading.Event().wait(seconds)


def wait_until(
    check: Callable[[], T | None],
    pass_time: PassTime,
    timeout: float,
    *,
    what: str | Callable[[], str] = "it",
    step: float = _FIRST_STEP,
) -> T:
    """Poll `check` and return its first true value; TimedOut after `timeout` seconds of the cluster's time.

    The interval between two polls grows by half each time, up to a limit.
    """
    passed = 0.0
    while True:
        value = check()
        if value:
            return value
        if passed >= timeout:
            condition = what if isinstance(what, str) else what()
            raise TimedOut(f"waited {timeout:g} s in vain for {condition}")
        interval = min(step, timeout - passed)
        pass_time(interval)
        passed += interval
        step = min(step * 1.5, _LONGEST_STEP)
