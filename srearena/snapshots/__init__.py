"""Recorded incidents: every layout in the wild behind one typed view.

`open_snapshot(directory)` gives a `Snapshot`; its tables are turned into Parquet once and queried with DuckDB after.
Nothing here executes what a recording says: attribute maps are parsed, expressions never are.
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
