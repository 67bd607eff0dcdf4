"""A small incident, written in every layout: at 10:10 someone gives payment a bad image, at 10:11 it fails.

frontend calls checkout, checkout calls payment. Everything is worked out by hand from the few constants here, so that
tests can state the answers without asking the code under test.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

START = datetime(2025, 6, 1, 10, 0, tzinfo=UTC)
CHANGED, FAILED, MINUTES = 10, 11, 20  # minutes after START
PAYMENT_POD, CHECKOUT_POD = "payment-6c9f7d8b4-x2k4p", "checkout-77d9f5c68-qqqqq"
RAW_LOG = (
    "Timestamp TimestampTime TraceId SpanId TraceFlags SeverityText SeverityNumber ServiceName Body ResourceSchemaUrl "
    "ResourceAttributes ScopeSchemaUrl ScopeName ScopeVersion ScopeAttributes LogAttributes"
).split()
RAW_SPAN = (
    "Timestamp TraceId SpanId ParentSpanId TraceState SpanName SpanKind ServiceName ResourceAttributes ScopeName "
    "ScopeVersion SpanAttributes Duration StatusCode StatusMessage Events.Timestamp Events.Name Events.Attributes"
).split()


def at(minute: float) -> datetime:
    return START + timedelta(minutes=minute)


def stamp(minute: float) -> str:
    return at(minute).strftime("%Y-%m-%dT%H:%M:%SZ")


def nanos(minute: float) -> str:
    return at(minute).strftime("%Y-%m-%d %H:%M:%S.") + "123456789"


def go_map(value: dict[str, Any]) -> str:
    return "map[" + " ".join(f"{k}:{v}" for k, v in value.items()) + "]"


SPELLINGS: dict[str, Callable[[dict[str, Any]], str]] = {"json": json.dumps, "python": repr, "go": go_map}


def write_tsv(path: Path, header: list[str], rows: Iterable[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.DictWriter(handle, header, delimiter="\t", restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _meta(name: str, version: int, owner: tuple[str, str] | None = None, **more: Any) -> dict[str, Any]:
    meta: dict[str, Any] = {
        "name": name,
        "namespace": "shop",
        "uid": f"uid-{name}",
        "resourceVersion": str(version),
        "creationTimestamp": stamp(-60),
        "managedFields": [{"manager": "kubelet", "time": stamp(version)}],
        **more,
    }
    if owner:
        meta["ownerReferences"] = [{"kind": owner[0], "name": owner[1], "controller": True}]
    return meta


def objects_at(minute: int) -> list[dict[str, Any]]:
    """One observation of all objects; only payment's image ever changes, resource versions always do."""
    image = "shop/payment:1.0" if minute < CHANGED else "shop/payment:broken"
    status = {"observedGeneration": minute, "conditions": [{"type": "Available", "lastUpdateTime": stamp(minute)}]}
    found: list[dict[str, Any]] = []
    for app, rs, pod in (
        ("payment", "payment-6c9f7d8b4", PAYMENT_POD),
        ("checkout", "checkout-77d9f5c68", CHECKOUT_POD),
    ):
        container: dict[str, Any] = {"name": app, "image": image if app == "payment" else "shop/checkout:1.0"}
        if app == "checkout":
            container["env"] = [{"name": "PAYMENT_ADDR", "value": "payment:8080"}]
            container["envFrom"] = [{"configMapRef": {"name": "checkout-config"}}]
        labels = {"app": app}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
        found += [
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": _meta(app, minute),
                "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
                "status": status,
            },
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "metadata": _meta(rs, minute, ("Deployment", app)),
                "spec": {"replicas": 1, "selector": {"matchLabels": labels}},
            },
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": _meta(pod, minute, ("ReplicaSet", rs), labels=labels),
                "spec": {"nodeName": "node-1", "containers": [{**container, "image": f"shop/{app}:1.0"}]},
                "status": {"phase": "Running"},
            },
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": _meta(app, minute),
                "spec": {"selector": labels, "ports": [{"port": 8080}]},
            },
        ]
    found.append({"apiVersion": "v1", "kind": "Service", "metadata": _meta("frontend", minute), "spec": {}})
    found.append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": _meta("checkout-config", 1), "data": {"a": "1"}})
    return found


