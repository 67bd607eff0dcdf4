"""The shape of a response: what all responses of a healthy server to one request have in common.

Values differ from response to response (prices, ids, numbers of results); the media type, the keys of a JSON document
with the types of their values, the title and tags of a page, and the wording of a plain text do not. A shape is a set
of such features, each readable in a complaint.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

_TITLE = re.compile(r"<title[^<>]{0,100}>([^<]{0,1000})</title>", re.IGNORECASE)
"""A title has no tags in it. Bounded, so that no text takes more than time in proportion to its length."""
_DEEPEST = 40
"""Levels of a JSON document whose fields count; those of the applications have ten at most."""
_TAG = re.compile(r"<([a-z][a-z0-9]*)", re.IGNORECASE)
_LONGEST_TEXT = 80
_ITEMS = "[]"
_EMPTY = ": empty"


def features(text: str, content_type: str) -> set[str]:
    """The features of one response."""
    found = {f"media type {media}"} if (media := content_type.partition(";")[0].strip().lower()) else set()
    document = _parsed(text)
    if isinstance(document, dict | list):
        return found | set(_fields(document, "$"))
    if title := _TITLE.search(text):
        found.add(f"title {title[1].strip()!r}")
        return found | {f"tag <{tag.lower()}>" for tag in _TAG.findall(text)}
    wording = re.sub(r"\d+", "#", text.strip().partition("\n")[0])[:_LONGEST_TEXT]
    return found | ({f"text {wording!r}"} if wording else set())


def common(samples: Iterable[set[str]]) -> list[str]:
    """The features that all samples have. That something was empty in all of them says nothing about later."""
    sets = list(samples)
    shared = set.intersection(*sets) if sets else set()
    return sorted(feature for feature in shared if not feature.endswith(_EMPTY))


def lacking(expected: Iterable[str], text: str, content_type: str) -> list[str]:
    """The expected features that a response does not have.

    An empty list has no items whose fields could be compared.
    """
    present = features(text, content_type)
    empty = {_path(feature) for feature in present if feature.endswith(_EMPTY)}
    missing = []
    for feature in sorted(set(expected) - present):
        path = _path(feature)
        if not any(path.startswith(f"{container}{_ITEMS}") or path == container for container in empty):
            missing.append(feature)
    return missing


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # also of a document that is nested without end
        return None


def _fields(value: Any, path: str, levels: int = _DEEPEST) -> Iterator[str]:
    """The fields of a JSON document. Of a list, those that all its items have; lists in lists are not entered."""
    yield f"field {path}: {_kind(value)}"
    if not levels:
        return
    if isinstance(value, dict):
        for key, child in value.items():
            if child is not None:
                yield from _fields(child, f"{path}.{key}", levels - 1)
    elif isinstance(value, list) and value and _ITEMS not in path:
        yield from set.intersection(*(set(_fields(item, f"{path}{_ITEMS}", levels - 1)) for item in value))


def _path(feature: str) -> str:
    return feature.removeprefix("field ").rpartition(": ")[0]


def _kind(value: Any) -> str:
    """The type of a value. An empty list has none: some servers write it as an empty object."""
    if isinstance(value, dict | list) and not value:
        return _EMPTY.removeprefix(": ")
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, dict):
        return "object"
    return "list" if isinstance(value, list) else "text"
