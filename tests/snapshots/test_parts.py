"""Files of metrics are converted when a question first needs them, and the others in the background."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from sre_tools.offline_incident_analysis import Workspace, call_tool
from srearena.snapshots import Snapshot, open_snapshot
from srearena.snapshots.delimited import edges_of
from tests.snapshots import samples

QUESTIONS = [
    ("metric_analysis", {"k8_object_name": "Deployment/payment"}),
    ("metric_analysis", {"object_pattern": "pod/*", "agg": "max", "group_by": "pod_name"}),
    ("metric_analysis", {"filters": {"object_kind": "service"}, "verbosity": "raw"}),
    ("get_metric_anomalies", {"k8_object_name": "Deployment/payment"}),
]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return samples.write_raw(tmp_path / "Scenario-7")


def _converted(cache: Path) -> list[str]:
    return [name for facts in cache.rglob("facts.json") for name in json.loads(facts.read_bytes())["files"]]


def _without_background(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Snapshot, "_convert_rest", lambda *_: None)


def test_only_the_files_of_the_question_are_converted(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _without_background(monkeypatch)
    with open_snapshot(directory, cache=tmp_path / "cache") as snapshot:
        every = snapshot.measured_objects()
        assert len(every) > 1
        relation = snapshot.series_of([every[0]])
        rows = snapshot.rows(f"SELECT DISTINCT object_kind, object_name FROM {relation}")
        assert [(row["object_kind"], row["object_name"]) for row in rows] == [every[0]]
        assert len(_converted(tmp_path / "cache")) == 1
        snapshot.series_of([every[1]])
        assert len(_converted(tmp_path / "cache")) == 2
        count = snapshot.count("metrics")
        files = _converted(tmp_path / "cache")
        assert len(files) == len(set(files)) == len(every), "no file is converted twice"
        assert snapshot.series_of([every[0]]) == "series"
    with open_snapshot(directory, cache=tmp_path / "other") as snapshot:
        assert snapshot.count("metrics") == count


def test_the_others_follow_in_the_background(directory: Path, tmp_path: Path) -> None:
    with open_snapshot(directory, cache=tmp_path / "cache") as snapshot:
        every = snapshot.measured_objects()
        snapshot.series_of([every[0]])
        assert snapshot._background is not None
        snapshot._background.join()
        assert len(_converted(tmp_path / "cache")) == len(every)
        assert snapshot.series_of([every[0]]) == "series"


def test_a_changed_file_is_converted_again(directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _without_background(monkeypatch)
    with open_snapshot(directory, cache=tmp_path / "cache") as snapshot:
        every = snapshot.measured_objects()
        relation = snapshot.series_of(every[:1])
        before = snapshot.rows(f"SELECT sum(samples) AS n FROM {relation}")[0]["n"]
        path = next(p for p in snapshot.layout.metrics if every[0][1] in p.name and p.name.startswith(every[0][0]))
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(lines[:-1]))
        os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))
        relation = snapshot.series_of(every[:1])
        assert snapshot.rows(f"SELECT sum(samples) AS n FROM {relation}")[0]["n"] == before - 1
        assert len(_converted(tmp_path / "cache")) == 1, "the old part is removed"


@pytest.mark.parametrize("layout", sorted(samples.LAYOUTS))
def test_answers_are_the_same_from_some_files_and_from_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str
) -> None:
    _without_background(monkeypatch)
    directory = samples.LAYOUTS[layout](tmp_path / "data")
    for number, (tool, arguments) in enumerate(QUESTIONS):
        replies = []
        for everything in (False, True):
            with Workspace(directory, cache=tmp_path / f"{number}-{everything}") as workspace:
                if everything:
                    workspace.snapshot().table("metrics")
                replies.append(call_tool(workspace, tool, arguments))
        assert replies[0] == replies[1]
        assert replies[0]["data"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("metric\ttimestamp\nx\t1\ny\t2\nz\t3\n", ["1", "3"]),
        ("metric\ttimestamp\nx\t1", ["1", "1"]),
        ("metric\ttimestamp\n", []),
        ("metric\tvalue\nx\t1\n", []),
        ("", []),
    ],
)
def test_edges_of_a_file(tmp_path: Path, text: str, expected: list[str]) -> None:
    path = tmp_path / "pod_a.tsv"
    path.write_text(text)
    assert edges_of(path, ("timestamp", "time")) == expected
