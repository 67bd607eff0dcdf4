"""What really changed about an object: versions compared without bookkeeping, item by item.

Status, resource versions, managed fields and time stamps are not changes. Lists whose items have names are compared
by name, so that inserting a container is one addition and not a shift of all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson

from srearena.snapshots import Snapshot

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
# Objects that are nothing but bookkeeping of others.
NOISY_KINDS = frozenset({"Lease", "Event", "Endpoints", "EndpointSlice", "NodeMetrics", "PodMetrics"})
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


@dataclass(frozen=True, slots=True)
class Change:
    """Something that happened to an object between two looks at it."""

    kind: str
    namespace: str | None
    name: str
    type: str  # modified, added, removed
    time: datetime
    not_before: datetime | None
    exact: bool  # the object itself says when; otherwise `time` is when it was first seen so
    items: list[Obj]


def _own_time(body: Obj, after: datetime, until: datetime) -> datetime | None:
    """When the object says it was last written (not its status), if that lies between the two looks."""
    times = []
    for entry in (body.get("metadata") or {}).get("managedFields") or []:
        text = entry.get("time") if isinstance(entry, dict) and entry.get("subresource") != "status" else None
        if text:
            try:
                times.append(datetime.fromisoformat(str(text)).astimezone(UTC))
            except ValueError:
                continue
    fitting = [time for time in times if after < time <= until]
    return max(fitting, default=None)


# Consecutive versions of each object, as far as the digest of everything but bookkeeping tells them apart.
_VERSIONS = """
SELECT kind, namespace, name, observed_at, previous_at, created_at, deleted_at, body, began, ended FROM (
  SELECT *, lag(digest) OVER one AS previous, lag(observed_at) OVER one AS previous_at,
         row_number() OVER one AS number
  FROM (SELECT *, min(observed_at) OVER () AS began, max(observed_at) OVER () AS ended FROM objects
        WHERE kind IS NOT NULL AND name IS NOT NULL)
  WINDOW one AS (PARTITION BY kind, namespace, name ORDER BY observed_at, resource_version)
) WHERE number = 1 OR digest IS DISTINCT FROM previous
ORDER BY kind, namespace, name, observed_at
"""


_KNOWN: dict[str, tuple[Any, list[Change]]] = {}


def all_changes(snapshot: Snapshot) -> list[Change]:
    """Every change of every object in the recording, in order of time; worked out once while the source is the same."""
    key = snapshot.table("objects")
    known = _KNOWN.get(str(snapshot.root))
    if known is None or known[0] != key:
        known = (key, _find_changes(snapshot))
        _KNOWN[str(snapshot.root)] = known
    return known[1]


def _find_changes(snapshot: Snapshot) -> list[Change]:
    found: list[Change] = []
    last_key: tuple[Any, ...] | None = None
    last: Any = None
    for row in snapshot.stream(_VERSIONS):
        key = (row["kind"], row["namespace"], row["name"])
        if row["kind"] in NOISY_KINDS:
            continue
        body = parse_body(row["body"])
        now = essential(body)
        seen = row["observed_at"]
        if key != last_key:
            created = row["created_at"]
            if created and row["began"] and created > row["began"]:
                found.append(Change(*key, "added", created, None, True, []))
        elif items := list(differences(last, now)):
            own = _own_time(body, row["previous_at"], seen)
            found.append(Change(*key, "modified", own or seen, row["previous_at"], own is not None, items))
        if row["deleted_at"]:
            found.append(Change(*key, "removed", row["deleted_at"], None, True, []))
        last_key, last = key, now
    return sorted(found, key=lambda change: (change.time, change.kind, change.namespace or "", change.name))


def change_text(change: Change) -> str:
    """A change in one line."""
    if change.type != "modified":
        return f"{change.kind} {change.type}"
    parts = []
    for item in change.items[:3]:
        old, new = (str(item.get(side, ""))[:60] for side in ("old", "new"))
        parts.append(f"{item['path']}: {old or '(none)'} → {new or '(none)'}")
    more = f" and {len(change.items) - 3} more" if len(change.items) > 3 else ""
    return "; ".join(parts) + more
