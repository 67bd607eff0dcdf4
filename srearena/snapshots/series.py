"""Samples of metrics, kept as series: one row for each, with its points in lists and what is asked of it most.

Samples of one object lie in one file, so files can be turned into series a few at a time; a file too large for that is
gone through several times, for a part of its metrics each. Points are in order of time. What a series is summarised by
leaves out points without a time or a finite value, and all but the first at one moment; the lists leave out nothing.
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
_BATCH_BYTES = (
    240_000_000  # of files whose samples are in memory at once; with many files DuckDB has one thread for each
)
# Every moment later than the one before. Lists that are so need neither be sorted nor gone through point by point.
_INCREASING = """(times[1] IS NOT NULL
    AND len(list_filter(times, lambda x, i: i = 1 OR x > times[i - 1])) = len(times))"""
_FINITE = '(len(list_filter("values", lambda x: coalesce(isfinite(x), false))) = len("values"))'
_IDENTITY = ("object_kind", "object_name", "metric", "namespace", "le", "metric_type", "status_code", "labels")
_TELLING = frozenset("metric_name metric namespace tags labels bucket_le le metric_type status_code".split())


def batches(paths: Sequence[Path]) -> Iterator[tuple[list[Path], int]]:
    """Files to be read together, and in how many rounds."""
    batch: list[Path] = []
    size = 0
    for path in paths:
        own = path.stat().st_size
        if batch and size + own > _BATCH_BYTES:
            yield batch, 1
            batch, size = [], 0
        batch.append(path)
        size += own
        if own > _BATCH_BYTES:
            yield batch, -(-size // _BATCH_BYTES)
            batch, size = [], 0
    if batch:
        yield batch, 1


def grouping(header: list[str], relation: str, number: int, rounds: int) -> str:
    """The SELECT that brings the samples of files together into series, in one of so many rounds."""
    expressions = column_expressions("metrics", header)
    part = f"WHERE hash({expressions['metric']}) % {rounds} = {number}" if rounds > 1 else ""
    # What tells series apart is text in the file; what that means is worked out once for each series.
    raw = ", ".join([*(identifier(name) for name in header if name.lower() in _TELLING), "filename"])
    telling = ", ".join(f"CAST({expressions[name]} AS VARCHAR) AS {name}" for name in _IDENTITY)
    samples = f"""SELECT {raw}, list(CAST({expressions["time"]} AS TIMESTAMP)) AS times,
        list(CAST({expressions["value"]} AS DOUBLE)) AS "values" FROM {relation} {part} GROUP BY {raw}"""
    # Threads come back in any order: most lists are sorted all the same, and only the others are put in order.
    ordered = f"""SELECT * REPLACE (CASE WHEN increasing THEN times ELSE list_sort(times) END AS times,
        CASE WHEN increasing THEN "values" ELSE list_select("values", list_grade_up(times)) END AS "values")
        FROM (SELECT *, {_INCREASING} AS increasing FROM ({samples}))"""
    series = f"""SELECT {telling}, times, "values",
        {_FINITE} AND CASE WHEN increasing THEN true ELSE {_INCREASING} END AS plain FROM ({ordered})"""
    return f"{_summaries(series)} ORDER BY object_kind, object_name, metric, labels, le, status_code"


def summarised(series: str, begin: datetime | None = None, end: datetime | None = None) -> str:
    """The SELECT that sums series up (`times` and `values` beside what tells them apart), or a time range of them."""
    plain = f"{_FINITE} AND {_INCREASING}" if begin is None and end is None else "false"
    return _summaries(f"SELECT *, {plain} AS plain FROM ({series})", begin, end)


def _summaries(series: str, begin: datetime | None = None, end: datetime | None = None) -> str:
    """The same of series that are known to be `plain`, with nothing to leave out, or not to be."""
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


def no_series() -> str:
    columns = ", ".join(f"CAST(NULL AS {kind}) AS {identifier(name)}" for name, kind in SERIES.items())
    return f"SELECT {columns} WHERE false"
