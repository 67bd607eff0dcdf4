"""Filters on labels: by text, or by what the text says as a number, a duration, a size or an address."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from ipaddress import ip_address

from srearena.cluster.embedded.telemetry.logs.logql.amounts import go_duration, number, size
from srearena.cluster.embedded.telemetry.logs.logql.line_filters import address_test
from srearena.cluster.embedded.telemetry.logs.logql.lines import ERROR, Line
from srearena.cluster.embedded.telemetry.logs.logql.syntax import Both, Comparison, LabelFilter
from srearena.cluster.embedded.telemetry.metrics.matchers import Matcher

Step = Callable[[Line], bool]

_FAILED = "LabelFilterErr"
_OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
_READERS: Mapping[str, Callable[[str], float | None]] = {"number": number, "duration": go_duration, "bytes": size}


def label_step(stage: LabelFilter) -> Step:
    if isinstance(stage, Matcher):
        return _text(stage)
    if isinstance(stage, Both):
        left, right = label_step(stage.left), label_step(stage.right)
        if stage.either:
            return lambda line: left(line) or right(line)
        return lambda line: left(line) and right(line)
    return _address(stage) if stage.kind == "ip" else _amount(stage)


def _text(stage: Matcher) -> Step:
    name, holds = stage.name, stage.holds
    return lambda line: holds(line.labels.get(name, ""))


def _amount(stage: Comparison) -> Step:
    name, amount = stage.label, stage.amount
    compare, read = _OPERATORS[stage.operator], _READERS[stage.kind]

    def step(line: Line) -> bool:
        if line.labels.get(ERROR):
            # A line that failed before is let through, for the error to be seen.
            return True
        value = line.labels.get(name)
        if value is None:
            return False
        found = read(value)
        if found is None:
            line.fail(_FAILED, _complaint(stage.kind, value))
            return True
        return compare(found, amount)

    return step


def _complaint(kind: str, value: str) -> str:
    if kind == "duration":
        return f'time: invalid duration "{value}"'
    return f'strconv.ParseFloat: parsing "{value}": invalid syntax'


def _address(stage: Comparison) -> Step:
    inside = address_test(stage.text)
    negated = stage.operator == "!="

    def step(line: Line) -> bool:
        if line.labels.get(ERROR):
            return True
        value = line.labels.get(stage.label)
        if value is None:
            return False
        try:
            found = inside(ip_address(value))
        except ValueError:
            found = False
        return found is not negated

    return step
