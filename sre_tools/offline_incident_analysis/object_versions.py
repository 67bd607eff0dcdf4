"""Changes of the objects in a recording, from consecutive observations."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from srearena.snapshots import Snapshot
from srearena.snapshots.differences import Obj, differences, essential, parse_body

__all__ = ["Change", "Obj", "all_changes", "change_text", "parse_body"]

_PRECISION = timedelta(seconds=1)  # of the times in managed fields, which Kubernetes truncates
# Kinds that controllers update all the time.
_CONTROLLERS = frozenset(
    {"kube-controller-manager", "kube-scheduler", "kubelet", "kube-apiserver", "cloud-controller-manager"}
)
NOISY_KINDS = frozenset({"Lease", "Event", "Endpoints", "EndpointSlice", "NodeMetrics", "PodMetrics"})


@dataclass(frozen=True, slots=True)
class Change:
    """A change of an object between two observations."""

    kind: str
    namespace: str | None
    name: str
    type: str  # modified, added, removed
    time: datetime
    not_before: datetime | None
    exact: bool  # `time` is from the object itself; otherwise it is the first observation of the change
    items: list[Obj]
    observed_at: datetime  # the first observation of the change


def _writes(body: Obj) -> set[tuple[datetime, str]]:
    """Time and writer of each entry of the managed fields, without those of the status."""
    writes = set()
    metadata = body.get("metadata")
    entries = metadata.get("managedFields") if isinstance(metadata, dict) else None
    for entry in entries if isinstance(entries, list) else ():
        text = entry.get("time") if isinstance(entry, dict) and entry.get("subresource") != "status" else None
        if text:
            try:
                writes.add((datetime.fromisoformat(str(text)).astimezone(UTC), str(entry.get("manager"))))
            except ValueError:
                continue
    return writes


def _edits(writes: set[tuple[datetime, str]]) -> list[datetime]:
    """Times of the writes by people and tools."""
    return [time for time, manager in writes if manager not in _CONTROLLERS]


def _edited(body: Obj, after: datetime) -> datetime | None:
    """Time of the latest write by a person or a tool since then, as far as the managed fields show it."""
    return max((time for time in _edits(_writes(body)) if time > after), default=None)


def _write_time(old: Obj, new: Obj, after: datetime, until: datetime) -> datetime | None:
    """Time of the latest new edit in the managed fields between two observations, or else of a controller's write.

    Controllers add annotations to what was edited, a moment later."""
    writes = {(time, by) for time, by in _writes(new) - _writes(old) if after < time + _PRECISION and time <= until}
    return max(_edits(writes) or [time for time, _ in writes], default=None)


# Consecutive versions of each object, distinguished by the digest without bookkeeping fields.
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
    """Every change of every object in the recording, sorted by time."""
    return snapshot.derived(_find_changes, "objects")


def _find_changes(snapshot: Snapshot) -> list[Change]:
    changes: list[Change] = []
    last_key: tuple[Any, ...] | None = None
    last: Any = None
    last_body: Obj = {}
    observed_since = snapshot.observed_since
    for row in snapshot.stream(_VERSIONS):
        key = (row["kind"], row["namespace"], row["name"])
        if row["kind"] in NOISY_KINDS:
            continue
        body = parse_body(row["body"])
        now = essential(body)
        observed_at = row["observed_at"]
        if key != last_key:
            created, began = row["created_at"], observed_since or row["began"]
            if created and began and created > began:
                changes.append(Change(*key, "added", created, None, True, [], observed_at))
            elif observed_since and (edited := _edited(body, observed_since)):
                changes.append(Change(*key, "modified", edited, None, True, [], observed_at))
        elif items := list(differences(last, now)):
            written_at = _write_time(last_body, body, row["previous_at"], observed_at)
            changes.append(
                Change(
                    *key,
                    "modified",
                    written_at or observed_at,
                    row["previous_at"],
                    written_at is not None,
                    items,
                    observed_at,
                )
            )
        if row["deleted_at"]:
            exact = "deletionTimestamp" in (body.get("metadata") or {})
            not_before = None if exact else row["previous_at"]
            changes.append(Change(*key, "removed", row["deleted_at"], not_before, exact, [], observed_at))
        last_key, last, last_body = key, now, body
    return sorted(changes, key=lambda change: (change.time, change.kind, change.namespace or "", change.name))


def change_text(change: Change) -> str:
    """One line about a change."""
    if change.type != "modified":
        return f"{change.kind} {change.type}"
    if not change.items:
        return f"{change.kind} modified; what it was before was not observed"
    parts = []
    for item in change.items[:3]:
        old, new = (str(item.get(side, ""))[:60] for side in ("old", "new"))
        parts.append(f"{item['path']}: {old or '(none)'} → {new or '(none)'}")
    more = f" and {len(change.items) - 3} more" if len(change.items) > 3 else ""
    return "; ".join(parts) + more
