"""Queries as text: on one line, or laid out as the real server formats long ones."""

from __future__ import annotations

from srearena.cluster.embedded.go_text import float_text, quoted
from srearena.cluster.embedded.telemetry.metrics.labels import NAME
from srearena.cluster.embedded.telemetry.metrics.promql.durations import duration_text
from srearena.cluster.embedded.telemetry.metrics.promql.nodes import (
    Aggregation,
    Call,
    Duration,
    DurationTerm,
    Matching,
    Moment,
    Node,
    Number,
    Operation,
    Parenthesis,
    RangeSelector,
    Selector,
    Sign,
    Subquery,
    Text,
)
from srearena.cluster.embedded.telemetry.metrics.rendering import go_float

_MAX_LINE = 100


def text(node: Node | DurationTerm) -> str:
    """Return the query on one line."""
    match node:
        case Number():
            if node.is_duration:
                return _duration(round(node.value * 1000))
            return go_float(node.value)
        case Text():
            return quoted(node.value)
        case Parenthesis():
            return f"({text(node.inner)})"
        case Selector():
            return _selector(node) + _moment(node.moment)
        case RangeSelector():
            return f"{_selector(node.selector)}[{_duration(node.span)}]{_moment(node.selector.moment)}"
        case Subquery():
            return text(node.inner) + _window(node)
        case Sign():
            return node.operator + text(node.inner)
        case Call():
            return f"{node.function}({', '.join(map(text, node.arguments))})"
        case Aggregation():
            parameter = "" if node.parameter is None else f"{text(node.parameter)}, "
            return f"{_aggregator(node)}({parameter}{text(node.inner)})"
        case Operation():
            return f"{text(node.left)} {_operator(node)} {text(node.right)}"
        case DurationTerm():
            return _term(node)


def formatted(node: Node, level: int = 0) -> str:
    """Return the query with a line for each part, where it is longer than a line."""
    indent = "  " * level
    line = text(node)
    if isinstance(node, Sign):
        return f"{indent}{node.operator}{formatted(node.inner, level).strip()}"
    if isinstance(node, Subquery):
        return line if len(line) <= _MAX_LINE else formatted(node.inner, level) + _window(node)
    if len(line) <= _MAX_LINE:
        return indent + line
    match node:
        case Parenthesis():
            return f"{indent}(\n{formatted(node.inner, level + 1)}\n{indent})"
        case Call():
            arguments = ",\n".join(formatted(argument, level + 1) for argument in node.arguments)
            return f"{indent}{node.function}(\n{arguments}\n{indent})"
        case Aggregation():
            parameter = "" if node.parameter is None else f"{formatted(node.parameter, level + 1)},\n"
            return f"{indent}{_aggregator(node)}(\n{parameter}{formatted(node.inner, level + 1)}\n{indent})"
        case Operation():
            left, right = formatted(node.left, level + 1), formatted(node.right, level + 1)
            return f"{left}\n{indent}{_operator(node)}\n{right}"
        case _:
            return indent + line


def _duration(duration: Duration) -> str:
    if isinstance(duration, DurationTerm):
        return _term(duration)
    return f"-{duration_text(-duration)}" if duration < 0 else duration_text(duration)


def _term(term: DurationTerm) -> str:
    left = "" if term.left is None else text(term.left)
    right = "" if term.right is None else text(term.right)
    match term.operator:
        case "step" | "range":
            written = f"{term.operator}()"
        case "min_of" | "max_of":
            written = f"{term.operator}({left}, {right})"
        case sign if term.left is None:
            written = right if sign == "+" else f"{sign}{right}"
        case operator:
            written = f"{left} {operator} {right}"
    return f"({written})" if term.in_parentheses else written


def _moment(moment: Moment) -> str:
    at = ""
    if isinstance(moment.at, str):
        at = f" @ {moment.at}()"
    elif moment.at is not None:
        at = f" @ {moment.at / 1000:.3f}"
    return at + (f" offset {_duration(moment.offset)}" if moment.offset != 0 else "")


def _window(node: Subquery) -> str:
    step = "" if node.step is None else _duration(node.step)
    return f"[{_duration(node.span)}:{step}]{_moment(node.moment)}"


def _selector(node: Selector) -> str:
    matchers = sorted(
        f"{_label(matcher.name)}{matcher.operator}{quoted(matcher.value)}"
        for matcher in node.matchers
        if not (matcher.name == NAME and matcher.operator == "=" and matcher.value == node.name != "")
    )
    return node.name + (f"{{{','.join(matchers)}}}" if matchers else "" if node.name else "{}")


def _label(name: str) -> str:
    return name if name.isascii() and name.isidentifier() else quoted(name)


def _labels(names: tuple[str, ...]) -> str:
    return f"({', '.join(map(_label, names))})"


def _aggregator(node: Aggregation) -> str:
    if node.without:
        return f"{node.operator} without {_labels(node.labels)} "
    return f"{node.operator} by {_labels(node.labels)} " if node.labels else node.operator


def _operator(node: Operation) -> str:
    return node.operator + (" bool" if node.return_bool else "") + _matching(node.matching)


def _matching(matching: Matching) -> str:
    written = ""
    if matching.labels or matching.on or matching.many:
        written += f" {'on' if matching.on else 'ignoring'} {_labels(matching.labels)}"
    if matching.many:
        written += f" group_{matching.many} {_labels(matching.include)}"
    left, right = matching.fill_left, matching.fill_right
    if left is not None and left == right:
        return f"{written} fill ({float_text(left)})"
    for side, fill in (("left", left), ("right", right)):
        if fill is not None:
            written += f" fill_{side} ({float_text(fill)})"
    return written
