"""Signals by name and number, and their default actions."""

from __future__ import annotations

from signal import Signals

IGNORED_BY_DEFAULT = frozenset((Signals.SIGCHLD, Signals.SIGURG, Signals.SIGWINCH, Signals.SIGCONT))
STOPPING = frozenset((Signals.SIGSTOP, Signals.SIGTSTP, Signals.SIGTTIN, Signals.SIGTTOU))


def signal_number(text: str) -> int | None:
    """A signal from its name or number, as kill and trap take it."""
    if text.isdigit():
        number = int(text)
        return number if number <= 64 else None
    name = text.upper().removeprefix("SIG")
    if name == "EXIT":
        return 0
    found = Signals.__members__.get(f"SIG{name}")
    return None if found is None else int(found)


def signal_name(number: int) -> str:
    """Without the SIG."""
    try:
        return Signals(number).name.removeprefix("SIG")
    except ValueError:
        return str(number)
