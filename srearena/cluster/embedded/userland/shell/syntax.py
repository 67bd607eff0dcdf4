"""The shell's language as a tree: words made of parts, commands made of words.

Nodes are plain values without behaviour; the lexer and parser make them, the expander and interpreter walk them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

# --- words ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Literal:
    text: str
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class DoubleQuoted:
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Parameter:
    """`$name`, `${name}` and `${name<operator>argument}`; `#` as operator with no argument is the length."""

    name: str
    operator: str = ""
    argument: Word | None = None
    second: Word | None = None
    """The replacement of `${x/a/b}`, the length of `${x:1:2}`."""
    length: bool = False


@dataclass(frozen=True, slots=True)
class Substitution:
    """`$(...)` or backquotes."""

    body: Node


@dataclass(frozen=True, slots=True)
class Arithmetic:
    expression: Word


@dataclass(frozen=True, slots=True)
class ProcessSubstitution:
    """`<(...)` or `>(...)`: a file name behind which a command runs."""

    body: Node
    reading: bool


Part: TypeAlias = Literal | DoubleQuoted | Parameter | Substitution | Arithmetic | ProcessSubstitution


@dataclass(frozen=True, slots=True)
class Word:
    parts: tuple[Part, ...]

    @property
    def literal(self) -> str | None:
        """The text, where nothing in it is quoted or to be expanded."""
        if not self.parts:
            return ""
        if len(self.parts) == 1:
            part = self.parts[0]
            if isinstance(part, Literal) and not part.quoted:
                return part.text
        return None


# --- commands ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Assignment:
    name: str
    value: Word
    append: bool = False


@dataclass(slots=True)
class Redirect:
    operator: str
    descriptor: int | None
    target: Word
    document: Word | None = None
    """The text of a here-document."""


@dataclass(frozen=True, slots=True)
class Simple:
    assignments: tuple[Assignment, ...]
    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Pipeline:
    commands: tuple[Node, ...]
    negated: bool
    timed: bool = False


@dataclass(frozen=True, slots=True)
class AndOr:
    left: Node
    operator: str
    right: Node


@dataclass(frozen=True, slots=True)
class Sequence:
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Background:
    body: Node


@dataclass(frozen=True, slots=True)
class If:
    branches: tuple[tuple[Node, Node], ...]
    otherwise: Node | None


@dataclass(frozen=True, slots=True)
class Loop:
    condition: Node
    body: Node
    until: bool


@dataclass(frozen=True, slots=True)
class For:
    name: str
    words: tuple[Word, ...] | None
    """None: the positional parameters."""
    body: Node
    line: int


@dataclass(frozen=True, slots=True)
class ForArithmetic:
    start: Word
    condition: Word
    step: Word
    body: Node


@dataclass(frozen=True, slots=True)
class CaseItem:
    patterns: tuple[Word, ...]
    body: Node | None
    falls_through: bool


@dataclass(frozen=True, slots=True)
class Case:
    subject: Word
    items: tuple[CaseItem, ...]


@dataclass(frozen=True, slots=True)
class Subshell:
    body: Node


@dataclass(frozen=True, slots=True)
class Group:
    body: Node


@dataclass(frozen=True, slots=True)
class Function:
    name: str
    body: Node


@dataclass(frozen=True, slots=True)
class Conditional:
    """`[[ ... ]]`: words and operators, in order."""

    words: tuple[Word, ...]
    line: int


@dataclass(frozen=True, slots=True)
class ArithmeticCommand:
    """`(( ... ))`."""

    expression: Word


@dataclass(frozen=True, slots=True)
class Redirected:
    """A compound command with redirections of its own."""

    body: Node
    redirects: tuple[Redirect, ...] = field(default=())


Node: TypeAlias = (
    Simple
    | Pipeline
    | AndOr
    | Sequence
    | Background
    | If
    | Loop
    | For
    | ForArithmetic
    | Case
    | Subshell
    | Group
    | Function
    | Conditional
    | ArithmeticCommand
    | Redirected
)

NOTHING = Sequence(())
