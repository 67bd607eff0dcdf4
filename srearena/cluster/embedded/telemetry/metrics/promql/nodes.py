"""The syntax tree of a query. Durations and times are in milliseconds.

Nodes know the part of the query they were read from (`at` to `end`, in characters), which annotations and errors name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from srearena.cluster.embedded.telemetry.metrics.matchers import Matcher


@dataclass(frozen=True, slots=True)
class Number:
    value: float
    at: int = 0
    end: int = 0
    is_duration: bool = False
    """Written with units, as in 5m."""


@dataclass(frozen=True, slots=True)
class Text:
    value: str
    at: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class Parenthesis:
    inner: Node
    at: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class DurationTerm:
    """Arithmetic on durations, whose value may depend on the query's step and range."""

    operator: str
    """An arithmetic operator, `min_of`, `max_of`, `step` or `range`; a sign where there is no left side."""
    left: Number | DurationTerm | None = None
    right: Number | DurationTerm | None = None
    in_parentheses: bool = False
    at: int = 0
    end: int = 0


Duration = int | DurationTerm


@dataclass(frozen=True, slots=True)
class Moment:
    """The time of a selector: `offset` before the step, or before a fixed time."""

    offset: Duration = 0
    at: int | str | None = None
    """A time, "start" or "end" of the query, or nothing: the step itself."""


@dataclass(frozen=True, slots=True)
class Selector:
    matchers: tuple[Matcher, ...]
    moment: Moment = Moment()
    name: str = ""
    """The metric name in front of the braces; it is among the matchers, too."""
    at: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class RangeSelector:
    selector: Selector
    span: Duration
    at: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class Subquery:
    inner: Node
    span: Duration
    step: Duration | None
    moment: Moment = Moment()
    at: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class Sign:
    """A unary plus or minus."""

    operator: str
    inner: Node
    at: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class Call:
    function: str
    arguments: tuple[Node, ...]
    at: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class Aggregation:
    operator: str
    inner: Node
    parameter: Node | None
    labels: tuple[str, ...]
    without: bool
    at: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class Matching:
    labels: tuple[str, ...] = ()
    on: bool = False
    many: str = ""
    """The side with many elements per match: "left", "right" or neither."""
    include: tuple[str, ...] = ()
    fill_left: float | None = None
    fill_right: float | None = None


@dataclass(frozen=True, slots=True)
class Operation:
    operator: str
    left: Node
    right: Node
    matching: Matching
    return_bool: bool = False
    operator_at: int = 0

    @property
    def at(self) -> int:
        return self.left.at

    @property
    def end(self) -> int:
        return self.right.end


Node = Number | Text | Parenthesis | Selector | RangeSelector | Subquery | Sign | Call | Aggregation | Operation


def unwrapped(node: Node) -> Node:
    """Return the expression inside parentheses."""
    while isinstance(node, Parenthesis):
        node = node.inner
    return node


def children(node: Node) -> Iterator[Node]:
    match node:
        case RangeSelector():
            yield node.selector
        case Subquery() | Sign() | Parenthesis():
            yield node.inner
        case Call():
            yield from node.arguments
        case Aggregation():
            if node.parameter is not None:
                yield node.parameter
            yield node.inner
        case Operation():
            yield node.left
            yield node.right
        case _:
            pass


def selectors(node: Node) -> Iterator[Selector]:
    """Every selector of a query."""
    if isinstance(node, Selector):
        yield node
    for child in children(node):
        yield from selectors(child)


SCALAR, VECTOR, MATRIX, STRING = "scalar", "instant vector", "range vector", "string"
SCALAR_FUNCTIONS = frozenset(("end", "max_of", "min_of", "pi", "range", "scalar", "start", "step", "time"))


def value_type(node: Node) -> str:
    """Return the type of a query's result, as named in Prometheus' messages."""
    match node:
        case Number():
            return SCALAR
        case Text():
            return STRING
        case RangeSelector() | Subquery():
            return MATRIX
        case Sign() | Parenthesis():
            return value_type(node.inner)
        case Call():
            return SCALAR if node.function in SCALAR_FUNCTIONS else VECTOR
        case Operation():
            return SCALAR if value_type(node.left) == value_type(node.right) == SCALAR else VECTOR
        case _:
            return VECTOR
