"""What differs between two versions of an object: without bookkeeping, item by item.

Status, resource versions, managed fields and time stamps are not differences. Lists whose items have names are compared
by name, so that inserting a container is one addition and not a shift of all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

Obj = dict[str, Any]
_CHURN = frozenset(
    "status resourceVersion managedFields generation uid selfLink creationTimestamp observedGeneration podIP podIPs "
    "hostIP hostIPs nodeName holderIdentity acquireTime renewTime leaseTransitions".split()
)
_CHURN_ANNOTATIONS = (
    "kubectl.kubernetes.io/last-applied-configuration",
    "deployment.kubernetes.io/revision",
    "control-plane.alpha.kubernetes.io/leader",
    "endpoints.kubernetes.io/last-change-trigger-time",
)
_MISSING: Any = object()


def parse_body(text: str | None) -> Obj:
    try:
        document = orjson.loads(text or "{}")
    except orjson.JSONDecodeError:
        return {}
    return document if isinstance(document, dict) else {}


def essential(value: Any, path: tuple[str, ...] = ()) -> Any:
    """An object without bookkeeping, its named lists as mappings."""
    if isinstance(value, dict):
        kept = {}
        for key, item in value.items():
            if key in _CHURN and (key != "nodeName" or len(path) < 2) and "data" not in path:
                continue
            if path and path[-1] == "annotations" and (key in _CHURN_ANNOTATIONS or "time" in key.lower()):
                continue
            kept[key] = essential(item, (*path, key))
        return kept
    if isinstance(value, list):
        names = [item.get("name") if isinstance(item, dict) else None for item in value]
        if value and all(names) and len(set(names)) == len(names):
            return {str(name): essential(item, (*path, str(name))) for name, item in zip(names, value, strict=True)}
        return [essential(item, path) for item in value]
    return value


def differences(old: Any, new: Any, path: str = "") -> Iterator[Obj]:
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
    """A file kept in a ConfigMap is compared by its lines or, where it is JSON, by its keys."""
    if isinstance(old, str) and isinstance(new, str) and len(old) + len(new) > 200:
        before, after = parse_body(old), parse_body(new)
        if before and after:
            yield from differences(before, after, path)
            return
        gone, come = set(old.splitlines()), set(new.splitlines())
        lines_old = [line for line in old.splitlines() if line not in come]
        lines_new = [line for line in new.splitlines() if line not in gone]
        yield {"path": path, "type": "changed", "old": "\n".join(lines_old), "new": "\n".join(lines_new)}
        return
    yield {"path": path, "type": "changed", "old": old, "new": new}
