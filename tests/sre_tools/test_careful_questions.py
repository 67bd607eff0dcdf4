"""Questions of a careful engineer to small recordings, each with an answer that is worked out by hand.

Every recording has a trap of real ones: events that are recorded again when their count rises, edits that a controller
annotates, requests that stay away for long, samples of pods at different times, hosts that do not exist.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sre_tools.errors import ToolError
from sre_tools.offline_incident_analysis import Workspace, call_tool
from sre_tools.offline_incident_analysis.workloads import workload_of
from tests.snapshots import samples

Row = dict[str, Any]
MakeRecording = Callable[..., Workspace]


@pytest.fixture
def recording(tmp_path: Path) -> Iterator[MakeRecording]:
    """Makes a recording of the tables that are given."""
    opened = []

    def make(**tables: Any) -> Workspace:
        directory = tmp_path / "data"
        directory.mkdir()
        names = {"events": "k8s_events_raw.tsv", "objects": "k8s_objects_raw.tsv", "spans": "otel_traces_raw.tsv"}
        for table, rows in tables.items():
            if table == "alerts":
                (directory / "alerts").mkdir()
                for minute, alerts in rows.items():
                    name = samples.at(minute).strftime("alerts_at_%Y-%m-%dT%H-%M-%S.json")
                    (directory / "alerts" / name).write_text(json.dumps(alerts))
            elif table == "metrics":
                (directory / "metrics").mkdir()
                columns = ["metric_name", "timestamp", "value", "pod_name", "namespace", "tags"]
                for pod, points in rows.items():
                    samples.write_tsv(directory / "metrics" / f"pod_{pod}_raw.tsv", columns, points)
            else:
                header = samples.RAW_SPAN if table == "spans" else samples.RAW_LOG
                samples.write_tsv(directory / names[table], header, rows)
        opened.append(Workspace(directory, cache=tmp_path / "cache"))
        return opened[-1]

    yield make
    for workspace in opened:
        workspace.close()


def _event(minute: float, pod: str, count: int, uid: str = "e1", reason: str = "BackOff") -> Row:
    body = {
        "metadata": {"name": f"{pod}.1", "namespace": "shop", "uid": uid},
        "involvedObject": {"kind": "Pod", "name": pod, "namespace": "shop"},
        "reason": reason,
        "message": "Back-off restarting failed container",
        "type": "Warning",
        "firstTimestamp": samples.stamp(1),
        "lastTimestamp": samples.stamp(minute),
        "count": count,
    }
    return {"Timestamp": samples.nanos(minute), "Body": json.dumps({"type": "MODIFIED", "object": body})}


def test_an_event_that_is_recorded_each_time_it_recurs_is_counted_once(recording: MakeRecording) -> None:
    pod = "store-0"
    rows = [_event(2, pod, 3), _event(3, pod, 5), _event(4, pod, 11), _event(4, pod, 2, uid="e2")]
    workspace = recording(events=rows, objects=[])
    (line,) = call_tool(workspace, "incident_timeline", {"sources": ["event"]})["data"]
    assert line["what"].startswith("BackOff ×13"), "11 of one event, 2 of another"
    (group,) = call_tool(workspace, "event_analysis", {"group_by": ["reason", "deployment"]})["data"]
    assert group == {"reason": "BackOff", "deployment": "store", "count": 4, "occurrences": 13}


@pytest.mark.parametrize(
    ("name", "kind", "workload"),
    [
        ("kube-proxy-x2k4p", "Pod", "kube-proxy"),  # of a DaemonSet
        ("page-cache-warmup-wwmdv", "Pod", "page-cache-warmup"),  # of a Job
        ("backup-29384756-x2k4p", "Pod", "backup"),  # of a CronJob
        ("backup-29384756", "Job", "backup"),
        ("nacos-0", "Pod", "nacos"),
        ("etcd-control-plane", "Pod", "etcd-control-plane"),
        ("geo-config", "ConfigMap", "geo-config"),
    ],
)
def test_a_name_points_to_its_workload_in_python_and_in_queries(
    recording: MakeRecording, name: str, kind: str, workload: str
) -> None:
    assert workload_of(name, kind) == workload
    row = _event(2, name, 1)
    row["Body"] = row["Body"].replace('"Pod"', f'"{kind}"')
    assert call_tool(recording(events=[row]), "event_analysis")["data"][0]["deployment"] == workload


def _alert(minute: float, name: str, **labels: str) -> Row:
    return {"labels": {"alertname": name, **labels}, "state": "firing", "activeAt": samples.stamp(minute)}


def test_alerts_of_different_users_are_different_alerts(recording: MakeRecording) -> None:
    common = {"severity": "critical", "namespace": "shop", "service_name": "cart"}
    by_users = [_alert(6, "Errors", user=user, **common) for user in ("ann", "bob")]
    by_pods = [_alert(6, "Slow", pod=pod, **common) for pod in ("cart-a", "cart-b")]
    state = {"job": "kube-state-metrics", "service": "prometheus-kube-state-metrics", "instance": "10.0.0.1:8080"}
    about_pod = _alert(6, "CrashLooping", pod="cart-a", container="cart", **state)
    workspace = recording(alerts={5: [], 7: [*by_users, *by_pods, about_pod]})
    rows = call_tool(workspace, "alert_summary")["data"]
    assert {(row["alertname"], row["entity"], str(row["labels"])) for row in rows} == {
        ("Errors", "cart", "{'user': 'ann'}"),
        ("Errors", "cart", "{'user': 'bob'}"),
        ("Slow", "cart", "{'pod': 'cart-a'}"),
        ("Slow", "cart", "{'pod': 'cart-b'}"),
        ("CrashLooping", "cart-a", "{'container': 'cart'}"),
    }
    lines = call_tool(workspace, "incident_timeline", {"sources": ["alert"]})["data"]
    assert len(lines) == 5 and sum("user=ann" in line["what"] for line in lines) == 1


def _deployment(minute: float, image: str, writes: Sequence[tuple[str, float]]) -> Row:
    fields = [{"manager": manager, "time": samples.stamp(at)} for manager, at in writes]
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "cart", "namespace": "shop", "managedFields": fields},
        "spec": {"template": {"spec": {"containers": [{"name": "cart", "image": image}]}}},
    }
    return {"Timestamp": samples.nanos(minute), "Body": json.dumps(body)}


def _request(second: float, service: str, **more: Any) -> Row:
    at = (samples.START + timedelta(seconds=second)).strftime("%Y-%m-%d %H:%M:%S.%f")
    span = {"SpanId": "a", "SpanName": "/", "SpanKind": "Server", "Duration": 2_000_000, "StatusCode": "Unset"}
    return {"Timestamp": at, "TraceId": f"{service}{second}", "ServiceName": service, **span, **more}


def test_a_change_seconds_before_the_first_failure_is_blamed(recording: MakeRecording) -> None:
    """Someone edits at 10:05:03, a controller annotates that two seconds later, requests fail from 10:05:04 on."""
    edit = 5 + 3 / 60
    kubectl, controller = ("kubectl-edit", edit), ("kube-controller-manager", 5 + 5 / 60)
    objects = [
        _deployment(0, "cart:1", [("kubectl-create", -60)]),
        _deployment(10, "cart:2", [("kubectl-create", -60), kubectl, controller]),
    ]
    failed = {"StatusCode": "Error"}
    spans = [_request(second, "cart", **(failed if second >= 304 else {})) for second in range(0, 600, 2)]
    workspace = recording(objects=objects, spans=spans)
    reply = call_tool(workspace, "change_impact")
    assert reply["summary"]["symptom_time"].startswith("2025-06-01T10:05:04")
    (change,) = reply["data"]
    assert (change["entity"], change["time"], change["time_exact"]) == (
        "shop/Deployment/cart",
        "2025-06-01T10:05:03Z",
        True,
    )
    timeline = call_tool(workspace, "incident_timeline")["data"]
    assert [row["source"] for row in timeline[:2]] == ["change", "trace"], "causes come before their effects"


def test_requests_that_stay_away_leave_room_for_the_change_before_them(recording: MakeRecording) -> None:
    """Of one request in ten seconds the last comes at 10:05:00; the change at 10:05:08 came before the next."""
    objects = [
        _deployment(0, "cart:1", [("kubectl-create", -60)]),
        _deployment(10, "cart:2", [("kubectl-create", -60), ("kubectl-edit", 5 + 8 / 60)]),
    ]
    spans = [_request(second, "cart") for second in range(0, 301, 10)] + [
        _request(second, "front") for second in range(0, 900, 10)
    ]
    (change,) = call_tool(recording(objects=objects, spans=spans), "change_impact")["data"]
    assert change["entity"] == "shop/Deployment/cart"


def test_a_healthy_recording_says_that_its_symptom_is_an_old_one(recording: MakeRecording) -> None:
    workspace = recording(alerts={5: [], 7: []}, events=[_event(2, "store-0", 1)])
    reply = call_tool(workspace, "change_impact")
    assert "no symptom began during the recording" in reply["notes"][-1]


def test_changes_of_a_recording_without_symptoms_are_listed(recording: MakeRecording) -> None:
    """A pod that failed at the start is no symptom; an edit at 10:08 has not been felt yet."""
    objects = [
        _deployment(5, "cart:1", [("kubectl-create", -60)]),
        _deployment(10, "cart:2", [("kubectl-create", -60), ("kubectl-edit", 8)]),
    ]
    workspace = recording(alerts={5: [], 10: []}, events=[_event(2, "store-0", 1)], objects=objects)
    reply = call_tool(workspace, "change_impact")
    assert [(row["entity"], row["time"]) for row in reply["data"]] == [("shop/Deployment/cart", "2025-06-01T10:08:00Z")]
    assert reply["summary"]["symptom_time"] is None
    assert "none is known to have done harm" in reply["notes"][-1]


def test_a_service_whose_calls_are_all_late_is_the_suspect_itself(recording: MakeRecording) -> None:
    """Search's packets are delayed by a second: its calls of geo and rate are late, geo and rate themselves are not."""
    spans = []
    for second in range(0, 600, 3):
        late = 1_000_000_000 if second >= 300 else 0
        trace = {"TraceId": f"t{second}"}
        spans.append(_request(second, "search", **trace, Duration=9_000_000 + 2 * late))
        for place, callee in enumerate(("geo", "rate")):
            call = {"SpanId": callee, "ParentSpanId": "a", "SpanName": callee, "SpanKind": "Client"}
            spans.append(_request(second, "search", **{**trace, **call, "Duration": 3_000_000 + late}))
            served = {"SpanId": f"s{place}", "ParentSpanId": callee, "SpanName": callee}
            spans.append(_request(second, callee, **{**trace, **served}))
    suspect = call_tool(recording(spans=spans), "get_trace_error_tree")["summary"]["root_cause_suspect"]
    assert suspect == {"service": "search", "reason": "100 % of the additional time is spent here"}


