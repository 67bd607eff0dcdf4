"""The column cache: built once, rebuilt when the source changes, safe for concurrent processes, removable."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from srearena.snapshots import Snapshot, open_snapshot
from tests.snapshots import samples


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return samples.write_raw(tmp_path / "Scenario-7")


def _columns(tmp_path: Path, table: str) -> list[Path]:
    return sorted((tmp_path / "cache").glob(f"snapshots/*/{table}-*.parquet"))


def test_a_table_is_built_on_first_use_and_cached(directory: Path, tmp_path: Path) -> None:
    with open_snapshot(directory, cache=tmp_path / "cache") as snapshot:
        assert _columns(tmp_path, "logs") == []
        assert snapshot.count("logs") == 29
    files = [(path, path.stat().st_mtime_ns) for path in _columns(tmp_path, "logs")]
    assert len(files) == 1
    assert _columns(tmp_path, "spans") == []
    with open_snapshot(directory, cache=tmp_path / "cache") as snapshot:
        assert snapshot.count("logs") == 29
    assert [(path, path.stat().st_mtime_ns) for path in _columns(tmp_path, "logs")] == files


def test_a_changed_source_is_read_again_and_its_old_columns_are_removed(directory: Path, tmp_path: Path) -> None:
    path = directory / "otel_logs_raw.tsv"
    with open_snapshot(directory, cache=tmp_path / "cache") as snapshot:
        assert snapshot.count("logs") == 29
        before = _columns(tmp_path, "logs")
        row = {"Timestamp": samples.nanos(0), "ServiceName": "a", "Body": "x"}
        samples.write_tsv(path, samples.RAW_LOG, [row])
        assert snapshot.count("logs") == 1
        assert [log.body for log in snapshot.logs()] == ["x"]
    after = _columns(tmp_path, "logs")
    assert len(after) == 1 and after != before


def test_content_counts_even_where_size_and_time_are_the_same(directory: Path, tmp_path: Path) -> None:
    path = directory / "otel_logs_raw.tsv"
    with open_snapshot(directory, cache=tmp_path / "cache") as snapshot:
        snapshot.count("logs")
    status = path.stat()
    path.write_bytes(path.read_bytes().replace(b"order 1000", b"order 9999"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    with open_snapshot(directory, cache=tmp_path / "cache") as snapshot:
        assert "9999" in (next(snapshot.logs()).body or "")


def test_concurrent_processes_all_get_the_whole_table(directory: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from srearena.snapshots import open_snapshot; "
        "s = open_snapshot(sys.argv[1], cache=sys.argv[2]); print(s.count('logs'), len(list(s.logs())))"
    )
    command = [sys.executable, "-c", code, str(directory), str(tmp_path / "cache")]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [process.communicate(timeout=60)[0].split() for process in processes] == [["29", "29"]] * 3
    assert len(_columns(tmp_path, "logs")) == 1
    leftovers = [p.name for p in (tmp_path / "cache").rglob("*") if "partial" in p.name or "repaired" in p.name]
    assert leftovers == []


def test_removing_the_columns_loses_nothing(directory: Path, tmp_path: Path) -> None:
    with open_snapshot(directory, cache=tmp_path / "cache") as snapshot:
        snapshot.count("logs")
        snapshot.cache.remove()
    assert _columns(tmp_path, "logs") == []
    with open_snapshot(directory, cache=tmp_path / "cache") as snapshot:
        assert snapshot.count("logs") == 29


def test_the_snapshot_itself_is_never_written_to(directory: Path, tmp_path: Path) -> None:
    before = sorted((path, path.stat().st_mtime_ns) for path in directory.rglob("*"))
    with open_snapshot(directory, cache=tmp_path / "cache") as snapshot:
        for table in ("alerts", "events", "objects", "logs", "spans", "metrics"):
            snapshot.count(table)
    assert sorted((path, path.stat().st_mtime_ns) for path in directory.rglob("*")) == before


def test_derived_results_are_cached_while_their_tables_are_unchanged(directory: Path, tmp_path: Path) -> None:
    calls = []

    def services(snapshot: Snapshot) -> list[str]:
        calls.append(snapshot)
        return [row["service"] for row in snapshot.rows("SELECT DISTINCT service FROM logs ORDER BY 1")]

    with open_snapshot(directory, cache=tmp_path / "cache") as snapshot:
        first = snapshot.derived(services, "logs")
        assert snapshot.derived(services, "logs") is first and len(calls) == 1
        row = {"Timestamp": samples.nanos(0), "ServiceName": "newcomer", "Body": "x"}
        samples.write_tsv(directory / "otel_logs_raw.tsv", samples.RAW_LOG, [row])
        assert snapshot.derived(services, "logs") == ["newcomer"] != first
