"""What the lexer hands to the parser, or says where it cannot."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from srearena.cluster.embedded.userland.shell.syntax import Word


class ShellSyntaxError(Exception):
    """The text is no shell program. `incomplete` where more text could still make it one."""

    def __init__(self, message: str, line: int, *, incomplete: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.incomplete = incomplete


class Kind(Enum):
    WORD = auto()
    OPERATOR = auto()
    DESCRIPTOR = auto()
    NEWLINE = auto()
    END = auto()


@dataclass(frozen=True, slots=True)
class Token:
    kind: Kind
    text: str
    line: int
    word: Word | None = None
