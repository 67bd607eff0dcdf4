"""Parameters that are computed: `$?`, `$!`, `$RANDOM` and their kin."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from srearena.cluster.embedded.userland.shell.interpreter import Shell


def _only(names: tuple[str, ...], value: Callable[[Shell], str | None]) -> Callable[[Shell], str | None]:
    """A parameter that only some shells compute."""
    return lambda shell: value(shell) if shell.dialect.name in names else None


_MODERN = ("bash", "busybox")

SPECIAL_PARAMETERS: dict[str, Callable[[Shell], str | None]] = {
    "?": lambda shell: str(shell.status),
    "#": lambda shell: str(len(shell.arguments)),
    "$": lambda shell: str(shell.number),
    "!": lambda shell: "" if shell.last_background is None else str(shell.last_background),
    "-": lambda shell: "".join(sorted(option for option in shell.options if len(option) == 1)),
    "@": lambda shell: " ".join(shell.arguments),
    "*": lambda shell: " ".join(shell.arguments),
    "PPID": lambda shell: str(0 if shell.process.parent is None else shell.process.parent.pid),
    "LINENO": lambda shell: str(shell.line),
    "RANDOM": _only(_MODERN, lambda shell: str(shell.process.container.random.randrange(32768))),
    "UID": _only(_MODERN, lambda shell: str(shell.process.credentials.uid)),
    "SECONDS": _only(("bash",), lambda shell: str(int(shell.process.clock.now - shell.process.started_at))),
    "EPOCHSECONDS": _only(("bash",), lambda shell: str(int(shell.process.clock.now))),
}
