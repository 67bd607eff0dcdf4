"""Export of the logs, spans and metrics of a window from Loki, Jaeger and Prometheus to raw tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from srearena.observer.log_api import LogApi
from srearena.observer.metric_api import MetricApi
from srearena.observer.recording.log_lines import SEVERITIES, severity, span_id, trace_id
from srearena.observer.recording.raw_files import (
    LOG_COLUMNS,
    LOGS,
    METRIC_COLUMNS,
    TRACE_COLUMNS,
    TRACES,
    RawFiles,
    listing,
    log_row,
    mapping,
)
from srearena.observer.tables import Row
from srearena.observer.trace_api import TraceApi, span_rows
from srearena.observer.window import Window, format_timestamp

POD_LOGS = '{pod=~".+"}'
_STATUS = {"OK": "Ok", "ERROR": "Error"}
_CALLS, _BUCKETS = "traces_span_metrics_calls_total", "traces_span_metrics_duration_milliseconds_bucket"
_SERVICE_METRICS = {_CALLS: "error_rate", _BUCKETS: "duration_p95"}
_NODE_METRICS = ("kube_node_", "node_")
# Long labels that repeat other columns, or that nothing else in a recording refers to.
_DROPPED_LABELS = frozenset(("__name__", "uid", "metrics_path", "endpoint"))
_CONTAINER_IDS = frozenset(("id", "name"))
"""What cAdvisor calls a container; labels of these names in other metrics tell series apart (queues, requests)."""
_CADVISOR_METRICS = "container_"

_SERVICE_SERIES = f'__name__=~"{"|".join(_SERVICE_METRICS)}"'
_NODE_SERIES = '__name__=~"(kube_)?node_.+"'
_OBJECTS_PER_QUERY = 50  # chosen: the names are part of the address, which servers limit to some kilobytes

DeploymentOf = Callable[[str, str], str]
MeasuredObject = tuple[str, str]
"""Kind (pod, service or node) and name."""


def write_logs(source: LogApi, window: Window, files: RawFiles, deployment_of: DeploymentOf) -> int:
    """Write the logs of all pods; returns the number of lines."""
    count = 0
    columns_of: dict[str, dict[str, str]] = {}
    for count, line in enumerate(source.lines(window, POD_LOGS), 1):  # noqa: B007 - the last number is the count
        columns = columns_of.get(line.stream)
        if columns is None:
            columns = columns_of[line.stream] = _stream_columns(line.labels, deployment_of)
        level = severity(line.text)
        files.add(
            LOGS,
            LOG_COLUMNS,
            log_row(
                line.timestamp_ns,
                line.text,
                TraceId=trace_id(line.text),
                SpanId=span_id(line.text),
                SeverityText=level,
                SeverityNumber=str(SEVERITIES.get(level, 0)),
                **columns,
            ),
        )
    return count


def _stream_columns(labels: Mapping[str, str], deployment_of: DeploymentOf) -> dict[str, str]:
    """The columns that all lines of a stream share."""
    namespace, pod = labels.get("namespace", ""), labels.get("pod", "")
    service = labels.get("app") or labels.get("service_name") or labels.get("container", "")
    deployment = deployment_of(namespace, pod)
    resource = {
        "service.name": service,
        "k8s.namespace.name": namespace,
        "k8s.pod.name": pod,
        "k8s.container.name": labels.get("container", ""),
        "k8s.node.name": labels.get("node_name", ""),
        **({"k8s.deployment.name": deployment} if deployment else {}),
    }
    return {
        "resource": mapping(resource),
        "ServiceName": service,
        "LogAttributes": mapping({"log.iostream": labels.get("stream", "")}),
    }


def all_spans(source: TraceApi, window: Window) -> list[Row]:
    """Read every span of a window, ordered by time."""
    rows = [row for trace in source.traces(window) for row in span_rows(trace)]
    return sorted(rows, key=lambda row: (row["timestamp"], row["trace_id"], row["span_id"]))


def write_spans(spans: Collection[Row], files: RawFiles) -> int:
    """Write spans; returns their number."""
    resources: dict[tuple[Any, ...], str] = {}
    for row in spans:
        recorder = (row["service"], *row["resource"].items())
        resource = resources.get(recorder)
        if resource is None:
            resource = resources[recorder] = mapping({"service.name": row["service"], **row["resource"]})
        events = [dict(event) for event in row["events"]]
        timestamps = [_in_nanoseconds(event.pop("timestamp")) for event in events]
        names = [str(event.pop("event", event.pop("name", "event"))) for event in events]
        files.add(
            TRACES,
            TRACE_COLUMNS,
            {
                "Timestamp": _in_nanoseconds(row["timestamp"]),
                "TraceId": row["trace_id"],
                "SpanId": row["span_id"],
                "ParentSpanId": row["parent_span_id"],
                "SpanName": row["operation"],
                "SpanKind": str(row["kind"]).capitalize() or "Internal",
                "ServiceName": row["service"],
                "ResourceAttributes": resource,
                "SpanAttributes": mapping({k: v for k, v in row["tags"].items() if k != "internal.span.format"}),
                "Duration": str(row["duration_us"] * 1000),
                "StatusCode": _STATUS.get(row["status"], "Unset"),
                "StatusMessage": row["status_message"],
                "Events.Timestamp": listing(timestamps),
                "Events.Name": listing(names),
                "Events.Attributes": listing([{k: str(v) for k, v in event.items()} for event in events]),
                "Links.TraceId": "[]",
                "Links.SpanId": "[]",
                "Links.TraceState": "[]",
                "Links.Attributes": "[]",
            },
        )
    return len(spans)


def _in_nanoseconds(timestamp: str) -> str:
    """A time of `format_timestamp`, which is in microseconds, as `nanoseconds` writes it."""
    return f"{timestamp}000"


def write_metrics(source: MetricApi, window: Window, files: RawFiles, namespaces: Collection[str]) -> int:
    """Write the samples of pods and services in some namespaces, and of all nodes; returns their number."""
    selectors = (f'{{__name__="{name}"}}' for name in source.names(window))
    return _write_series(source, window, files, selectors, namespaces)


def write_metrics_of(
    source: MetricApi, window: Window, files: RawFiles, namespaces: Collection[str], objects: Collection[MeasuredObject]
) -> int:
    """Write the samples of these objects alone; returns their number."""
    count = 0
    ordered = sorted(objects)
    for start in range(0, len(ordered), _OBJECTS_PER_QUERY):
        some = ordered[start : start + _OBJECTS_PER_QUERY]
        count += _write_series(source, window, files, _selectors(some, namespaces), namespaces, set(some))
    return count


def measured_objects(source: MetricApi, window: Window, namespaces: Collection[str]) -> set[MeasuredObject]:
    """The objects with samples in a window, as `write_metrics` assigns series to them."""
    scope = f"namespace=~{_any_of(namespaces)}"
    pods = source.label_values(window, "pod", f'{{pod!="",{scope}}}')
    services = source.label_values(window, "service_name", f'{{{_SERVICE_SERIES},service_name!="",{scope}}}')
    nodes: set[str] = set()
    for exporter in _exporters_of_nodes(namespaces):
        nodes |= {*source.label_values(window, "node", f'{{{_NODE_SERIES},node!="",{exporter}}}')}
        instances = source.label_values(window, "instance", f'{{{_NODE_SERIES},node="",{exporter}}}')
        nodes |= {name.partition(":")[0] for name in instances}
    return {*(("pod", name) for name in pods), *(("service", n) for n in services), *(("node", n) for n in nodes)}


def _exporters_of_nodes(namespaces: Collection[str]) -> tuple[str, str]:
    """Matchers for series of nodes that belong to no pod: their exporter is none, or one in another namespace."""
    return 'pod=""', f'pod!="",namespace!~{_any_of(namespaces)}'


def _selectors(objects: Collection[MeasuredObject], namespaces: Collection[str]) -> Iterator[str]:
    """Selectors that together match every series of the objects once, and some of others."""
    names = {kind: [name for of, name in objects if of == kind] for kind in METRIC_COLUMNS}
    if names["pod"]:
        yield f"{{pod=~{_any_of(names['pod'])}}}"
    if names["service"]:
        yield f"{{{_SERVICE_SERIES},service_name=~{_any_of(names['service'])}}}"
    if names["node"]:
        for exporter in _exporters_of_nodes(namespaces):
            yield f"{{{_NODE_SERIES},node=~{_any_of(names['node'])},{exporter}}}"
            yield f'{{{_NODE_SERIES},node="",instance=~{_any_of(names["node"], "(:.*)?")},{exporter}}}'


def _any_of(names: Collection[str], suffix: str = "") -> str:
    """A regular expression for one of some names, quoted for PromQL."""
    alternatives = "|".join(re.escape(name).replace("\\", "\\\\").replace('"', '\\"') for name in sorted(names))
    return f'"({alternatives}){suffix}"'


def _write_series(
    source: MetricApi,
    window: Window,
    files: RawFiles,
    selectors: Iterable[str],
    namespaces: Collection[str],
    only: Collection[MeasuredObject] | None = None,
) -> int:
    count = 0
    times: dict[float, str] = {}  # many series are scraped at the same moment
    for series in (found for selector in selectors for found in source.series(window, selector)):
        if not series.points:
            continue
        for when, _ in series.points:
            if when not in times:
                times[when] = format_timestamp(when)
        labels = series.labels
        dropped = _DROPPED_LABELS | (_CONTAINER_IDS if series.metric.startswith(_CADVISOR_METRICS) else frozenset())
        for kind, name_of_owner, more in _owners(series.metric, labels, namespaces):
            if only is not None and (kind, name_of_owner) not in only:
                continue
            cells = {
                "metric_name": series.metric,
                f"{kind}_name": name_of_owner,
                "namespace": labels.get("namespace", ""),
                "tags": mapping({k: v for k, v in labels.items() if k not in dropped}),
                **more,
            }
            columns = METRIC_COLUMNS[kind]
            head, tail = [cells.get(column, "") for column in columns[:1]], [cells[column] for column in columns[3:]]
            rows = ([*head, times[when], value, *tail] for when, value in series.points)
            files.add_rows(f"metrics/{kind}_{name_of_owner}_raw.tsv", columns, rows)
            count += len(series.points)
    return count


def _owners(
    metric: str, labels: dict[str, Any], namespaces: Collection[str]
) -> Iterator[tuple[str, str, dict[str, str]]]:
    """The kind and name of the file that a series belongs to, with further columns."""
    selected = labels.get("namespace", "") in namespaces
    if metric in _SERVICE_METRICS:
        if selected and labels.get("service_name"):
            status = labels.get("status_code", "")
            failed = metric == _BUCKETS or status == "STATUS_CODE_ERROR"
            kind = _SERVICE_METRICS[metric] if failed else "request_rate"
            more = {"bucket_le": labels.get("le", ""), "metric_type": kind, "status_code": status}
            yield "service", labels["service_name"], more
    elif labels.get("pod") and selected:
        yield "pod", labels["pod"], {}
    elif metric.startswith(_NODE_METRICS) and (node := labels.get("node") or labels.get("instance")):
        yield "node", str(node).partition(":")[0], {}
