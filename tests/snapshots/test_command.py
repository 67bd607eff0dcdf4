"""The `srearena snapshot` command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.snapshots import samples


def _run(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "srearena", "snapshot", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "SREARENA_CACHE": str(tmp_path / "cache")},
    )


def test_info_shows_every_table(tmp_path: Path) -> None:
    directory = samples.write_raw(tmp_path / "Scenario-7")
    shown = _run(tmp_path, "info", str(directory))
    assert shown.returncode == 0, shown.stderr
    assert "Scenario-7 (raw layout, answer key: flat)" in shown.stdout
    assert "spans            60 rows" in shown.stdout
    assert "payment" not in shown.stdout, "the answer must not be shown"


def test_check_reports_oddities(tmp_path: Path) -> None:
    directory = samples.write_raw(tmp_path / "Scenario-7", truth=False)
    (directory / "otel_traces_raw.tsv").unlink()
    checked = _run(tmp_path, "check", str(directory), "--json")
    assert checked.returncode == 0, checked.stderr
    assert json.loads(checked.stdout)["oddities"] == ["no spans"]


def test_check_fails_where_a_snapshot_cannot_be_used(tmp_path: Path) -> None:
    directory = samples.write_raw(tmp_path / "Scenario-7")
    (directory / "ground_truth.yaml").write_text("groups: [")
    checked = _run(tmp_path, "check", str(directory))
    assert checked.returncode == 1
    assert "problem: ground_truth.yaml cannot be read" in checked.stdout


def test_a_wrong_path_is_one_line(tmp_path: Path) -> None:
    for place in (tmp_path / "nowhere", tmp_path):
        answer = _run(tmp_path, "info", str(place))
        assert answer.returncode == 1
        assert answer.stderr.startswith("Error: no snapshot at") and answer.stderr.count("\n") == 1


def test_clean_removes_the_columns(tmp_path: Path) -> None:
    directory = samples.write_raw(tmp_path / "Scenario-7")
    _run(tmp_path, "info", str(directory))
    assert list((tmp_path / "cache").rglob("*.parquet"))
    assert _run(tmp_path, "clean", str(directory)).returncode == 0
    assert not list((tmp_path / "cache").rglob("*.parquet"))
