"""The syntax tree of a query. Durations and times are in milliseconds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from srearena.cluster.embedded.go_text import quoted
from srearena.cluster.embedded.telemetry.metrics.labels import NAME
from srearena.cluster.embedded.telemetry.metrics.matchers import Matcher


@dataclass(frozen=True, slots=True)
class Number:
    value: float


@dataclass(frozen=True, slots=True)
class Text:
    value: str


@dataclass(frozen=True, slots=True)
class Moment:
    """The time of a selector: `offset` before the step, or before a fixed time."""

    offset: int = 0
    at: int | str | None = None
    """A time, "start" or "end" of the query, or nothing: the step itself."""


@dataclass(frozen=True, slots=True)
class Selector:
    alternatives: tuple[tuple[Matcher, ...], ...]
    """A series is chosen where all matchers of one alternative hold."""
    moment: Moment

    @property
    def matchers(self) -> tuple[Matcher, ...]:
        return self.alternatives[0]


@dataclass(frozen=True, slots=True)
class RangeSelector:
    selector: Selector
    span: int


@dataclass(frozen=True, slots=True)
class Subquery:
    inner: Node
    span: int
    step: int | None
    moment: Moment


@dataclass(frozen=True, slots=True)
class Negation:
    inner: Node


@dataclass(frozen=True, slots=True)
class Call:
    function: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Aggregation:
    operator: str
    inner: Node
    parameter: Node | None
    labels: tuple[str, ...]
    without: bool


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


Node = Number | Text | Selector | RangeSelector | Subquery | Negation | Call | Aggregation | Operation


def children(node: Node) -> Iterator[Node]:
    match node:
        case RangeSelector():
            yield node.selector
        case Subquery() | Negation():
            yield node.inner
        case Call():
            yield from node.arguments
        case Aggregation():
            yield node.inner
            if node.parameter is not None:
                yield node.parameter
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


def selector_text(selector: Selector) -> str:
    name = next((m.value for m in selector.matchers if m.name == NAME and m.operator == "="), "")
    inner = ",".join(f"{m.name}{m.operator}{quoted(m.value)}" for m in selector.matchers if m.name != NAME)
    return f"{name}{{{inner}}}" if inner else name


def value_type(node: Node) -> str:
    """Return the type of a query's result, as named in Prometheus' messages."""
    match node:
        case Number():
            return "scalar"
        case Text():
            return "string"
        case RangeSelector() | Subquery():
            return "range vector"
        case Negation():
            return value_type(node.inner)
        case Call():
            return "scalar" if node.function in SCALAR_FUNCTIONS else "instant vector"
        case Operation():
            both = value_type(node.left) == value_type(node.right) == "scalar"
            return "scalar" if both else "instant vector"
        case _:
            return "instant vector"


SCALAR_FUNCTIONS = frozenset(("pi", "scalar", "time"))
