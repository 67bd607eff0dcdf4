"""Reader of recorded incidents: one typed view over every known layout.

`open_snapshot(directory)` returns a `Snapshot`. Its tables are converted to Parquet once and then queried with DuckDB.
Nothing in a recording is executed: attribute maps are parsed, expressions are never evaluated.
"""

from __future__ import annotations

from srearena.snapshots.errors import MissingExtra, SnapshotError
from srearena.snapshots.layout import Layout, find_snapshots, scan
from srearena.snapshots.records import Alert, Event, LogRecord, ObjectVersion, Sample, Span
from srearena.snapshots.snapshot import Snapshot, open_snapshot

__all__ = [
    "Alert",
    "Event",
    "Layout",
    "LogRecord",
    "MissingExtra",
    "ObjectVersion",
    "Sample",
    "Snapshot",
    "SnapshotError",
    "Span",
    "find_snapshots",
    "open_snapshot",
    "scan",
]
