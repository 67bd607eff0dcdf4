"""Each tool's answer about the sample incident, computed by hand from the scenario in tests/snapshots/samples.py."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sre_tools.offline_incident_analysis import Workspace, call_tool
from tests.snapshots import samples
from tests.sre_tools.conftest import Ask

PAYMENT, CHECKOUT = samples.PAYMENT_POD, samples.CHECKOUT_POD


def _minute(text: str) -> str:
    return datetime.fromisoformat(text).strftime("%H:%M")


def test_alert_summary_puts_the_alert_of_the_incident_first(ask_any: Ask) -> None:
    reply = ask_any("alert_summary")
    first, last = reply["data"]
    # Captures from 10:05 to 10:19; the alert is there from 10:12 on: eight captures, seven minutes.
    assert (first["alertname"], first["entity"], first["namespace"]) == ("RequestErrorRate", "checkout", "shop")
    assert (first["occurrences"], first["duration_min"], first["began_during_recording"]) == (8, 7.0, True)
    # The Watchdog was active since 00:00.
    assert (last["alertname"], last["duration_min"], last["occurrences"]) == ("Watchdog", 619.0, 15)
    assert reply["summary"]["first_began"] == "2025-06-01T10:12:00Z"


def test_alert_analysis_filters_and_groups(ask_any: Ask) -> None:
    grouped = ask_any("alert_analysis", group_by="alertname")
    assert grouped["data"] == [{"alertname": "Watchdog", "count": 15}, {"alertname": "RequestErrorRate", "count": 8}]
    longest = ask_any("alert_analysis", filters={"severity": "CRITICAL"}, sort_by="duration_active_min", limit=1)
    assert longest["total_count"] == 8
    assert longest["data"][0]["duration_active_min"] == 7.0
    assert longest["data"][0]["labels"]["service_name"] == "checkout"


def test_event_analysis_gives_warnings_first_with_kind_and_namespace_in_their_places(ask_any: Ask) -> None:
    rows = ask_any("event_analysis")["data"]
    assert [row["reason"] for row in rows] == ["Unhealthy", "BackOff", "ScalingReplicaSet", "Started"]
    assert (rows[0]["object_kind"], rows[0]["namespace"], rows[0]["deployment"]) == ("Pod", "shop", "payment")
    assert rows[0]["count"] == 5
    grouped = ask_any("event_analysis", filters={"event_kind": "Warning"}, group_by=["object_name"])
    assert grouped["data"] == [{"object_name": PAYMENT, "count": 2, "occurrences": 8}]
    listed = ask_any("event_analysis", group_by="object_name", agg="list", limit=1)["data"][0]
    assert sorted(listed["reason"]) == ["BackOff", "Unhealthy"]


def test_metric_analysis_summarises_series_and_rates_of_counters(ask_any: Ask) -> None:
    rows = ask_any("metric_analysis", k8_object_name=f"Pod/{PAYMENT}")["data"]
    by_name = {row["metric_name"]: row for row in rows}
    cpu = by_name["container_cpu_usage_seconds_total"]
    # 11 minutes of 6 s and 9 of 30 s end at 336 s; the 19 steps between have 330 s in 1140 s.
    assert (cpu["count"], cpu["last_value"]) == (20, 336.0)
    assert cpu["rate_per_s"] == 0.289474
    assert by_name["container_memory_working_set_bytes"]["max"] == 2e8


def test_metric_analysis_computes_what_it_is_asked_to(ask_any: Ask) -> None:
    reply = ask_any(
        "metric_analysis",
        eval="mb = container_memory_working_set_bytes / 10 ** 6",
        group_by="deployment",
        agg="max",
    )
    assert [(row["deployment"], row["mb"]) for row in reply["data"]] == [("payment", 200.0), ("checkout", 101.0)]


def test_metric_analysis_reads_histograms_as_quantiles(ask_any: Ask) -> None:
    name = "traces_span_metrics_duration_milliseconds_bucket"
    rows = ask_any("metric_analysis", k8_object_name="Service/checkout", metric_names=[name])["data"]
    assert [row["object"] for row in rows] == ["Service/checkout"], "checkout-proxy is another service"
    # Half of the requests are below 10 ms, nine tenths below 100 ms: p50 at 10, p90 at 100,
    # p95 in the middle of 100..1000, p99 at nine tenths of it.
    assert rows[0]["duration_ms"] == {"p50": 10.0, "p90": 100.0, "p95": 550.0, "p99": 910.0}


def test_get_metric_anomalies_judges_each_series_by_itself(ask_any: Ask) -> None:
    reply = ask_any("get_metric_anomalies", k8_object_name="Deployment/payment")
    summary = reply["summary"]
    assert (summary["objects"], summary["series"], summary["anomalous_series"]) == ([f"Pod/{PAYMENT}"], 2, 2)
    assert summary["baseline"].startswith("before 2025-06-01T10:11:00")
    cpu = next(row for row in reply["data"] if "cpu" in row["metric_name"])
    assert (cpu["unit"], cpu["baseline"]) == ("per second", 0.1)
    assert (_minute(cpu["shift"]["at"]), cpu["shift"]["after"]) == ("10:11", 0.5)
    assert cpu["anomaly_count"] == 9
    calm = ask_any("get_metric_anomalies", k8_object_name=f"Pod/{CHECKOUT}")
    assert (calm["data"], calm["summary"]["series"]) == ([], 2)


def test_log_analysis_brings_like_lines_together_errors_first(ask_any: Ask) -> None:
    reply = ask_any("log_analysis")
    errors, orders = reply["data"]
    assert errors["pattern"] == "charge <*> failed: connection refused by <*>"
    assert (errors["count"], errors["percentage"], errors["service_breakdown"]) == (9, 31.0, {"payment": 9})
    assert _minute(errors["time_range"]["first"]) == "10:11"
    assert orders["count"] == 20
    single = ask_any("log_analysis", k8_object="Deployment/payment", pattern_analysis=False, limit=2)
    assert [row["body"] for row in single["data"]] == [
        "charge 19 failed: connection refused by 10.0.0.19",
        "charge 18 failed: connection refused by 10.0.0.18",
    ]
    assert single["total_count"] == 9


def test_get_trace_error_tree_finds_when_and_where_failures_begin(ask_any: Ask) -> None:
    reply = ask_any("get_trace_error_tree")
    assert _minute(reply["summary"]["pivot_time"]) == "10:11"
    assert reply["summary"]["root_cause_suspect"]["service"] == "payment"
    deepest = reply["data"][0]
    assert (deepest["path"], deepest["severity"]) == ("frontend → checkout → payment", "CRITICAL")
    assert (deepest["pre"]["error_pct"], deepest["post"]["error_pct"]) == (0.0, 100.0)
    assert (deepest["pre"]["p99_ms"], deepest["post"]["p99_ms"]) == (50.0, 500.0)
    assert deepest["sample_errors"] == ["connection refused"]
    checkout = next(row for row in reply["data"] if row["service"] == "checkout")
    # 80 ms of which 50 in payment, then 550 of which 500.
    assert (checkout["pre"]["self_ms"], checkout["post"]["self_ms"]) == (30.0, 50.0)
    assert checkout["own_errors"] == 0


def test_get_trace_error_tree_takes_a_pivot_and_a_kind(ask_any: Ask) -> None:
    before = ask_any("get_trace_error_tree", pivot_time="2025-06-01T10:05:00Z", delta_time="3m")
    assert {row["severity"] for row in before["data"]} == {"OK"}
    assert {row["post"]["spans"] for row in before["data"]} == {3}
    assert ask_any("get_trace_error_tree", span_kind="Client")["data"] == []


@pytest.mark.parametrize(
    ("agg", "value"),
    # Two pods: memory of payment is 100 or 101 MB for 11 minutes, then 200 MB; checkout stays at 100 and 101 MB.
    [
        ("max", 2e8),
        ("min", 1e8),
        ("count", 40),
        ("sum", 11 * 1e8 + 5e6 + 9 * 2e8 + 20 * 1e8 + 1e7),
        ("mean", (11 * 1e8 + 5e6 + 9 * 2e8 + 20 * 1e8 + 1e7) / 40),
        ("median", 1.01e8),
        ("first", 1e8),
        ("last", 2e8),
    ],
)
def test_metric_analysis_aggregates_samples_not_means(ask: Ask, agg: str, value: float) -> None:
    memory = ["container_memory_working_set_bytes"]
    [row] = ask("metric_analysis", metric_names=memory, group_by="metric_name", agg=agg)["data"]
    assert row[agg] == pytest.approx(value, rel=1e-5) and row["series"] == 2


def _anomalies(tmp_path: Path, rows: list[dict[str, object]]) -> list[dict[str, Any]]:
    """What is reported of one pod whose samples are every 15 s, when the incident began at 10:05."""
    directory = tmp_path / "data" / "metrics"
    directory.mkdir(parents=True)
    header = ["metric_name", "timestamp", "value", "pod_name", "namespace", "tags"]
    samples.write_tsv(directory / "pod_cart-1_raw.tsv", header, rows)
    with Workspace(tmp_path / "data", cache=tmp_path / "cache") as workspace:
        arguments = {"k8_object_name": "cart-1", "pivot_time": "2025-06-01T10:05:00Z"}
        data: list[dict[str, Any]] = call_tool(workspace, "get_metric_anomalies", arguments)["data"]
    return data


def _samples(metric: str, values: dict[int, float], **tags: str) -> list[dict[str, object]]:
    rows = []
    for number, value in values.items():
        at = (samples.START + timedelta(seconds=15 * number)).strftime("%Y-%m-%dT%H:%M:%SZ")
        rows.append({"metric_name": metric, "timestamp": at, "value": value, "tags": repr(tags)})
    return rows


def test_metric_anomalies_are_those_of_the_incident(tmp_path: Path) -> None:
    """Twenty samples before, twenty after: an outlier in healthy time is none, what begins or ends with it is."""
    rows = [
        *_samples("calm", {n: 5 + n % 2 + (40 if n == 7 else 0) for n in range(40)}),
        *_samples("born", {n: float(n) for n in range(21, 40)}),
        *_samples("dead", dict.fromkeys(range(25), 1.0)),
        *_samples("stepped", {n: 1.0 if n < 21 else 9.0 for n in range(40)}),
    ]
    found = {row["metric_name"]: row for row in _anomalies(tmp_path, rows)}
    assert {name: row["finding"] for name, row in found.items()} == {
        "born": "born",
        "dead": "dead",
        "stepped": "changed",
    }
    assert found["born"]["at"] == "2025-06-01T10:05:15Z" and found["dead"]["at"] == "2025-06-01T10:06:00Z"
    assert (found["stepped"]["shift"]["before"], found["stepped"]["shift"]["after"]) == (1.0, 9.0)


def test_a_histogram_is_judged_by_its_quantiles(tmp_path: Path) -> None:
    """Ten requests per sample: at most 10 ms each before 10:05, between 10 and 100 ms after."""
    fast = {n: 10.0 * min(n, 20) for n in range(40)}
    every = {n: 10.0 * n for n in range(40)}
    rows = []
    for bound, values in (("10", fast), ("100", every), ("+Inf", every)):
        rows += _samples("took_milliseconds_bucket", values, le=bound)
    found = {row["metric_name"]: row for row in _anomalies(tmp_path, rows)}
    p95 = found["histogram_quantile(0.95, took_milliseconds)"]
    # Nine and a half of ten requests: 9.5 ms of the first bucket, then 10 + 0.95 * 90 of the second.
    assert (p95["baseline"], p95["shift"]["after"], p95["unit"]) == (9.5, 95.5, "value")
    assert not any("bucket" in name for name in found)


def test_metric_analysis_groups_by_time(ask: Ask) -> None:
    memory = ["container_memory_working_set_bytes"]
    rows = ask("metric_analysis", metric_names=memory, group_by="timestamp", agg="max")["data"]
    assert [row["timestamp"] for row in rows] == [samples.stamp(minute) for minute in range(20)]
    assert [row["max"] for row in rows][9:13] == [1.01e8, 1e8, 2e8, 2e8]
    doubled = "mb = 2 * container_memory_working_set_bytes / 1e6"
    first, second = ask("metric_analysis", eval=doubled, group_by="timestamp")["data"][:2]
    assert (first["timestamp"], first["mb"]) == (samples.stamp(0), 400.0)
    assert (second["timestamp"], second["mb"]) == (samples.stamp(1), 404.0)


def test_the_suspect_is_the_callee_that_refuses_connections(tmp_path: Path) -> None:
    """Cart has no spans while it refuses connections: the only failed span is the call of its caller."""
    rows = []
    for second in range(0, 900, 5):
        refused = second >= 300 and second % 10 == 0
        at = (samples.START + timedelta(seconds=second)).strftime("%Y-%m-%d %H:%M:%S")
        common = {"Timestamp": at, "TraceId": f"t{second}", "Duration": 1_000_000}
        call = {"SpanName": "GetCart", "SpanKind": "Client", "ServiceName": "frontend", "ParentSpanId": "a"}
        status = {"StatusCode": "Error", "StatusMessage": "ECONNREFUSED"} if refused else {"StatusCode": "Unset"}
        rows.append({**common, **status, "SpanId": "a", "SpanName": "/", "SpanKind": "Server"})
        rows[-1]["ServiceName"] = "frontend"
        rows.append({**common, **status, **call, "SpanId": "b"})
        if not refused:
            rows.append({**common, "SpanId": "c", "ParentSpanId": "b", "SpanName": "GetCart", "SpanKind": "Server"})
            rows[-1].update(ServiceName="cart", StatusCode="Unset")
    (tmp_path / "data").mkdir()
    samples.write_tsv(tmp_path / "data" / "otel_traces_raw.tsv", samples.RAW_SPAN, rows)
    with Workspace(tmp_path / "data", cache=tmp_path / "cache") as workspace:
        summary = call_tool(workspace, "get_trace_error_tree", {})["summary"]
        timeline = call_tool(workspace, "incident_timeline", {})["data"]
    assert summary["pivot_time"] == "2025-06-01T10:05:00Z"
    assert summary["root_cause_suspect"]["service"] == "cart"
    assert "calls from frontend: ECONNREFUSED" in summary["root_cause_suspect"]["reason"]
    assert [(row["entity"], row["time"]) for row in timeline if "error rate" in row["what"]] == [
        ("frontend", "2025-06-01T10:05:00.001Z")
    ]


def test_build_topology_knows_objects_and_calls(ask_any: Ask) -> None:
    reply = ask_any("build_topology")
    calls = [(row["source"], row["target"]) for row in reply["data"] if row["relation"] == "calls"]
    assert calls == [
        ("shop/Service/checkout", "shop/Service/payment"),
        ("shop/Service/frontend", "shop/Service/checkout"),
    ]
    assert reply["summary"]["nodes_by_kind"]["Pod"] == 2
    assert reply["data"][0]["meta"] == {"calls": 20, "errors": 9, "seen_in": "traces"}


def test_topology_analysis_resolves_aliases_callers_and_callees(ask_any: Ask) -> None:
    for name in ("checkout", "Service/checkout", "shop/Deployment/checkout", f"pod/{CHECKOUT}", "checkout-service"):
        about = ask_any("topology_analysis", entity=name)["summary"]
        assert about["callers"] == ["shop/Service/frontend"]
        assert about["callees"] == ["shop/Service/payment"]
        assert {about["entity"], *about["aliases"]} == {
            "shop/Service/checkout",
            "shop/Deployment/checkout",
            "shop/ReplicaSet/checkout-77d9f5c68",
            f"shop/Pod/{CHECKOUT}",
        }
        assert about["uses"] == ["shop/ConfigMap/checkout-config", "shop/Service/payment"]


def test_k8s_spec_change_analysis_tells_only_what_someone_changed(ask_any: Ask) -> None:
    reply = ask_any("k8s_spec_change_analysis")
    assert len(reply["data"]) == 1
    change = reply["data"][0]
    assert (change["kind"], change["namespace"], change["name"]) == ("Deployment", "shop", "payment")
    assert change["changes"] == [
        {
            "path": "spec.template.spec.containers.payment.image",
            "type": "changed",
            "old": "shop/payment:1.0",
            "new": "shop/payment:broken",
        }
    ]
    assert _minute(change["timestamp"]) == "10:10"
    assert reply["summary"]["total_entities"] == 10


def test_get_k8_spec_gives_the_last_manifest_of_exactly_that_object(ask_any: Ask) -> None:
    row = ask_any("get_k8_spec", k8_object_name="shop/deploy/payment")["data"][0]
    assert row["spec"]["spec"]["template"]["spec"]["containers"][0]["image"] == "shop/payment:broken"
    assert (row["observation_count"], _minute(row["timestamp"])) == (4, "10:15")
    looks = ask_any("get_k8_spec", k8_object_name="Deployment/payment", return_all_observations=True)
    assert looks["total_count"] == 4


def test_get_context_contract_has_every_part_and_the_dependencies(ask_any: Ask) -> None:
    reply = ask_any("get_context_contract", k8_object="shop/Service/checkout")
    parts = {row["part"]: row for row in reply["data"]}
    assert not [row for row in reply["data"] if "unavailable" in row]
    assert parts["alerts"]["content"][0]["alertname"] == "RequestErrorRate"
    assert parts["trace_errors"]["content"]["summary"]["root_cause_suspect"]["service"] == "payment"
    assert reply["summary"]["dependency_breakdown"]["direct"] == [
        "shop/Service/payment",
        "shop/ConfigMap/checkout-config",
    ]
    second = ask_any("get_context_contract", k8_object="shop/Service/checkout", page=2)
    payment = next(row for row in second["data"] if row["part"] == "dependency shop/Service/payment")
    assert [event["reason"] for event in payment["content"]["events"]][:2] == ["Unhealthy", "BackOff"]
    assert "shop/payment:broken" in payment["content"]["spec_changes"][0]["change"]


def test_incident_timeline_begins_with_the_change(ask_any: Ask) -> None:
    rows = ask_any("incident_timeline")["data"]
    assert (rows[0]["source"], rows[0]["entity"]) == ("change", "shop/Deployment/payment")
    times = [datetime.fromisoformat(row["time"]) for row in rows]
    assert times == sorted(times)
    assert {row["source"] for row in rows} == {"change", "alert", "event", "log", "trace", "metric"}
    # A minute later: the alert, the failing probe, and the first growth of both error counters.
    later = {row["entity"] for row in rows if _minute(row["time"]) == "10:12"}
    assert later == {"checkout", f"shop/Pod/{PAYMENT}", "Service/checkout", "Service/checkout-proxy"}


def test_change_impact_blames_the_change_before_the_first_symptom(ask_any: Ask) -> None:
    reply = ask_any("change_impact")
    assert _minute(reply["summary"]["symptom_time"]) == "10:11"
    assert (reply["data"][0]["entity"], reply["data"][0]["hops_to_symptom"]) == ("shop/Deployment/payment", 0)
    assert reply["data"][0]["minutes_before_symptom"] == 1.0
    assert ask_any("change_impact", symptom_time="2025-06-01T10:05:00Z")["data"] == []


def test_changes_are_timed_by_the_object_or_by_the_first_observation(ask: Ask) -> None:
    effective = ask("k8s_spec_change_analysis")["data"][0]
    assert (effective["timestamp"], effective["time_exact"]) == ("2025-06-01T10:10:00Z", True)
    observed = ask("k8s_spec_change_analysis", time_basis="observation")["data"][0]
    assert (observed["timestamp"], observed["time_exact"]) == ("2025-06-01T10:10:00.123Z", False)
