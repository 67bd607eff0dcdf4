"""Services of a machine that its service manager runs, as far as they can be started and stopped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SystemService:
    name: str
    description: str
    path: str
    """Its executable."""
    arguments: tuple[str, ...]
    pid: int
    running: Callable[[], bool]
    since: Callable[[], float]
    start: Callable[[], object] | None = None
    """None where the machine cannot do without the service."""
    stop: Callable[[], object] | None = None
    is_failing: Callable[[], bool] = lambda: False
    """Whether it ended with an error and is to be started again soon."""

    @property
    def state(self) -> tuple[str, str]:
        """Its state and the detail of it, as the service manager names them."""
        if self.running():
            return "active", "running"
        return ("activating", "auto-restart") if self.is_failing() else ("inactive", "dead")

    @property
    def command(self) -> str:
        return " ".join((self.path, *self.arguments))