def test_a_few_requests_that_take_very_long_are_an_onset(recording: MakeRecording) -> None:
    """Packets to one of ten callees are lost from 10:05 on: one request in twenty waits for a retransmission.

    The 95th percentile of a bucket hardly moves, and the slowest tenth of the operation is mostly ordinary.
    """
    spans = []
    for number, second in enumerate(range(0, 600, 1)):
        usual = 2_000_000 + 300_000 * (number * 7 % 11)
        lost = second >= 300 and number % 20 == 0
        spans.append(_request(second, "front", Duration=usual + (1_000_000_000 if lost else 0)))
    workspace = recording(spans=spans)
    summary = call_tool(workspace, "get_trace_error_tree")["summary"]
    assert summary["pivot"] == "found: requests that take 5 times the usual rose from 0.0 % to 5.0 %"
    assert summary["pivot_time"][:16] in ("2025-06-01T10:04", "2025-06-01T10:05")
    (line,) = call_tool(workspace, "incident_timeline", {"sources": ["trace"]})["data"]
    assert line["time"].startswith("2025-06-01T10:05:01"), "when the first of them ended"


def test_warnings_of_the_deployment_do_not_stand_before_the_incident(recording: MakeRecording) -> None:
    events = [_event(2, "store-0", 3), _event(4, "cart-0", 3, uid="e2"), _event(9, "cart-0", 5, uid="e2")]
    workspace = recording(alerts={5: [], 7: []}, events=events)
    reply = call_tool(workspace, "incident_timeline")
    assert [row["entity"] for row in reply["data"]] == ["shop/Pod/cart-0"], "it went on during the recording"
    assert "1 warnings were over before the recording began: give start_time" in reply["notes"][-1]
    every = call_tool(workspace, "incident_timeline", {"start_time": samples.stamp(0)})
    assert len(every["data"]) == 2


