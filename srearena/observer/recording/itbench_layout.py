"""The layout of ITBench's present recorder, made from a finished recording.

Tables are in `raw/`, metrics in `raw/metrics_pod/` and `raw/metrics_service/`; maps, lists and times are as Go prints
them, and objects are listed every five minutes. Metrics of nodes, which that recorder does not have, are in
`raw/metrics_node/`.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from srearena.observer.recording.raw_files import OBJECTS
from srearena.snapshots.attributes import parse_value
from srearena.snapshots.layout import metric_object

RAW = "raw"
OBJECT_INTERVAL = 300
"""Seconds between two listings of objects."""
_MAPS = frozenset("ResourceAttributes ScopeAttributes LogAttributes SpanAttributes tags".split())
_LISTS = frozenset(
    "Events.Timestamp Events.Name Events.Attributes "
    "Links.TraceId Links.SpanId Links.TraceState Links.Attributes".split()
)
_TIMES = frozenset({"Timestamp", "TimestampTime"})
_LEFT_OUT = frozenset({"metric_type", "status_code"})  # of services; the tags have the status
Row = dict[str, str]


def apply_itbench_layout(directory: Path) -> None:
    """Rewrite the tables of a recording in place."""
    raw = directory / RAW
    for path in sorted(directory.glob("*.tsv")):
        _rewrite(path, raw / path.name, _sparse_looks if path.name == OBJECTS else iter)
        path.unlink()
    metrics = directory / "metrics"
    for path in sorted(metrics.glob("*.tsv")):
        found = metric_object(path)
        assert found is not None
        _rewrite(path, raw / f"metrics_{found[0]}" / path.name, iter)
        path.unlink()
    if metrics.exists():
        metrics.rmdir()


def _rewrite(source: Path, target: Path, select: Callable[[Iterator[Row]], Iterator[Row]]) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with source.open(encoding="utf-8", newline="") as read, target.open("w", encoding="utf-8", newline="") as write:
        reader = csv.DictReader(read, delimiter="\t")
        columns = [name for name in reader.fieldnames or () if name not in _LEFT_OUT]
        writer = csv.DictWriter(write, columns, extrasaction="ignore", delimiter="\t", lineterminator="\n")
        writer.writeheader()
        texts: dict[str, str] = {}
        for row in select(iter(reader)):
            for name in columns:
                if name in _TIMES:
                    row[name] = go_time(row[name])
                elif name in _MAPS or name in _LISTS:  # few of them differ
                    text = row[name]
                    row[name] = texts[text] if text in texts else texts.setdefault(text, go_text(parse_value(text)))
            writer.writerow(row)


def _sparse_looks(rows: Iterator[Row]) -> Iterator[Row]:
    """The rows of a listing every five minutes and of the last one; deletions are moved to the next listing."""
    due: float | None = None
    look: list[Row] = []
    deleted: list[Row] = []
    seen: set[str] = set()

    def listing(final: bool) -> Iterator[Row]:
        nonlocal due, deleted
        time = look[0]["Timestamp"]
        deleted += [row for row in look if _is_deletion(row)]
        second = datetime.fromisoformat(f"{time[:19]}Z").timestamp()
        due = second if due is None else due
        if second < due and not final:
            return
        while due <= second:
            due += OBJECT_INTERVAL
        present = [row for row in look if not _is_deletion(row)]
        yield from present
        seen.update(_identity(row) for row in present)
        yield from ({**row, "Timestamp": time, "TimestampTime": time[:19]} for row in deleted if _identity(row) in seen)
        deleted = []

    for row in rows:
        if look and row["Timestamp"] != look[0]["Timestamp"]:
            yield from listing(final=False)
            look = []
        look.append(row)
    if look:
        yield from listing(final=True)


def _is_deletion(row: Row) -> bool:
    return row["Body"].startswith('{"type":"DELETED"')


def _identity(row: Row) -> str:
    body = orjson.loads(row["Body"])
    return str((body.get("object") or body)["metadata"]["uid"])


def go_time(text: str) -> str:
    """A time of the tables as Go prints it: fractions without trailing zeros, then the zone."""
    whole, _, fraction = text.partition(".")
    fraction = fraction.rstrip("0")
    return f"{whole}{'.' + fraction if fraction else ''} +0000 UTC"


def go_text(value: Any) -> str:
    """A map or list as Go prints it with `%v`."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{go_text(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(go_text, value))}]"
    return str(value)
