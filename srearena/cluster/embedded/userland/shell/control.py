"""How a shell leaves where it is: loops, functions, the shell itself."""

from __future__ import annotations


class Leave(Exception):
    """Base of the exceptions for early exit (break, return, exit)."""


class BreakLoop(Leave):
    def __init__(self, levels: int) -> None:
        super().__init__(levels)
        self.levels = levels


class ContinueLoop(BreakLoop):
    pass


class ReturnFunction(Leave):
    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class ExitShell(Leave):
    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status & 0xFF


class Interrupt(Leave):
    """^C in an interactive shell: back to the prompt."""
