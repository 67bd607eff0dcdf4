"""Samples stored as series: none is lost, points are sorted, and summaries equal those computed from the samples."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from srearena.snapshots import building, open_snapshot, series
from tests.snapshots import samples

HEADER = ["metric_name", "timestamp", "value", "pod_name", "namespace", "tags"]
START = datetime(2025, 6, 1, 10, tzinfo=UTC)
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["cpu_total", "memory_bytes"]),
        st.sampled_from(["a", "b"]),  # a label
        st.none() | st.integers(0, 9),  # seconds after START
        st.sampled_from(["1", "2.5", "-3", "1e3", "0", "NaN", "+Inf", "", "what"]),
    ),
    min_size=1,
    max_size=40,
)


def _write(place: Path, rows: list[tuple[str, str, int | None, str]]) -> Path:
    (place / "metrics").mkdir(parents=True, exist_ok=True)
    cells = [
        {
            "metric_name": metric,
            "timestamp": "" if second is None else (START + timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "value": value,
            "namespace": "shop",
            "tags": repr({"container": label}),
        }
        for metric, label, second, value in rows
    ]
    samples.write_tsv(place / "metrics" / "pod_cart-1_raw.tsv", HEADER, cells)
    return place


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS)
def test_no_sample_is_lost_and_summaries_hold(tmp_path_factory: pytest.TempPathFactory, rows: Any) -> None:
    place = tmp_path_factory.mktemp("series")
    with open_snapshot(_write(place / "Scenario-1", rows), cache=place / "cache") as snapshot:
        stored = sorted(
            (s.metric, str(s.labels["container"]), s.time.isoformat() if s.time else "", repr(s.value))
            for s in snapshot.metrics()
        )
        series = {(row["metric"], row["labels"]): row for row in snapshot.rows("SELECT * FROM series")}
        assert snapshot.count("metrics") == len(rows)
    written = sorted(
        (m, label, (START + timedelta(seconds=t)).isoformat() if t is not None else "", repr(_number(v)))
        for m, label, t, v in rows
    )
    assert stored == written
    for (metric, labels), row in series.items():
        expected = [r for r in rows if (r[0], repr({"container": r[1]})) == (metric, labels)]
        assert row["samples"] == len(expected)
        usable = [
            (t, n) for _, _, t, v in expected if t is not None and (n := _number(v)) is not None and math.isfinite(n)
        ]
        # Of several points at one moment the file does not say which is first: any of them may count.
        assert row["points"] <= len(usable)
        if len({t for t, _ in usable}) == len(usable) == len(expected):
            values = [n for _, n in sorted(usable)]
            steps = pairwise(values)
            assert row["points"] == len(values)
            assert row["mean"] == pytest.approx(sum(values) / len(values))
            assert (row["minimum"], row["maximum"], row["last_value"]) == (min(values), max(values), values[-1])
            assert row["increase"] == pytest.approx(sum(b - a if b >= a else b for a, b in steps))
            assert row["times"] == sorted(row["times"])


def test_a_file_too_large_for_one_round_is_read_in_several(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(f"metric_{index % 7}", "a", index, "1") for index in range(50)]
    place = _write(tmp_path / "Scenario-1", rows)
    with open_snapshot(place, cache=tmp_path / "one") as snapshot:
        expected = list(snapshot.metrics())
    monkeypatch.setattr(series, "_BATCH_BYTES", 500)
    with open_snapshot(place, cache=tmp_path / "two") as snapshot:
        cached = snapshot.table("metrics")
        assert cached is not None and len(list(cached.path.rglob("*.parquet"))) > 2
        assert list(snapshot.metrics()) == expected
        assert snapshot.count("metrics") == 50


@pytest.mark.parametrize("spelling", sorted(samples.SPELLINGS))
def test_resource_attributes_are_equal_from_the_lookup_table_and_from_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spelling: str
) -> None:
    place = samples.write_raw(tmp_path / "Scenario-1", spelling=spelling)
    with open_snapshot(place, cache=tmp_path / "one") as snapshot:
        logs, spans = list(snapshot.logs()), snapshot.rows("SELECT * FROM spans ORDER BY trace_id, span_id")
    assert {log.pod for log in logs} == {samples.PAYMENT_POD, samples.CHECKOUT_POD}
    monkeypatch.setattr(building, "_SAMPLED_ROWS", 1)
    with open_snapshot(place, cache=tmp_path / "two") as snapshot:
        assert list(snapshot.logs()) == logs
        assert snapshot.rows("SELECT * FROM spans ORDER BY trace_id, span_id") == spans