def events() -> list[tuple[float, dict[str, Any]]]:
    def event(minute: float, kind: str, name: str, type_: str, reason: str, message: str, count: int) -> Any:
        return minute, {
            "metadata": {"name": f"{name}.{minute}", "namespace": "shop", "uid": f"event-{minute}-{name}"},
            "involvedObject": {"kind": kind, "name": name, "namespace": "shop"},
            "reason": reason,
            "message": message,
            "type": type_,
            "firstTimestamp": stamp(minute),
            "lastTimestamp": stamp(minute),
            "count": count,
            "source": {"component": "kubelet"},
        }

    return [
        event(2, "Pod", CHECKOUT_POD, "Normal", "Started", "Started container checkout", 1),
        event(CHANGED, "Deployment", "payment", "Normal", "ScalingReplicaSet", "Scaled up replica set", 1),
        event(FAILED, "Pod", PAYMENT_POD, "Warning", "BackOff", "Back-off restarting failed container", 3),
        event(FAILED + 1, "Pod", PAYMENT_POD, "Warning", "Unhealthy", "Readiness probe failed", 5),
    ]


def alerts_at(minute: int) -> list[dict[str, Any]]:
    found = [
        {
            "labels": {"alertname": "Watchdog", "severity": "none"},
            "annotations": {},
            "state": "firing",
            "activeAt": stamp(-600),
            "value": "1e+00",
        }
    ]
    if minute >= FAILED + 1:
        found.append(
            {
                "labels": {
                    "alertname": "RequestErrorRate",
                    "severity": "critical",
                    "service_name": "checkout",
                    "namespace": "shop",
                },
                "annotations": {"summary": "errors"},
                "state": "firing",
                "activeAt": stamp(FAILED + 1),
                "value": "5e-01",
            }
        )
    return found


def logs() -> list[dict[str, Any]]:
    rows = []
    for minute in range(MINUTES):
        rows.append({"minute": minute, "service": "checkout", "pod": CHECKOUT_POD, "severity": "INFO", "number": 9})
        rows[-1]["body"] = f'order {1000 + minute} placed\nfor a "good" customer'
        if minute >= FAILED:
            rows.append({"minute": minute, "service": "payment", "pod": PAYMENT_POD, "severity": "ERROR", "number": 17})
            rows[-1]["body"] = f"charge {minute} failed: connection refused by 10.0.0.{minute}"
    return rows


def spans() -> list[dict[str, Any]]:
    """A trace a minute; durations in nanoseconds. After the failure payment is slow and its callers fail."""
    rows = []
    for minute in range(MINUTES):
        bad = minute >= FAILED
        millis = (600, 550, 500) if bad else (100, 80, 50)
        parent = ""
        for service, kind, duration in zip(("frontend", "checkout", "payment"), ("Server",) * 3, millis, strict=True):
            span = f"{service[:2]}{minute:04d}"
            rows.append(
                {
                    "minute": minute,
                    "trace": f"trace{minute:04d}",
                    "span": span,
                    "parent": parent,
                    "name": f"{service} op",
                    "kind": kind,
                    "service": service,
                    "duration": duration * 1_000_000,
                    "status": "Error" if bad else "Unset",
                    "message": "connection refused" if bad and service == "payment" else "",
                }
            )
            parent = span
    return rows


