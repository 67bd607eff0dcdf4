"""The changes of a recording's objects: what happened to which, and when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from srearena.snapshots import Snapshot
from srearena.snapshots.differences import Obj, differences, essential, parse_body

__all__ = ["Change", "Obj", "all_changes", "change_text", "parse_body"]

# Objects that are nothing but bookkeeping of others.
_PRECISION = timedelta(seconds=1)  # of the times in managed fields, which are cut off, not rounded
NOISY_KINDS = frozenset({"Lease", "Event", "Endpoints", "EndpointSlice", "NodeMetrics", "PodMetrics"})


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
    seen: datetime  # the look that first showed it


def _written(body: Obj) -> set[datetime]:
    """When the object says it was written (not its status), to the second."""
    times = set()
    for entry in (body.get("metadata") or {}).get("managedFields") or []:
        text = entry.get("time") if isinstance(entry, dict) and entry.get("subresource") != "status" else None
        if text:
            try:
                times.add(datetime.fromisoformat(str(text)).astimezone(UTC))
            except ValueError:
                continue
    return times


def _own_time(old: Obj, new: Obj, after: datetime, until: datetime) -> datetime | None:
    """When the object says it was written anew, if that lies between the two looks."""
    fitting = [time for time in _written(new) - _written(old) if after < time + _PRECISION and time <= until]
    return max(fitting, default=None)


# Consecutive versions of each object, as far as the digest of everything but bookkeeping tells them apart.
_VERSIONS = """
SELECT versions.* EXCLUDE (position), body FROM objects JOIN (
  SELECT kind, namespace, name, observed_at, previous_at, created_at, deleted_at, began, position FROM (
    SELECT * EXCLUDE (body), lag(digest) OVER one AS previous, lag(observed_at) OVER one AS previous_at,
           lag(deleted_at) OVER one AS previously_deleted,
           row_number() OVER one AS number,
           min(observed_at) OVER () AS began
    FROM objects WHERE kind IS NOT NULL AND name IS NOT NULL
    WINDOW one AS (PARTITION BY kind, namespace, name ORDER BY observed_at, resource_version)
  ) WHERE number = 1 OR digest IS DISTINCT FROM previous OR (deleted_at IS NOT NULL AND previously_deleted IS NULL)
) AS versions USING (position)
ORDER BY versions.kind, versions.namespace, versions.name, versions.observed_at
"""


def all_changes(snapshot: Snapshot) -> list[Change]:
    """Every change of every object in the recording, in order of time."""
    return snapshot.derived(_find_changes, "objects")


def _find_changes(snapshot: Snapshot) -> list[Change]:
    found: list[Change] = []
    last_key: tuple[Any, ...] | None = None
    last: Any = None
    last_body: Obj = {}
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
                found.append(Change(*key, "added", created, None, True, [], seen))
        elif items := list(differences(last, now)):
            own = _own_time(last_body, body, row["previous_at"], seen)
            found.append(Change(*key, "modified", own or seen, row["previous_at"], own is not None, items, seen))
        if row["deleted_at"]:
            told = "deletionTimestamp" in (body.get("metadata") or {})
            gone = None if told else row["previous_at"]
            found.append(Change(*key, "removed", row["deleted_at"], gone, told, [], seen))
        last_key, last, last_body = key, now, body
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
