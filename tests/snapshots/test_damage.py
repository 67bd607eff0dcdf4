"""Damaged files: truncated, partly empty, with mixed precisions, with fields of megabytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from srearena.snapshots import open_snapshot
from srearena.snapshots.inspection import inspect
from tests.snapshots import samples


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return samples.write_raw(tmp_path / "Scenario-7")


def _bodies(directory: Path, tmp_path: Path) -> list[str | None]:
    with open_snapshot(directory, cache=tmp_path / "cache") as snapshot:
        return [log.body for log in snapshot.logs()]


def test_a_file_cut_off_in_its_last_line_keeps_every_whole_row(directory: Path, tmp_path: Path) -> None:
    path = directory / "otel_logs_raw.tsv"
    path.write_bytes(path.read_bytes()[:-40])
    with open_snapshot(directory, cache=tmp_path / "cache") as snapshot:
        assert len(list(snapshot.logs())) == 29
        assert any("cut off" in line for line in inspect(snapshot).oddities)


def test_a_file_cut_off_inside_a_quoted_field_is_read_up_to_there(directory: Path, tmp_path: Path) -> None:
    path = directory / "otel_logs_raw.tsv"
    whole = path.read_text()
    path.write_text(whole[: whole.rindex("for a ") + 4])
    bodies = _bodies(directory, tmp_path)
    assert len(bodies) == 28
    assert bodies[0] == 'order 1000 placed\nfor a "good" customer'


@pytest.mark.parametrize("size", [200_000, 3_000_000, 9_000_000])
def test_fields_beyond_the_limits_of_csv_readers_are_whole(directory: Path, tmp_path: Path, size: int) -> None:
    huge = "x" * size
    row = {"Timestamp": samples.nanos(0), "ServiceName": "checkout", "Body": huge}
    samples.write_tsv(directory / "otel_logs_raw.tsv", samples.RAW_LOG, [row])
    assert _bodies(directory, tmp_path) == [huge]


def test_bytes_that_are_no_text_do_not_stop_the_reader(directory: Path, tmp_path: Path) -> None:
    path = directory / "otel_logs_raw.tsv"
    path.write_bytes(path.read_bytes().replace(b"order 1003", b"order \xff\xfe\x00"))
    bodies = _bodies(directory, tmp_path)
    assert len(bodies) == 29
    assert bodies[3] is not None and bodies[3].startswith("order ��")


@pytest.mark.parametrize(
    "text",
    [
        "2025-06-01 10:00:00.5",
        "2025-06-01T10:00:00.500Z",
        "2025-06-01 10:00:00.500000000",
        "2025-06-01T12:00:00.5+02:00",
        "2025-06-01 10:00:00.5 +0000 UTC",
        "1748772000.5",
        "1748772000500",
        "1748772000500000",
        "1748772000500000000",
    ],
)
def test_every_spelling_of_an_instant_is_the_same_instant(directory: Path, tmp_path: Path, text: str) -> None:
    row = {"Timestamp": text, "ServiceName": "checkout", "Body": "x"}
    samples.write_tsv(directory / "otel_logs_raw.tsv", samples.RAW_LOG, [row])
    with open_snapshot(directory, cache=tmp_path / "cache") as snapshot:
        assert [log.time for log in snapshot.logs()] == [samples.START.replace(microsecond=500_000)]


def test_missing_empty_and_headless_files_leave_empty_tables(directory: Path, tmp_path: Path) -> None:
    (directory / "otel_logs_raw.tsv").write_text("")
    (directory / "otel_traces_raw.tsv").unlink()
    samples.write_tsv(directory / "k8s_events_raw.tsv", samples.RAW_LOG, [])
    with open_snapshot(directory, cache=tmp_path / "cache") as snapshot:
        assert (list(snapshot.logs()), list(snapshot.spans()), list(snapshot.events())) == ([], [], [])
        oddities = inspect(snapshot).oddities
    assert {"no spans", "otel_logs_raw.tsv: empty", "events: no rows"} <= set(oddities)


def test_an_object_whose_body_is_no_json_is_reported_and_the_others_are_read(directory: Path, tmp_path: Path) -> None:
    path = directory / "k8s_objects_raw.tsv"
    path.write_text(path.read_text().replace('"{""apiVersion"": ""v1"", ""kind"": ""ConfigMap""', '"{broken', 1))
    with open_snapshot(directory, cache=tmp_path / "cache") as snapshot:
        assert sum(1 for _ in snapshot.objects()) == 11
        assert any("objects: 1 rows without kind or name" in line for line in inspect(snapshot).oddities)


def test_an_alert_file_that_is_no_json_is_reported_and_the_others_count(directory: Path, tmp_path: Path) -> None:
    (directory / "alerts" / "alerts_at_2025-06-01T10-30-00.000000.json").write_text('[{"labels":')
    with open_snapshot(directory, cache=tmp_path / "cache") as snapshot:
        assert sum(1 for _ in snapshot.alerts()) == 23
        assert any("not readable as JSON" in line for line in inspect(snapshot).oddities)


def test_data_is_never_executed(directory: Path, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    evil = f"__import__('pathlib').Path({str(trap)!r}).touch()"
    row = {"Timestamp": samples.nanos(0), "ServiceName": "a", "Body": evil, "LogAttributes": f"{{'a': {evil}}}"}
    samples.write_tsv(directory / "otel_logs_raw.tsv", samples.RAW_LOG, [row])
    with open_snapshot(directory, cache=tmp_path / "cache") as snapshot:
        assert [log.attributes for log in snapshot.logs()] == [{}]
    assert not trap.exists()