def pod_metrics(pod: str) -> list[dict[str, Any]]:
    """CPU: a counter at 0.1 cores, at 0.5 after the failure (of payment). Memory: a gauge that doubles then."""
    rows = []
    total = 0.0
    tags = {"pod": pod, "namespace": "shop", "container": "main"}
    for minute in range(MINUTES):
        bad = minute >= FAILED and pod == PAYMENT_POD
        total += 30.0 if bad else 6.0
        for metric, value in (
            ("container_cpu_usage_seconds_total", total),
            ("container_memory_working_set_bytes", 2e8 if bad else 1e8 + minute % 2 * 1e6),
        ):
            rows.append({"metric_name": metric, "timestamp": stamp(minute), "value": value, "pod_name": pod})
            rows[-1].update(namespace="shop", tags=tags)
    return rows


def service_metrics(service: str) -> list[dict[str, Any]]:
    rows = []
    for minute in range(MINUTES):
        common = {"timestamp": stamp(minute), "service_name": service, "namespace": "shop"}
        calls = {"metric_name": "traces_span_metrics_calls_total", "metric_type": "error_rate"}
        errors = max(0, minute - FAILED) * 60
        rows.append({**common, **calls, "value": errors, "status_code": "STATUS_CODE_ERROR", "tags": {}})
        for le, share in (("10", 0.5), ("100", 0.9), ("1000", 1.0), ("+Inf", 1.0)):
            rows.append({**common, "value": 100 * (minute + 1) * share, "bucket_le": le, "tags": {"le": le}})
            rows[-1].update(metric_name="traces_span_metrics_duration_milliseconds_bucket", metric_type="duration_p95")
    return rows


TRUTH: dict[str, Any] = {
    "groups": [
        {"id": "payment-1", "kind": "Deployment", "namespace": "shop", "filter": ["payment"], "root_cause": True},
        {"id": "checkout-1", "kind": "Service", "namespace": "shop", "filter": ["checkout"]},
    ],
    "aliases": [["payment-1"]],
    "propagations": [{"source": "payment-1", "target": "checkout-1", "condition": "bad image", "effect": "errors"}],
    "alerts": [{"id": "RequestErrorRate", "group_id": "checkout-1"}],
    "fault": [{"category": "Change", "entity": {"kind": "Deployment", "name": "payment"}}],
}


def write_alerts(directory: Path, *, envelope: bool = False) -> None:
    directory.mkdir()
    for minute in range(5, MINUTES):
        name = at(minute).strftime("alerts_at_%Y-%m-%dT%H-%M-%S.000000.json")
        found: Any = alerts_at(minute)
        document = {"status": "success", "data": {"alerts": found}} if envelope else found
        (directory / name).write_text(json.dumps(document))


def write_raw(directory: Path, *, spelling: str = "python", truth: bool = True) -> Path:
    """The v0.2 layout: OpenTelemetry tables as exported."""
    spell = SPELLINGS[spelling]
    directory.mkdir(parents=True)
    if truth:
        (directory / "ground_truth.yaml").write_text(json.dumps(TRUTH))
    write_alerts(directory / "alerts")
    space = {"k8s.namespace.name": "shop"}
    write_tsv(
        directory / "k8s_events_raw.tsv",
        RAW_LOG,
        (
            {
                "Timestamp": nanos(minute),
                "Body": json.dumps({"type": "ADDED", "object": event}),
                "ResourceAttributes": spell(space),
            }
            for minute, event in events()
        ),
    )
    write_tsv(
        directory / "k8s_objects_raw.tsv",
        RAW_LOG,
        (
            {"Timestamp": nanos(minute), "Body": json.dumps(item), "LogAttributes": spell({"k8s.resource.name": "x"})}
            for minute in range(0, MINUTES, 5)
            for item in objects_at(minute)
        ),
    )
    write_tsv(
        directory / "otel_logs_raw.tsv",
        RAW_LOG,
        (
            {
                "Timestamp": nanos(row["minute"]),
                "SeverityText": row["severity"],
                "SeverityNumber": row["number"],
                "ServiceName": row["service"],
                "Body": row["body"],
                "ResourceAttributes": spell({**space, "k8s.pod.name": row["pod"]}),
                "LogAttributes": spell({"url.path": "/pay"}),
            }
            for row in logs()
        ),
    )
    write_tsv(
        directory / "otel_traces_raw.tsv",
        RAW_SPAN,
        (
            {
                "Timestamp": nanos(row["minute"]),
                "TraceId": row["trace"],
                "SpanId": row["span"],
                "ParentSpanId": row["parent"],
                "SpanName": row["name"],
                "SpanKind": row["kind"],
                "ServiceName": row["service"],
                "ResourceAttributes": spell(space),
                "SpanAttributes": spell({"rpc.system": "grpc"}),
                "Duration": row["duration"],
                "StatusCode": row["status"],
                "StatusMessage": row["message"],
            }
            for row in spans()
        ),
    )
    _write_metrics(directory / "metrics", "_raw", spell)
    return directory


