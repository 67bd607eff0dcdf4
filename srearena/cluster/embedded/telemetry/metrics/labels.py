"""Label sets: what identifies a series.

A label set is a sorted tuple of (name, value) pairs. It never holds an empty value, since Prometheus does not tell an
empty label from a missing one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from srearena.cluster.embedded.go_text import quoted

Labels = tuple[tuple[str, str], ...]

NAME = "__name__"


def labels_of(mapping: Mapping[str, str]) -> Labels:
    return tuple(sorted((name, value) for name, value in mapping.items() if value))


def without(labels: Labels, names: Iterable[str]) -> Labels:
    return tuple(pair for pair in labels if pair[0] not in names)


def keeping(labels: Labels, names: Iterable[str]) -> Labels:
    return tuple(pair for pair in labels if pair[0] in names)


def value_of(labels: Labels, name: str) -> str:
    for key, value in labels:
        if key == name:
            return value
    return ""


def with_labels(labels: Labels, changes: Mapping[str, str]) -> Labels:
    """The label set with some values set; an empty value takes the label away."""
    return labels_of({**dict(labels), **changes})


def written(labels: Labels) -> str:
    """The label set as Prometheus' messages write it: {a="b"}, the name as a label among the others."""
    return "{" + ", ".join(f"{key}={quoted(value)}" for key, value in labels) + "}"
