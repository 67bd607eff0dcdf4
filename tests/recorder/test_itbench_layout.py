"""`srearena record --layout itbench`: the layout of ITBench's present recorder, with the same answers."""

from __future__ import annotations

import csv
import shutil
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from sre_tools.offline_incident_analysis import Workspace, all_tools, call_tool
from srearena.cli import cli
from srearena.observer.recording.itbench_layout import apply_itbench_layout, go_text, go_time
from srearena.observer.recording.itbench_names import NAMESPACES
from srearena.observer.recording.raw_files import OBJECTS
from srearena.snapshots.attributes import parse_value
from tests.arena.episodes import PORT
from tests.snapshots import samples

CALLS: dict[str, dict[str, Any]] = {
    "metric_analysis": {"k8_object_name": "Deployment/payment"},
    "get_metric_anomalies": {"k8_object_name": "Deployment/payment"},
    "topology_analysis": {"entity": "payment"},
    "get_k8_spec": {"k8_object_name": "shop/Deployment/payment"},
    "get_context_contract": {"k8_object": "shop/Deployment/payment"},
}


def test_the_sample_incident_has_the_same_answers_in_both_layouts(tmp_path: Path) -> None:
    ours = samples.write_raw(tmp_path / "ours" / "Scenario-7")
    theirs = tmp_path / "theirs" / "Scenario-7"
    shutil.copytree(ours, theirs)
    apply_itbench_layout(theirs)
    assert sorted(path.name for path in theirs.iterdir()) == ["alerts", "ground_truth.yaml", "raw"]
    with (
        Workspace(ours, cache=tmp_path / "cache") as first,
        Workspace(theirs, cache=tmp_path / "cache") as second,
        Workspace(theirs / "raw", cache=tmp_path / "cache") as inside,
    ):
        for tool in all_tools():
            expected = call_tool(first, tool, CALLS.get(tool, {}))
            assert call_tool(second, tool, CALLS.get(tool, {})) == expected, tool
            assert call_tool(inside, tool, CALLS.get(tool, {})) == expected, tool


def _looks(path: Path) -> list[str]:
    with path.open(newline="") as handle:
        return sorted({row["Timestamp"] for row in csv.DictReader(handle, delimiter="\t")})


def test_a_problem_is_recorded_in_that_layout_and_with_those_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(NAMESPACES, "corner-shop", "otel-demo")
    out = tmp_path / "Scenario-1"
    words = ["record", PORT, "--out", str(out), "--seed", "1", "--before", "180", "--after", "180"]
    done = CliRunner().invoke(cli, [*words, "--layout", "itbench", "--itbench-names"])
    assert done.exit_code == 0, done.output
    key = yaml.safe_load((tmp_path / "Scenario-1-answers" / "ground_truth.yaml").read_text())
    assert {group["namespace"] for group in key["groups"]} == {"otel-demo"}
    raw = out / "raw"
    assert sorted(path.name for path in out.iterdir()) == ["alerts", "raw"]
    assert {"k8s_events_raw.tsv", OBJECTS, "metrics_pod"} <= {path.name for path in raw.iterdir()}
    times = [datetime.strptime(look, "%Y-%m-%d %H:%M:%S.%f +0000 UTC") for look in _looks(raw / OBJECTS)]  # noqa: DTZ007
    *regular, last = [(after - before).total_seconds() for before, after in pairwise(times)]
    assert regular and set(regular) == {300.0} and last <= 300.0
    with Workspace(out, cache=tmp_path / "cache") as workspace:
        changes = call_tool(workspace, "k8s_spec_change_analysis", {})
        assert "9999" in str(changes["data"])


@pytest.mark.parametrize(
    "value", [{}, {"b": "2", "a": "1"}, {"url": "http://a:80/x", "n": "3"}, ["a", "b"], [{"k": "v"}, {"l": "w"}]]
)
def test_go_text_is_read_back(value: Any) -> None:
    assert parse_value(go_text(value)) == value


def test_go_prints_keys_in_order_and_times_without_trailing_zeros() -> None:
    assert go_text({"b": "2", "a": ["x", "y"]}) == "map[a:[x y] b:2]"
    assert go_time("2026-01-05 09:00:01.250000000") == "2026-01-05 09:00:01.25 +0000 UTC"
    assert go_time("2026-01-05 09:00:01.000000000") == go_time("2026-01-05 09:00:01") == "2026-01-05 09:00:01 +0000 UTC"
