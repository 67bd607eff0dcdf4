"""Differences between two versions of an object, without bookkeeping fields.

Status, resource versions, managed fields and time stamps are ignored. Lists of named items are compared by name, so
inserting a container is one addition and not a change of every item after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Any

import orjson

Obj = dict[str, Any]
_BOOKKEEPING = frozenset(
    "status resourceVersion managedFields generation uid selfLink creationTimestamp observedGeneration podIP podIPs "
    "hostIP hostIPs nodeName holderIdentity acquireTime renewTime leaseTransitions".split()
)
_BOOKKEEPING_ANNOTATIONS = (
    "kubectl.kubernetes.io/last-applied-configuration",
    "deployment.kubernetes.io/revision",
    "control-plane.alpha.kubernetes.io/leader",
    "endpoints.kubernetes.io/last-change-trigger-time",
)
_MISSING: Any = object()
_MAX_COMPARISONS = 40_000  # of changed lines; chosen: a fraction of a second for the worst text


def parse_body(text: str | None) -> Obj:
    """The object in a JSON text; empty if it is not an object."""
    try:
        document = orjson.loads(text or "{}")
    except orjson.JSONDecodeError:
        return {}
    return document if isinstance(document, dict) else {}


def essential(value: Any, path: tuple[str, ...] = ()) -> Any:
    """An object without bookkeeping fields and with its lists of named items as mappings."""
    if isinstance(value, dict):
        result = {}
        for key, item in value.items():
            if key in _BOOKKEEPING and (key != "nodeName" or len(path) < 2) and "data" not in path:
                continue
            if path and path[-1] == "annotations" and (key in _BOOKKEEPING_ANNOTATIONS or "time" in key.lower()):
                continue
            result[key] = essential(item, (*path, key))
        return result
    if isinstance(value, list):
        named = {item["name"]: item for item in value if isinstance(item, dict) and isinstance(item.get("name"), str)}
        if value and len(named) == len(value):
            return {name: essential(item, (*path, name)) for name, item in named.items()}
        return [essential(item, path) for item in value]
    return value


def differences(old: Any, new: Any, path: str = "") -> Iterator[Obj]:
    """The changed items: `path`, `type` (added, removed, changed), `old` and `new`."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            inner = f"{path}.{key}" if path else key
            yield from differences(old.get(key, _MISSING), new.get(key, _MISSING), inner)
    elif old is _MISSING:
        yield {"path": path, "type": "added", "new": new}
    elif new is _MISSING:
        yield {"path": path, "type": "removed", "old": old}
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from differences(before, after, f"{path}[{index}]")
    elif old != new:
        yield from _text_differences(path, old, new)


def _text_differences(path: str, old: Any, new: Any) -> Iterator[Obj]:
    """Compare long texts, such as files in a ConfigMap, by JSON keys or else by lines."""
    if isinstance(old, str) and isinstance(new, str) and len(old) + len(new) > 200:
        before, after = parse_body(old), parse_body(new)
        if before and after:
            yield from differences(before, after, path)
            return
        removed, added = _line_differences(old.splitlines(), new.splitlines())
        yield {"path": path, "type": "changed", "old": "\n".join(removed), "new": "\n".join(added)}
        return
    yield {"path": path, "type": "changed", "old": old, "new": new}


def _line_differences(old: list[str], new: list[str]) -> tuple[list[str], list[str]]:
    """The lines that were removed and added, each part below the less indented line that it belongs to."""
    start = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    most = min(len(old), len(new)) - start
    end = next((i for i in range(most) if old[-1 - i] != new[-1 - i]), most)
    before, after = old[start : len(old) - end], new[start : len(new) - end]
    if len(before) * len(after) > _MAX_COMPARISONS:
        lines_before, lines_after = set(before), set(after)
        return [line for line in before if line not in lines_after], [
            line for line in after if line not in lines_before
        ]
    removed: list[str] = []
    added: list[str] = []
    for operation, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if operation != "equal":
            removed += _with_parent(old, start + a, start + b)
            added += _with_parent(new, start + c, start + d)
    return removed, added


def _with_parent(lines: list[str], begin: int, end: int) -> list[str]:
    part = lines[begin:end]
    indentation = min((_indentation(line) for line in part if line.strip()), default=0)
    above = (line for line in reversed(lines[:begin]) if line.strip() and _indentation(line) < indentation)
    return [*([parent] if (parent := next(above, None)) else []), *part]


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())
