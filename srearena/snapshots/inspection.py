"""Contents and defects of a recording, for `srearena snapshot info` and `check`.

An oddity is a defect that the reader tolerates: a truncated line, a missing table, rows without a time. A problem makes
the recording unusable. Neither reveals the answer key.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from srearena.snapshots.errors import MissingExtra, SnapshotError
from srearena.snapshots.snapshot import Snapshot
from srearena.snapshots.tables import SCHEMAS

_TIME = {"alerts": "observed_at", "objects": "observed_at"}
# Table, description of a defect, and the condition on rows that have it.
_RULES: tuple[tuple[str, str, str], ...] = (
    ("alerts", "without a readable observation time", "observed_at IS NULL"),
    ("alerts", "active only after they were observed", "active_at > observed_at"),
    ("events", "without a readable time", "time IS NULL"),
    ("events", "that name no object", "name IS NULL"),
    ("objects", "without kind or name (the body is no JSON object)", "kind IS NULL OR name IS NULL"),
    ("objects", "without a readable time", "observed_at IS NULL"),
    ("logs", "without a readable time", "time IS NULL"),
    ("logs", "without a service", "service IS NULL"),
    ("spans", "without a readable time", "time IS NULL"),
    ("spans", "without trace or span id", "trace_id IS NULL OR span_id IS NULL"),
    ("spans", "without a readable duration", "duration_ns IS NULL OR duration_ns < 0"),
    ("metrics", "without a readable time", "time IS NULL"),
    ("metrics", "whose value is no number", "value IS NULL"),
)


@dataclass(slots=True)
class TableFacts:
    table: str
    files: int
    bytes: int
    rows: int
    first: str | None
    last: str | None


@dataclass(slots=True)
class Inspection:
    directory: Path
    form: str
    tables: list[TableFacts] = field(default_factory=list)
    answer_key: str | None = None
    architecture: bool = False
    oddities: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def as_document(self) -> dict[str, Any]:
        return {
            "directory": str(self.directory),
            "layout": self.form,
            "tables": {
                t.table: {"files": t.files, "bytes": t.bytes, "rows": t.rows, "first": t.first, "last": t.last}
                for t in self.tables
            },
            "answer_key": self.answer_key,
            "architecture": self.architecture,
            "oddities": self.oddities,
            "problems": self.problems,
        }


def inspect(snapshot: Snapshot) -> Inspection:
    """Read every table once and report its contents and defects."""
    layout = snapshot.layout
    inspection = Inspection(snapshot.root, layout.form, oddities=list(layout.oddities))
    for table in SCHEMAS:
        sources = layout.sources(table)
        if not sources:
            inspection.oddities.append(f"no {table}")
            continue
        facts = _guarded(inspection, lambda table=table: _facts(snapshot, table))  # type: ignore[misc]
        if facts is None:
            continue
        inspection.tables.append(facts)
        cached = snapshot.table(table)
        inspection.oddities.extend(cached.oddities if cached else ())
        if not facts.rows:
            inspection.oddities.append(f"{table}: no rows")
    if layout.empty:
        inspection.problems.append("no alerts, events, objects, logs, traces or metrics: this is not a snapshot")
    for table, defect, condition in _RULES:
        if any(facts.table == table and facts.rows for facts in inspection.tables):
            count = snapshot.rows(f"SELECT count(*) AS n FROM {table} WHERE {condition}")[0]["n"]
            if count:
                inspection.oddities.append(f"{table}: {count} rows {defect}")
    key = _guarded(inspection, snapshot.answer_key)
    inspection.answer_key = key.format if key else None
    if layout.answer_keys:
        inspection.oddities.append("the answer key is stored with the evidence; do not show it to the agent")
    inspection.architecture = _guarded(inspection, snapshot.architecture) is not None
    return inspection


def _guarded(inspection: Inspection, read: Callable[[], Any]) -> Any:
    """The result of `read`; an error becomes a problem of the inspection."""
    try:
        return read()
    except MissingExtra:
        raise
    except SnapshotError as problem:
        inspection.problems.append(str(problem))
        return None


def _facts(snapshot: Snapshot, table: str) -> TableFacts:
    sources = snapshot.layout.sources(table)
    column = _TIME.get(table, "time")
    row = snapshot.rows(f"SELECT count(*) AS n, min({column}) AS first, max({column}) AS last FROM {table}")[0]
    return TableFacts(
        table=table,
        files=len(sources),
        bytes=sum(path.stat().st_size for path in sources),
        rows=row["n"],
        first=row["first"].isoformat() if row["first"] else None,
        last=row["last"].isoformat() if row["last"] else None,
    )
