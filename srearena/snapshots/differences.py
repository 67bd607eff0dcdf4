"""Differences between two versions of an object, without bookkeeping fields.

Status, resource versions, managed fields and time stamps are ignored. Lists of named items are compared by name, so
inserting a container is one addition and not a change of every item after it.
"""

from __future__ import annotations

from collections.abc import Iterator
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
        names = [item.get("name") if isinstance(item, dict) else None for item in value]
        if value and all(names) and len(set(names)) == len(names):
            return {str(name): essential(item, (*path, str(name))) for name, item in zip(names, value, strict=True)}
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
        old_lines, new_lines = old.splitlines(), new.splitlines()
        old_set, new_set = set(old_lines), set(new_lines)
        removed = [line for line in old_lines if line not in new_set]
        added = [line for line in new_lines if line not in old_set]
        yield {"path": path, "type": "changed", "old": "\n".join(removed), "new": "\n".join(added)}
        return
    yield {"path": path, "type": "changed", "old": old, "new": new}
