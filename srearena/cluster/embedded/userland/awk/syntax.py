"""An awk program as a tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

# --- expressions ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Number:
    value: float


@dataclass(frozen=True, slots=True)
class Text:
    value: str


@dataclass(frozen=True, slots=True)
class RegexLiteral:
    pattern: str


@dataclass(frozen=True, slots=True)
class Variable:
    name: str


@dataclass(frozen=True, slots=True)
class Element:
    array: str
    subscripts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class FieldOf:
    number: Expression


@dataclass(frozen=True, slots=True)
class Unary:
    operator: str
    operand: Expression


@dataclass(frozen=True, slots=True)
class Binary:
    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Ternary:
    condition: Expression
    yes: Expression
    no: Expression


@dataclass(frozen=True, slots=True)
class Assign:
    operator: str
    target: Target
    value: Expression


@dataclass(frozen=True, slots=True)
class Step:
    """++ and --."""

    target: Target
    amount: int
    before: bool


@dataclass(frozen=True, slots=True)
class Call:
    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Contains:
    """`(i, j) in array`."""

    subscripts: tuple[Expression, ...]
    array: str


Target: TypeAlias = Variable | Element | FieldOf
Expression: TypeAlias = (
    Number
    | Text
    | RegexLiteral
    | Variable
    | Element
    | FieldOf
    | Unary
    | Binary
    | Ternary
    | Assign
    | Step
    | Call
    | Contains
)

# --- statements ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Evaluate:
    expression: Expression


@dataclass(frozen=True, slots=True)
class Print:
    arguments: tuple[Expression, ...]
    formatted: bool
    redirect: str = ""
    target: Expression | None = None


@dataclass(frozen=True, slots=True)
class Block:
    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class If:
    condition: Expression
    yes: Statement
    no: Statement | None


@dataclass(frozen=True, slots=True)
class While:
    condition: Expression | None
    body: Statement
    step: Statement | None = None
    body_first: bool = False


@dataclass(frozen=True, slots=True)
class ForIn:
    name: str
    array: str
    body: Statement


@dataclass(frozen=True, slots=True)
class Leave:
    kind: str
    """next, exit, break or continue."""
    status: Expression | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    array: str
    subscripts: tuple[Expression, ...] | None


Statement: TypeAlias = Evaluate | Print | Block | If | While | ForIn | Leave | Delete


@dataclass(frozen=True, slots=True)
class Rule:
    kind: str
    """BEGIN, END, or empty for one that looks at records."""
    pattern: Expression | None
    until: Expression | None
    action: Statement | None
