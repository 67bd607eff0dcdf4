"""How a shell leaves where it is: loops, functions, the shell itself."""

from __future__ import annotations


class Leave(Exception):
    """Something ends early; whoever it concerns catches it."""


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
