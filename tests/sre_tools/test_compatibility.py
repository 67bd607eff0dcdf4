"""What agents' prompts already know: names and arguments of the earlier tools, architecture files, patterns."""

from __future__ import annotations

import json
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from sre_tools.offline_incident_analysis import ToolError, all_tools
from tests.sre_tools.conftest import Ask

SPAN = {"start_time": "2025-06-01T10:00:00Z", "end_time": "2025-06-01T10:20:00"}
# Every argument that the earlier tools took, in the way their prompts write it.
OLD: dict[str, dict[str, Any]] = {
    "alert_summary": {
        "base_dir": "alerts",
        "time_basis": "snapshot",
        **SPAN,
        "state_filter": "firing",
        "min_duration_min": 1,
        "limit": 50,
    },
    "alert_analysis": {
        "base_dir": ".",
        "time_basis": "activeAt",
        "filters": {"severity": "critical"},
        **SPAN,
        "group_by": ["alertname"],
        "agg": "count",
        "sort_by": "count",
        "limit": 5,
        "offset": 0,
    },
    "event_analysis": {
        "events_file": "k8s_events_raw.tsv",
        "filters": {"event_kind": "Warning"},
        "group_by": "reason",
        **SPAN,
        "agg": "nunique",
        "limit": 10,
        "offset": 0,
    },
    "metric_analysis": {
        "base_dir": "metrics",
        "k8_object_name": "Deployment/payment",
        "object_pattern": "pod/payment*",
        **SPAN,
        "metric_names": ["container_cpu_usage_seconds_total"],
        "group_by": "deployment",
        "agg": "max",
        "verbosity": "compact",
        "limit": 200,
        "include_tags": False,
        "include_buckets": False,
        "labels_keep": ["span_name"],
        "filters": {"namespace": "shop"},
        "sort_by": "max",
    },
    "get_metric_anomalies": {
        "k8_object_name": "Pod/payment-6c9f7d8b4-x2k4p",
        "base_dir": "metrics",
        "metric_name_filter": "cpu",
        **SPAN,
        "raw_content": True,
    },
    "log_analysis": {
        "logs_file": "otel_logs_raw.tsv",
        "k8_object": "Deployment/payment",
        "severity_filter": "ERROR,WARN",
        **SPAN,
        "body_contains": "refused",
        "pattern_analysis": True,
        "max_patterns": 50,
        "similarity_threshold": 0.5,
        "limit": 100,
        "offset": 0,
        "service_name": "payment",
    },
    "get_trace_error_tree": {
        "trace_file": "otel_traces_raw.tsv",
        "service_name": "checkout",
        "span_kind": "Server",
        "pivot_time": "2025-06-01T10:11:00Z",
        "delta_time": "5m",
        "error_threshold_pct": 10,
        "latency_threshold_pct": 10,
    },
    "build_topology": {"arch_file": None, "k8s_objects_file": "k8s_objects_raw.tsv", "output_file": "topology.json"},
    "topology_analysis": {"topology_file": "topology.json", "entity": "Service/checkout"},
    "k8s_spec_change_analysis": {
        "k8s_objects_file": "k8s_objects_raw.tsv",
        "k8_object_name": "Deployment/payment",
        **SPAN,
        "max_changes_per_diff": 5,
        "include_reference_spec": True,
        "include_flat_change_items": True,
        "limit": 5,
        "offset": 0,
        "include_no_change": True,
        "sort_by": "change_count",
        "time_basis": "effective_update",
        "lifecycle_inference": "k8s_metadata",
        "lifecycle_scope": "global",
        "removal_grace_period_sec": 60,
        "removal_min_cycles": 2,
    },
    "get_k8_spec": {
        "k8s_objects_file": "k8s_objects_raw.tsv",
        "k8_object_name": "shop/Deployment/payment",
        "return_all_observations": True,
        "include_metadata": True,
    },
    "get_context_contract": {
        "k8_object": "shop/Service/checkout",
        "snapshot_dir": ".",
        "topology_file": "topology.json",
        **SPAN,
        "page": 1,
        "deps_per_page": 3,
    },
}


@pytest.mark.parametrize("tool", sorted(OLD))
def test_the_arguments_of_earlier_prompts_are_taken(ask: Ask, tool: str) -> None:
    assert ask(tool, **OLD[tool])["data"], f"{tool} found nothing"


def test_all_earlier_tools_are_there() -> None:
    assert set(all_tools()) == {*OLD, "incident_timeline", "change_impact"}


ARCHITECTURE = {
    "name": "shop",
    "components": {
        "services": [{"name": "checkout-service"}, {"name": "payment-service"}, {"name": "mail-service"}],
        "infrastructure": [{"name": "kafka", "type": "queue"}],
    },
    "dependencies": [
        {"source": "checkout-service", "target": "mail-service", "protocol": "HTTP"},
        {"source": "checkout-service", "target": "payment-service", "protocol": "gRPC"},
    ],
}


def test_an_architecture_file_is_merged_with_what_the_snapshot_shows(ask_any: Ask, tmp_path: Path) -> None:
    scenario = next(path for path in (tmp_path / "data").rglob("Scenario-*") if path.is_dir())
    (scenario / "shop_architecture.json").write_text(json.dumps(ARCHITECTURE))
    reply = ask_any("topology_analysis", entity="checkout-service")
    assert reply["summary"]["entity"] in ("shop/Service/checkout", "App/checkout-service")
    assert {"App/checkout-service", "shop/Service/checkout", "shop/Deployment/checkout"} <= {
        *reply["summary"]["aliases"],
        reply["summary"]["entity"],
    }
    # What is known from the file alone is there, what traces show too keeps its counts and gains the protocol.
    assert "App/mail-service" in reply["summary"]["callees"]
    edges = {(row["source"], row["target"]): row.get("meta", {}) for row in reply["data"] if row["relation"] == "calls"}
    seen = edges["shop/Service/checkout", "shop/Service/payment"]
    assert (seen["calls"], seen["errors"], seen["protocol"]) == (20, 9, "gRPC")


HARD = ("(a+)+$", "(a|aa)+$", "(.*a){25}$", "([a-zA-Z]+)*$", "(a|a?)+$")


@pytest.mark.parametrize(
    ("tool", "argument", "patterns"),
    [
        ("log_analysis", "body_contains", HARD),
        ("get_metric_anomalies", "metric_name_filter", HARD),
        ("metric_analysis", "object_pattern", ["*a" * 60 + "b", "[a-" * 40, "?*" * 200]),
    ],
)
def test_no_pattern_hangs_the_server(
    ask: Ask, directory: Path, tool: str, argument: str, patterns: tuple[str, ...]
) -> None:
    name = "a" * 200
    row = "metric_name\ttimestamp\tvalue\n" + f"{'a' * 5000}!\t2025-06-01T10:00:00Z\t1\n"
    (directory / "metrics" / f"pod_{name}_raw.tsv").write_text(row)
    more = {"k8_object_name": f"Pod/{name}"} if tool == "get_metric_anomalies" else {}
    begun = monotonic()
    for pattern in patterns:
        try:
            ask(tool, **{argument: pattern, **more})
        except ToolError as problem:
            assert argument in str(problem)
    assert monotonic() - begun < 60, "far longer than any of this takes, far shorter than for ever"
