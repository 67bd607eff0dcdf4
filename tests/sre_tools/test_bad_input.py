"""Bad snapshots and bad arguments: a clear error, never a crash or a hang."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sre_tools.offline_incident_analysis import ToolError, Workspace, all_tools, call_tool
from srearena.snapshots.inspection import inspect
from tests.snapshots import samples
from tests.sre_tools.conftest import Ask

NAMED: dict[str, Any] = {"k8_object_name": "Deployment/payment", "entity": "payment", "k8_object": "payment"}
TABLES = ["k8s_events_raw.tsv", "k8s_objects_raw.tsv", "otel_logs_raw.tsv", "otel_traces_raw.tsv", "metrics", "alerts"]


def _call_every_tool(directory: Path, tmp_path: Path) -> None:
    """Every tool answers or explains."""
    with Workspace(directory, cache=tmp_path / "cache") as workspace:
        for name, tool in all_tools().items():
            required = tool.input_schema.get("required", [])
            try:
                reply = call_tool(workspace, name, {key: NAMED[key] for key in required})
            except ToolError as problem:
                assert len(str(problem)) > 20, name
            else:
                assert reply["tool"] == name


@pytest.mark.parametrize("missing", TABLES)
def test_a_snapshot_without_a_table(directory: Path, tmp_path: Path, missing: str) -> None:
    place = directory / missing
    if place.is_dir():
        for path in place.iterdir():
            path.unlink()
        place.rmdir()
    else:
        place.unlink()
    _call_every_tool(directory, tmp_path)


def test_an_empty_snapshot(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    (empty / "alerts").mkdir(parents=True)
    (empty / "alerts" / "alerts_at_2025-06-01T10-00-00.000000.json").write_text("[]")
    _call_every_tool(empty, tmp_path)


def test_a_corrupt_snapshot(directory: Path, tmp_path: Path) -> None:
    for path in [p for p in directory.rglob("*") if p.is_file()]:
        content = path.read_bytes()
        path.write_bytes(content[: len(content) // 3] + b'\xff\x00"\t"\n' + content[len(content) // 2 : -7])
    _call_every_tool(directory, tmp_path)


def test_files_that_are_something_else(tmp_path: Path) -> None:
    directory = tmp_path / "odd"
    (directory / "metrics").mkdir(parents=True)
    for name in (*TABLES[:4], "metrics/pod_x_raw.tsv"):
        (directory / name).write_text("a\tb\n1\t2\n")
    _call_every_tool(directory, tmp_path)


ODD: tuple[Any, ...] = (7, "x", [1], {"a": 1}, None)


def test_objects_and_events_of_any_shape(directory: Path, tmp_path: Path) -> None:
    bodies: list[Any] = [*ODD]
    for odd in ODD:
        bodies += [{"kind": "Pod", "metadata": odd}, {"type": "DELETED", "object": odd}]
        meta = {"name": "odd", "namespace": "shop", "labels": odd, "managedFields": odd}
        meta["ownerReferences"] = [odd, {"kind": odd, "name": odd}, {"kind": "Node", "name": odd}]
        specs = [odd, *({key: odd} for key in ("selector", "containers", "volumes", "scaleTargetRef", "podSelector"))]
        specs += [{"containers": [odd, {"name": odd, "env": odd, "envFrom": [odd]}]}, {"selector": {"namespaces": odd}}]
        for kind in ("Pod", "Service", "Deployment", "NetworkPolicy", "HorizontalPodAutoscaler", "NetworkChaos", odd):
            common = {"apiVersion": "chaos-mesh.org/v1", "kind": kind, "metadata": meta}
            bodies += [{**common, "spec": spec} for spec in specs]
    path = directory / "k8s_objects_raw.tsv"
    rows = [{"Timestamp": samples.nanos(30), "Body": json.dumps(body)} for body in bodies]
    samples.write_tsv(path, samples.RAW_LOG, rows)
    events = []
    for count in (2**63 - 1, 2**63 - 2, -5, 1e300, "many"):
        for time in ("0001-01-01T00:00:00Z", "99999-01-01T00:00:00Z", samples.stamp(3)):
            about = {"involvedObject": {"kind": "Pod", "name": "p"}, "type": "Warning", "reason": "Odd"}
            event = {**about, "count": count, "lastTimestamp": time, "firstTimestamp": time}
            events.append({"Timestamp": samples.nanos(3), "Body": json.dumps({"type": "ADDED", "object": event})})
    samples.write_tsv(directory / "k8s_events_raw.tsv", samples.RAW_LOG, events)
    _call_every_tool(directory, tmp_path)
    with Workspace(directory, cache=tmp_path / "cache") as workspace:
        rows = call_tool(workspace, "event_analysis", {"group_by": "event_time"})["data"]
        assert {row["event_time"][:10] for row in rows} == {"2025-06-01"}, "the year 1 stands for no time"


def test_hostile_files_are_reported_and_hide_nothing_else(directory: Path, tmp_path: Path) -> None:
    (directory / "metrics" / "loop").symlink_to("loop")
    (directory / "lite").symlink_to("lite")
    odd_name = os.fsencode(directory / "metrics") + b"/pod_\xff\xfe_raw.tsv"
    shutil.copy(next((directory / "metrics").glob("pod_*")), odd_name)
    os.mkfifo(directory / "alerts" / "alerts_at_2025-06-01T10-02-30.000000.json")
    deep = '{"alerts": [{"labels": {"alertname": "deep", "a": ' + "[" * 900 + "]" * 900 + "}}]}"
    (directory / "alerts" / "alerts_at_2025-06-01T10-02-31.000000.json").write_text(deep)
    (directory / "alerts" / "alerts_at_2025-06-01T10-02-32.000000.json").write_text("[" * 200_000)
    columns = ("\t".join(f"column{n}" for n in range(50_000)) + "\n") * 2
    (directory / "k8s_events_raw.tsv").write_text(columns)
    odd_times = ("9999999999999999999", "99999999999999999", "294247-01-01 00:00:00", "-5000-01-01", "inf", "1e300")
    rows = [{"Timestamp": time, "ServiceName": "odd", "Body": "late"} for time in odd_times]
    samples.write_tsv(tmp_path / "odd.tsv", samples.RAW_LOG, rows)
    with (directory / "otel_logs_raw.tsv").open("a") as file:
        file.write((tmp_path / "odd.tsv").read_text().partition("\n")[2])
    _call_every_tool(directory, tmp_path)
    with Workspace(directory, cache=tmp_path / "cache") as workspace:
        assert call_tool(workspace, "alert_summary")["data"]
        assert call_tool(workspace, "log_analysis")["summary"]["total_logs"] == 29 + len(odd_times)
        oddities = "\n".join(inspect(workspace.snapshot()).oddities)
    for report in ("loop: a link", "not UTF-8", "nested too deeply", "it has 50000 columns", "not readable as JSON"):
        assert report in oddities


def test_a_file_of_bytes_does_not_hide_the_others(directory: Path, tmp_path: Path) -> None:
    (directory / "otel_traces_raw.tsv").write_bytes(Random(5).randbytes(200_000))
    with Workspace(directory, cache=tmp_path / "cache") as workspace:
        assert call_tool(workspace, "change_impact")["data"]
        assert call_tool(workspace, "incident_timeline")["data"]


@pytest.mark.parametrize(
    ("tool", "arguments", "hint"),
    [
        ("get_k8_spec", {"k8_object_name": "Deployment/paymet"}, "did you mean Deployment/payment"),
        ("get_metric_anomalies", {"k8_object_name": "Pod/nothing"}, "no metrics of"),
        ("metric_analysis", {"metric_names": ["container_cpu"]}, "nearest: container_cpu_usage_seconds_total"),
        ("metric_analysis", {"eval": "x = nothing / 2"}, "no metric 'nothing'"),
        ("metric_analysis", {"group_by": "colour"}, "there are deployment"),
        ("topology_analysis", {"entity": "paymnt"}, "nearest: payment"),
        ("log_analysis", {"service_name": "paymnt"}, "nearest: payment"),
        ("get_trace_error_tree", {"service_name": "paymnt"}, "nearest: payment"),
        ("get_trace_error_tree", {"delta_time": "soon"}, "write 30s, 5m"),
        ("event_analysis", {"start_time": "yesterday"}, "write it as"),
        ("event_analysis", {"start_time": "2025-06-02", "end_time": "2025-06-01"}, "is after end_time"),
        ("event_analysis", {"colour": "red"}, "It takes: "),
        ("alert_analysis", {"filters": {"labels.a'b": "x"}}, "is no label"),
        ("get_context_contract", {"k8_object": "checkout", "page": 9}, "there are 2 pages"),
    ],
)
def test_errors_tell_what_to_call_instead(ask: Ask, tool: str, arguments: dict[str, Any], hint: str) -> None:
    with pytest.raises(ToolError) as caught:
        ask(tool, **arguments)
    assert hint in str(caught.value)


def test_a_regular_expression_cannot_hang_the_server(directory: Path, tmp_path: Path) -> None:
    row = {"Timestamp": samples.nanos(0), "ServiceName": "a", "Body": "a" * 50_000 + "b"}
    samples.write_tsv(directory / "otel_logs_raw.tsv", samples.RAW_LOG, [row])
    with Workspace(directory, cache=tmp_path / "cache") as workspace:
        begun = monotonic()
        for pattern in ("(a+)+$", "(a|aa)+$", "(.*a){25}$"):
            reply = call_tool(workspace, "log_analysis", {"body_contains": pattern})
            assert reply["summary"]["total_logs"] == 0
        assert monotonic() - begun < 10


def test_values_are_never_sql(ask: Ask) -> None:
    for text in ("'; DROP VIEW logs; --", "x' OR '1'='1", '"', "\\"):
        assert ask("event_analysis", filters={"reason": text})["total_count"] == 0
    assert ask("log_analysis")["summary"]["total_logs"] == 29


_VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=20) | st.lists(st.text(max_size=5), max_size=3)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_arguments_get_an_answer_or_an_explanation(ask: Ask, data: st.DataObject) -> None:
    tool = data.draw(st.sampled_from(sorted(all_tools().values(), key=lambda tool: tool.name)))
    names = st.sampled_from(sorted(tool.input_schema["properties"]))
    arguments = data.draw(st.dictionaries(names, _VALUES | st.dictionaries(st.text(max_size=5), _VALUES, max_size=2)))
    try:
        ask(tool.name, **arguments)
    except ToolError as problem:
        assert str(problem)