def test_where_nothing_else_happened_old_warnings_are_listed(recording: MakeRecording) -> None:
    workspace = recording(alerts={5: [], 7: []}, events=[_event(2, "store-0", 3)])
    assert len(call_tool(workspace, "incident_timeline")["data"]) == 1


def test_steps_are_listed_once_and_trends_are_no_steps(recording: MakeRecording) -> None:
    rows = [
        {"metric_name": metric, "timestamp": samples.nanos(n / 4), "value": value, "pod_name": "a", "tags": tags}
        for n in range(60)
        for metric, value, tags in (
            ("container_memory_rss", 100 + 50 * (n >= 30), {"container": "a"}),
            ("container_memory_rss", 100 + 50 * (n >= 30), {"container": ""}),
            ("node_netstat_Tcp_InSegs", 1000 + 7 * n, {}),  # a counter without the name of one
        )
    ]
    lines = call_tool(recording(metrics={"a": rows}), "incident_timeline")["data"]
    assert [line["what"] for line in lines] == ["container_memory_rss went from 100 to 150 (value)"]


def test_who_calls_a_host_that_does_not_exist_is_the_suspect(recording: MakeRecording) -> None:
    spans = []
    for second in range(0, 600, 3):
        failed = {"StatusCode": "Error", "StatusMessage": "no such host"} if second >= 300 else {}
        host = "badhost" if failed else "store"
        attributes = {"SpanAttributes": str({"server.address": host})}
        call = {"SpanId": "b", "ParentSpanId": "a", "SpanName": f"GET {host}", "SpanKind": "Client", **attributes}
        spans += [_request(second, "cart", **failed), _request(second, "cart", **{**call, **failed})]
    named = {"kind": "Service", "metadata": {"name": "store", "namespace": "shop"}}
    objects = [{"Timestamp": samples.nanos(0), "Body": json.dumps(named)}]
    summary = call_tool(recording(spans=spans, objects=objects), "get_trace_error_tree")["summary"]
    assert summary["root_cause_suspect"]["service"] == "cart"
    assert "no such host" in summary["root_cause_suspect"]["reason"]