def _write_metrics(directory: Path, suffix: str, spell: Callable[[dict[str, Any]], str] | None) -> None:
    directory.mkdir()
    pods = ["metric_name", "timestamp", "value", "pod_name", "namespace", *(["tags"] if spell else [])]
    services = [*pods[:3], "service_name", "namespace", "bucket_le", *pods[5:], "metric_type", "status_code"]

    def spelled(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        plain = [{k: v for k, v in row.items() if k != "tags"} for row in rows]
        return [{**p, "tags": spell(r["tags"])} for p, r in zip(plain, rows, strict=True)] if spell else plain

    for pod in (PAYMENT_POD, CHECKOUT_POD):
        write_tsv(directory / f"pod_{pod}{suffix}.tsv", pods, spelled(pod_metrics(pod)))
    for service in ("checkout", "checkout-proxy"):
        write_tsv(directory / f"service_{service}{suffix}.tsv", services, spelled(service_metrics(service)))


def write_processed(directory: Path) -> Path:
    """The v0.1 layout: columns picked, durations in two units, no attribute maps."""
    directory.mkdir(parents=True)
    (directory / "ground_truth.yaml").write_text(
        json.dumps({"apiVersion": "itbench.io/v1", "kind": "GroundTruth", "spec": TRUTH})
    )
    write_alerts(directory / "alerts", envelope=True)
    write_tsv(
        directory / "k8s_events_shop_shop.tsv",
        (
            "timestamp namespace event_type reason message event_time event_count event_kind object_kind object_name "
            "object_namespace source_component"
        ).split(),
        (
            {
                "timestamp": stamp(minute),
                "namespace": "shop",
                "event_type": "ADDED",
                "event_kind": event["type"],
                "reason": event["reason"],
                "message": event["message"],
                "event_time": event["lastTimestamp"],
                "event_count": event["count"],
                "object_kind": event["involvedObject"]["kind"],
                "object_name": event["involvedObject"]["name"],
                "object_namespace": "shop",
                "source_component": "kubelet",
            }
            for minute, event in events()
        ),
    )
    write_tsv(
        directory / "k8s_objects_shop_chaos-mesh.tsv",
        "timestamp body namespace resource_type object_kind object_name api_version".split(),
        (
            {
                "timestamp": stamp(minute),
                "body": json.dumps(item),
                "namespace": "shop",
                "object_kind": item["kind"],
                "object_name": item["metadata"]["name"],
                "api_version": item["apiVersion"],
            }
            for minute in range(0, MINUTES, 5)
            for item in objects_at(minute)
        ),
    )
    write_tsv(
        directory / "otel_logs.tsv",
        (
            "timestamp trace_id span_id trace_flags severity_text severity_number service_name body k8s_namespace "
            "k8s_pod_name url_path"
        ).split(),
        (
            {
                "timestamp": stamp(row["minute"]),
                "severity_text": row["severity"],
                "severity_number": row["number"],
                "service_name": row["service"],
                "body": row["body"],
                "k8s_namespace": "shop",
                "k8s_pod_name": row["pod"],
            }
            for row in logs()
        ),
    )
    write_tsv(
        directory / "otel_traces.tsv",
        (
            "timestamp trace_id span_id parent_span_id span_name span_kind service_name duration duration_ms "
            "status_code status_message"
        ).split(),
        (
            {
                "timestamp": stamp(row["minute"]),
                "trace_id": row["trace"],
                "span_id": row["span"],
                "parent_span_id": row["parent"],
                "span_name": row["name"],
                "span_kind": "SPAN_KIND_SERVER",
                "service_name": row["service"],
                "duration": row["duration"],
                "duration_ms": row["duration"] / 1e6,
                "status_code": f"STATUS_CODE_{row['status'].upper()}",
                "status_message": row["message"],
            }
            for row in spans()
        ),
    )
    _write_metrics(directory / "metrics", "", None)
    return directory


def write_nested(root: Path) -> Path:
    """The way data sets are published: versions and identifiers above the scenario."""
    return write_raw(root / "snapshots" / "sre" / "v0.2-0000" / "Scenario-7", spelling="json")


def write_loose(directory: Path) -> Path:
    """A scenario as published: no alerts directory, recorder metadata beside a single capture in the root."""
    write_raw(directory, spelling="go")
    for path in (directory / "alerts").iterdir():
        path.unlink()
    (directory / "alerts").rmdir()
    (directory / "status.json").write_text('{"state": "done"}')
    (directory / "assertion.json").write_text('{"alerts": "none of these are alerts"}')
    for minute in range(5, MINUTES):
        name = at(minute).strftime("alerts_in_alerting_state_%Y-%m-%dT%H%M%S.000000Z.json")
        (directory / name).write_text(json.dumps({"alerts": alerts_at(minute)}))
    return directory


def write_recorder(directory: Path) -> Path:
    """ITBench's present recorder: tables one directory down, metrics in two directories, everything as Go prints it.

    The rows of all metrics of a service are below the header of the first. A shorter copy is in `lite/`.
    """
    write_raw(directory, spelling="go")
    raw = directory / "raw"
    (raw / "metrics_pod").mkdir(parents=True)
    (raw / "metrics_service").mkdir()
    for path in sorted(directory.glob("*.tsv")):
        text = path.read_text()
        for minute in range(MINUTES):
            text = text.replace(nanos(minute), at(minute).strftime("%Y-%m-%d %H:%M:%S.123456789 +0000 UTC"))
        (raw / path.name).write_text(text)
        path.unlink()
    for path in sorted((directory / "metrics").iterdir()):
        kind = path.name.partition("_")[0]
        if kind == "service":
            _write_service_rows(path, raw / "metrics_service" / path.name)
        else:
            path.rename(raw / "metrics_pod" / path.name)
        path.unlink(missing_ok=True)
    (directory / "metrics").rmdir()
    (directory / "lite").mkdir()
    write_tsv(directory / "lite" / "k8s_events.tsv", ["timestamp", "body", "namespace"], [])
    return directory


def _write_service_rows(source: Path, target: Path) -> None:
    with source.open(newline="") as handle:
        rows = list(csv.DictReader(handle, delimiter="\t"))
    for row in rows:
        tags = {"le": row["bucket_le"]} if row["bucket_le"] else {"status_code": row["status_code"]}
        row.update(bucket_le=row["bucket_le"] or row["status_code"], tags=go_map(tags))
    write_tsv(
        target, ["metric_name", "timestamp", "value", "service_name", "namespace", "bucket_le", "tags"], _without(rows)
    )


def _without(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if k not in ("metric_type", "status_code")} for row in rows]


LAYOUTS: dict[str, Callable[[Path], Path]] = {
    "raw-python": lambda root: write_raw(root / "Scenario-7"),
    "raw-json": lambda root: write_raw(root / "sre" / "Scenario-7", spelling="json"),
    "raw-go": lambda root: write_raw(root / "Scenario-7", spelling="go"),
    "processed": lambda root: write_processed(root / "Scenario-7"),
    "nested": write_nested,
    "recorder": lambda root: write_recorder(root / "Scenario-7"),
    "loose-alerts": lambda root: write_loose(root / "Scenario-7"),
}
