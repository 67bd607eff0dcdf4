"""Functions that change labels or order: label_replace, label_join, absent, sorting."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from srearena.cluster.embedded.go_text import quoted
from srearena.cluster.embedded.telemetry.metrics.blocks import Flags
from srearena.cluster.embedded.telemetry.metrics.labels import NAME, Labels, labels_of, value_of, with_labels
from srearena.cluster.embedded.telemetry.metrics.matchers import PatternError, anchored
from srearena.cluster.embedded.telemetry.metrics.promql.errors import QueryError
from srearena.cluster.embedded.telemetry.metrics.promql.nodes import Node, RangeSelector, Selector
from srearena.cluster.embedded.telemetry.metrics.promql.values import Vector


def label_replace(vector: Vector, texts: Sequence[str]) -> Vector:
    target, replacement, source, expression = texts
    try:
        pattern = anchored(expression)
    except PatternError:
        raise QueryError(f"invalid regular expression in label_replace(): {expression}") from None
    if not is_label(target):
        raise QueryError(f"invalid destination label name in label_replace(): {target}")

    def changed(labels: Labels) -> Labels:
        found = pattern.search(value_of(labels, source))
        return labels if found is None else with_labels(labels, {target: found.expand(replacement)})

    return vector.relabelled(changed).unified()


def label_join(vector: Vector, texts: Sequence[str]) -> Vector:
    target, separator, *sources = texts
    if not is_label(target):
        raise QueryError(f"invalid destination label name in label_join(): {target}")
    for source in sources:
        if not is_label(source):
            raise QueryError(f"invalid source label name in label_join(): {source}")

    def changed(labels: Labels) -> Labels:
        return with_labels(labels, {target: separator.join(value_of(labels, source) for source in sources)})

    return vector.relabelled(changed).unified()


def absent(vector: Vector, argument: Node) -> Vector:
    """Return one element where the vector has none, with the equality labels of the selector."""
    nothing: Flags = np.logical_not(vector.present.any(axis=0))
    return Vector([absent_labels(argument)], np.ones((1, vector.steps)), nothing[None, :]).pruned()


def absent_labels(argument: Node) -> Labels:
    if isinstance(argument, RangeSelector):
        argument = argument.selector
    if not isinstance(argument, Selector):
        return ()
    equal_labels: dict[str, str] = {}
    refused: set[str] = set()
    for matcher in argument.matchers:
        if matcher.name == NAME:
            continue
        if matcher.operator == "=" and matcher.name not in equal_labels:
            equal_labels[matcher.name] = matcher.value
        else:
            refused.add(matcher.name)
    return labels_of({name: value for name, value in equal_labels.items() if name not in refused})


def sorted_by_value(vector: Vector, descending: bool) -> Vector:
    """Sort; only the result of an instant query has an order, and NaN is last either way."""
    if vector.steps != 1 or not vector.series:
        return vector
    values = vector.values[:, 0]
    keys = -values if descending else values
    return vector.only(np.lexsort((keys, np.isnan(values))))


def sorted_by_label(vector: Vector, names: Sequence[str], descending: bool) -> Vector:
    if vector.steps != 1:
        return vector

    def key(row: int) -> list[list[int | str]]:
        labels = vector.series[row]
        values = [value_of(labels, name) for name in names]
        return [_natural(value) for value in values] + [_natural(f"{name}={value}") for name, value in labels]

    return vector.only(sorted(range(len(vector.series)), key=key, reverse=descending))


def _natural(text: str) -> list[int | str]:
    """Numbers inside text compare as numbers: pieces alternate between text and number."""
    return [int(piece) if piece.isdigit() else piece for piece in re.split(r"(\d+)", text)]


def is_label(name: str) -> bool:
    """Return whether a label can have this name: any text of valid UTF-8."""
    return bool(name) and "\ufffd" not in name


def counted_label(name: str) -> str:
    if not is_label(name):
        raise QueryError(f"invalid label name {quoted(name)}")
    return name