def test_an_expression_adds_up_pods_that_are_scraped_at_different_times(recording: MakeRecording) -> None:
    """Two pods with 1 and 2, every minute; the second half a minute later, and for three minutes only."""

    def points(pod: str, value: float, offset: float, minutes: int) -> list[Row]:
        tags = str({"pod": pod, "namespace": "shop"})
        common = {"metric_name": "used", "value": value, "pod_name": pod, "namespace": "shop", "tags": tags}
        return [{**common, "timestamp": samples.stamp(minute + offset)} for minute in range(minutes)]

    workspace = recording(metrics={"a": points("a", 1, 0, 12), "b": points("b", 2, 0.5, 3)})
    rows = call_tool(workspace, "metric_analysis", {"eval": "u = used", "group_by": "timestamp"})["data"]
    by_time = {row["timestamp"]: row["u"] for row in rows}
    assert by_time[samples.stamp(0)] == 1, "the second pod is not known yet"
    assert {by_time[samples.stamp(minute)] for minute in (1, 1.5, 2, 2.5, 6)} == {3.0}
    assert by_time[samples.stamp(9)] == 1, "the second pod's last value is older than five minutes"


def test_a_pod_is_itself_however_its_kind_is_written(tmp_path: Path) -> None:
    directory = samples.write_raw(tmp_path / "data")
    with Workspace(directory, cache=tmp_path / "cache") as workspace:
        counts = {
            call_tool(workspace, "log_analysis", {"k8_object": f"{kind}/{samples.PAYMENT_POD}"})["summary"][
                "total_logs"
            ]
            for kind in ("Pod", "pod", "po")
        }
        assert counts == {9}
        with pytest.raises(ToolError, match="did you mean"):
            call_tool(workspace, "get_k8_spec", {"k8_object_name": "Deployment/shop/payment"})


def test_a_change_in_a_configuration_file_says_which_setting(recording: MakeRecording) -> None:
    """Of three flags with the same two variants one is switched; its lines occur elsewhere in the file as well."""

    def file(switched: str) -> str:
        flags = "".join(
            f"  flag-{name}:\n    state: ENABLED\n    variants: ['on', 'off']\n"
            f"    defaultVariant: '{'on' if name in ('c', switched) else 'off'}'\n"
            for name in "abc"
        )
        return f"# flags of the shop, read anew every minute; each has a state and variants\nflags:\n{flags}"

    def observed(minute: float, switched: str) -> Row:
        meta = {"name": "flags", "namespace": "shop"}
        body = {"kind": "ConfigMap", "metadata": meta, "data": {"flags.yaml": file(switched)}}
        return {"Timestamp": samples.nanos(minute), "Body": json.dumps(body)}

    (change,) = call_tool(recording(objects=[observed(0, ""), observed(5, "b")]), "k8s_spec_change_analysis")["data"]
    (item,) = change["changes"]
    assert item["old"].split() == ["flag-b:", "defaultVariant:", "'off'"]
    assert item["new"].split() == ["flag-b:", "defaultVariant:", "'on'"]
