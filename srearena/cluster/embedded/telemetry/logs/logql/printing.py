"""Queries as text: on one line, or laid out as Loki formats long ones."""

from __future__ import annotations

from srearena.cluster.embedded.go_text import float_text, quoted
from srearena.cluster.embedded.telemetry.logs.logql.syntax import (
    Binary,
    Both,
    Choose,
    Comparison,
    Decolorize,
    Expression,
    Grouping,
    LabelFilter,
    LabelFormat,
    LabelReplace,
    LineFilter,
    LineFormat,
    Literal,
    LogQuery,
    LogRange,
    Matching,
    Parse,
    PipelineStage,
    RangeAggregation,
    Unwrap,
    VectorAggregation,
    VectorOf,
)
from srearena.cluster.embedded.telemetry.metrics.matchers import Matcher
from srearena.cluster.embedded.telemetry.metrics.promql.durations import duration_text

_MAX_LINE = 100


def text(query: Expression) -> str:
    """Return the query on one line."""
    match query:
        case LogQuery():
            return " ".join([_selector(query), *map(_stage, query.stages)])
        case RangeAggregation():
            parameter = "" if query.parameter is None else f"{float_text(query.parameter)},"
            return f"{query.operation}({parameter}{_range(query.range)}){_grouping(query.grouping)}"
        case VectorAggregation():
            parameter = f"{query.parameter}," if query.parameter else ""
            return f"{query.operation}{_grouping(query.grouping)}({parameter}{text(query.inner)})"
        case Literal():
            return float_text(query.value)
        case VectorOf():
            return f"vector({query.value:f})"
        case LabelReplace():
            return f"label_replace({text(query.inner)},{','.join(_replacement(query))})"
        case Binary():
            return f"({text(query.left)} {_operator(query)} {text(query.right)})"


def formatted(query: Expression, level: int = 0) -> str:
    """Return the query with a line for each part, where it is longer than a line."""
    indent, deeper = "  " * level, "  " * (level + 1)
    line = text(query)
    if len(line) <= _MAX_LINE:
        return indent + line
    match query:
        case LogQuery():
            return "\n".join([indent + _selector(query), *(deeper + _stage(stage) for stage in query.stages)])
        case RangeAggregation():
            parameter = "" if query.parameter is None else f"{deeper}{float_text(query.parameter)},\n"
            inner = _formatted_range(query.range, level + 1)
            return f"{indent}{query.operation}(\n{parameter}{inner}\n{indent}){_grouping(query.grouping)}"
        case VectorAggregation():
            parameter = f"{deeper}{query.parameter},\n" if query.parameter else ""
            inner = formatted(query.inner, level + 1)
            return f"{indent}{query.operation}{_grouping(query.grouping)}(\n{parameter}{inner}\n{indent})"
        case LabelReplace():
            arguments = ",\n".join(
                [formatted(query.inner, level + 1), *(deeper + part for part in _replacement(query))]
            )
            return f"{indent}label_replace(\n{arguments}\n{indent})"
        case Binary():
            left, right = formatted(query.left, level + 1), formatted(query.right, level + 1)
            return f"{left}\n{indent}{_operator(query)}\n{right}"
        case _:
            return indent + line


def _selector(query: LogQuery) -> str:
    return "{" + ", ".join(map(_matcher, query.matchers)) + "}"


def _matcher(matcher: Matcher) -> str:
    return f"{matcher.name}{matcher.operator}{quoted(matcher.value)}"


def _range(log_range: LogRange) -> str:
    unwrap = "" if log_range.unwrap is None else " " + " ".join(_unwrap(log_range.unwrap))
    return f"{text(log_range.query)}{unwrap}{_window(log_range, '')}"


def _formatted_range(log_range: LogRange, level: int) -> str:
    written = formatted(log_range.query, level)
    if log_range.unwrap is not None:
        written += "".join(f"\n{'  ' * (level + 1)}{part}" for part in _unwrap(log_range.unwrap))
    return written + _window(log_range, " ")


def _window(log_range: LogRange, space: str) -> str:
    offset = f" offset {_duration(log_range.offset)}" if log_range.offset else ""
    return f"{space}[{_duration(log_range.seconds)}]{offset}"


def _duration(seconds: float) -> str:
    milliseconds = round(seconds * 1000)
    return f"-{duration_text(-milliseconds)}" if milliseconds < 0 else duration_text(milliseconds)


def _unwrap(unwrap: Unwrap) -> list[str]:
    label = f"{unwrap.conversion}({unwrap.label})" if unwrap.conversion else unwrap.label
    return [f"| unwrap {label}", *(f"| {_filter(each)}" for each in unwrap.filters)]


def _stage(stage: PipelineStage) -> str:
    match stage:
        case LineFilter():
            found = [f"{kind}({quoted(value)})" if kind else quoted(value) for kind, value in stage.patterns]
            return f"{stage.operator} {' or '.join(found)}"
        case Parse():
            flags = "".join(f" {flag}" for flag in sorted(stage.flags))
            wanted = ",".join(f"{label}={quoted(expression)}" for label, expression in stage.wanted)
            argument = f" {quoted(stage.argument)}" if stage.argument else f" {wanted}" if wanted else ""
            return f"| {stage.kind}{flags}{argument}"
        case LineFormat():
            return f"| line_format {quoted(stage.template)}"
        case LabelFormat():
            formats = [f"{label}={source if plain else quoted(source)}" for label, source, plain in stage.formats]
            return f"| label_format {','.join(formats)}"
        case Decolorize():
            return "| decolorize"
        case Choose():
            labels = [label if isinstance(label, str) else _matcher(label) for label in stage.labels]
            return f"| {'keep' if stage.keeps else 'drop'} {','.join(labels)}"
        case _:
            return f"| {_filter(stage)}"


def _filter(label_filter: LabelFilter) -> str:
    match label_filter:
        case Matcher():
            return _matcher(label_filter)
        case Comparison():
            amount = label_filter.text or float_text(label_filter.amount)
            if label_filter.kind == "ip":
                amount = f"ip({quoted(label_filter.text)})"
            return f"{label_filter.label}{label_filter.operator}{amount}"
        case Both():
            joint = "or" if label_filter.either else ","
            left, right = _filter(label_filter.left), _filter(label_filter.right)
            return f"( {left} {joint} {right} )"


def _grouping(grouping: Grouping | None) -> str:
    if grouping is None or not (grouping.labels or grouping.without):
        return ""
    return f" {'without' if grouping.without else 'by'} ({', '.join(grouping.labels)})"


def _operator(query: Binary) -> str:
    return query.operator + (" bool" if query.returns_bool else "") + _matching(query.matching)


def _matching(matching: Matching) -> str:
    written = ""
    if matching.labels or matching.on:
        written += f" {'on' if matching.on else 'ignoring'} ({', '.join(matching.labels)})"
    if matching.many:
        written += f" group_{matching.many}" + (f" ({', '.join(matching.include)})" if matching.include else "")
    return written


def _replacement(query: LabelReplace) -> list[str]:
    return [quoted(part) for part in (query.target, query.replacement, query.source, query.pattern)]
