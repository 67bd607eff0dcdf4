"""Metric samples stored as series: one row per series, with its points in lists and precomputed summaries.

All samples of an object are in one file, so files are converted a few at a time; a file too large for that is read
several times, for a part of its metrics each. Points are sorted by time. Summaries ignore points without a time or a
finite value, and all but the first point at one time; the lists contain every point.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from srearena.snapshots.tables import column_expressions, identifier

SERIES: dict[str, str] = {
    "object_kind": "VARCHAR",
    "object_name": "VARCHAR",
    "metric": "VARCHAR",
    "namespace": "VARCHAR",
    "le": "VARCHAR",
    "metric_type": "VARCHAR",
    "status_code": "VARCHAR",
    "labels": "VARCHAR",
    "samples": "BIGINT",
    "points": "BIGINT",
    "first_time": "TIMESTAMP",
    "last_time": "TIMESTAMP",
    "mean": "DOUBLE",
    "minimum": "DOUBLE",
    "maximum": "DOUBLE",
    "last_value": "DOUBLE",
    "increase": "DOUBLE",
    "times": "TIMESTAMP[]",
    "values": "DOUBLE[]",
}
SAMPLES_VIEW = """
CREATE OR REPLACE VIEW metrics AS SELECT object_kind, object_name, metric, unnest(times) AS time,
  unnest("values") AS value, namespace, le, metric_type, status_code, labels FROM series
"""
# Bytes of the files whose samples are in memory at once; DuckDB reads a batch of many files with a thread per file.
_BATCH_BYTES = 240_000_000
# Whether times strictly increase. Such lists need neither sorting nor filtering point by point.
_INCREASING = """(times[1] IS NOT NULL
    AND len(list_filter(times, lambda x, i: i = 1 OR x > times[i - 1])) = len(times))"""
_FINITE = '(len(list_filter("values", lambda x: coalesce(isfinite(x), false))) = len("values"))'
_IDENTITY = ("object_kind", "object_name", "metric", "namespace", "le", "metric_type", "status_code", "labels")
_IDENTITY_COLUMNS = frozenset("metric_name metric namespace tags labels bucket_le le metric_type status_code".split())


def batches(paths: Sequence[Path], most: int | None = None) -> Iterator[tuple[list[Path], int]]:
    """Files to read together, up to `most` bytes, and in how many rounds."""
    most = most or _BATCH_BYTES
    batch: list[Path] = []
    size = 0
    for path in paths:
        file_size = path.stat().st_size
        if batch and size + file_size > most:
            yield batch, 1
            batch, size = [], 0
        batch.append(path)
        size += file_size
        if file_size > _BATCH_BYTES:
            yield batch, -(-size // _BATCH_BYTES)
            batch, size = [], 0
    if batch:
        yield batch, 1


def series_selection(header: list[str], relation: str, number: int, rounds: int) -> str:
    """The SELECT that groups the samples of files into series, in round `number` of `rounds`."""
    expressions = column_expressions("metrics", header)
    part = f"WHERE hash({expressions['metric']}) % {rounds} = {number}" if rounds > 1 else ""
    # Group by the raw text of the file and parse it once per series.
    raw = ", ".join([*(identifier(name) for name in header if name.lower() in _IDENTITY_COLUMNS), "filename"])
    identity = ", ".join(f"CAST({expressions[name]} AS VARCHAR) AS {name}" for name in _IDENTITY)
    samples = f"""SELECT {raw}, list(CAST({expressions["time"]} AS TIMESTAMP)) AS times,
        list(CAST({expressions["value"]} AS DOUBLE)) AS "values" FROM {relation} {part} GROUP BY {raw}"""
    # Threads return rows in any order. Most lists are sorted nevertheless; only the others are sorted here.
    ordered = f"""SELECT * REPLACE (CASE WHEN increasing THEN times ELSE list_sort(times) END AS times,
        CASE WHEN increasing THEN "values" ELSE list_select("values", list_grade_up(times)) END AS "values")
        FROM (SELECT *, {_INCREASING} AS increasing FROM ({samples}))"""
    series = f"""SELECT {identity}, times, "values",
        {_FINITE} AND CASE WHEN increasing THEN true ELSE {_INCREASING} END AS plain FROM ({ordered})"""
    return f"{_summary_selection(series)} ORDER BY object_kind, object_name, metric, labels, le, status_code"


def summaries(series: str, begin: datetime | None = None, end: datetime | None = None) -> str:
    """The SELECT that summarises series (identity columns, `times`, `values`), or a time range of them."""
    plain = f"{_FINITE} AND {_INCREASING}" if begin is None and end is None else "false"
    return _summary_selection(f"SELECT *, {plain} AS plain FROM ({series})", begin, end)


def _summary_selection(series: str, begin: datetime | None = None, end: datetime | None = None) -> str:
    """The summaries of series with a column `plain`: true if no point has to be ignored."""
    usable = 'times[i] IS NOT NULL AND isfinite("values"[i]) AND (i = 1 OR times[i] IS DISTINCT FROM times[i - 1])'
    for bound, sign in ((begin, ">="), (end, "<=")):
        if bound is not None:
            usable += f" AND times[i] {sign} TIMESTAMP '{bound.isoformat(' ')}'"
    return f"""
    SELECT {", ".join(_IDENTITY)}, samples, len(v) AS points, t[1] AS first_time, t[-1] AS last_time,
      list_avg(v) AS mean, list_min(v) AS minimum, list_max(v) AS maximum, v[-1] AS last_value,
      coalesce(list_sum(list_transform(v[2:],
        lambda x, i: CASE WHEN x >= v[i] THEN x - v[i] ELSE x END)), 0) AS increase,
      times, "values"
    FROM (SELECT *, CASE WHEN plain THEN times ELSE list_transform(kept, lambda i: times[i]) END AS t,
      CASE WHEN plain THEN "values" ELSE list_transform(kept, lambda i: "values"[i]) END AS v
    FROM (SELECT *, CASE WHEN plain THEN [] ELSE list_filter(range(1, samples + 1), lambda i:
      coalesce({usable}, false)) END AS kept
    FROM (SELECT *, len(times) AS samples FROM ({series}))))
    """


def empty_series() -> str:
    """The SELECT of the series table without rows."""
    columns = ", ".join(f"CAST(NULL AS {kind}) AS {identifier(name)}" for name, kind in SERIES.items())
    return f"SELECT {columns} WHERE false"
