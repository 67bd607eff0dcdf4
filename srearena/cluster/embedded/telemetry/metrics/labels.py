"""Label sets, which identify series.

A label set is a sorted tuple of (name, value) pairs. It never has an empty value, since Prometheus does not distinguish
an empty label from a missing one.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from srearena.cluster.embedded.go_text import quoted

Labels = tuple[tuple[str, str], ...]

NAME = "__name__"
_REMEMBERED = 16_384
"""Label sets whose reduced form is remembered: the same series are grouped and renamed by every query."""


def labels_of(mapping: Mapping[str, str]) -> Labels:
    pairs = sorted(mapping.items())
    return tuple(pairs) if all(mapping.values()) else tuple(pair for pair in pairs if pair[1])


@lru_cache(maxsize=_REMEMBERED)
def without(labels: Labels, names: frozenset[str]) -> Labels:
    return tuple(pair for pair in labels if pair[0] not in names)


@lru_cache(maxsize=_REMEMBERED)
def keeping(labels: Labels, names: frozenset[str]) -> Labels:
    return tuple(pair for pair in labels if pair[0] in names)


def value_of(labels: Labels, name: str) -> str:
    for key, value in labels:
        if key == name:
            return value
    return ""


def with_labels(labels: Labels, changes: Mapping[str, str]) -> Labels:
    """Return the label set with some values set; an empty value removes the label."""
    return labels_of({**dict(labels), **changes})


def written(labels: Labels) -> str:
    """Format a label set as in Prometheus' messages: {a="b"}, with the name as a label."""
    return "{" + ", ".join(f"{key}={quoted(value)}" for key, value in labels) + "}"
