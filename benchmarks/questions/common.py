"""Questions that have the same answer in every healthy application."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from datetime import datetime
from typing import Any

from benchmarks.questions.engineer import Doubt, Engineer, Question, first_few, must, must_agree

_METHOD = re.compile(r"\w+\.\w+/\w+$")
"""A method of gRPC at the end of a span's name; what is before it depends on the language (`grpc.`, `/`, `POST /`)."""
_FEW = 30
"""Spans of a kind from which a mean is worth comparing."""


def pods_are_ready(engineer: Engineer) -> None:
    """Is every pod ready?"""
    unready = []
    for pod in engineer.pods():
        conditions = {one["type"]: one["status"] for one in pod["status"].get("conditions") or ()}
        if conditions.get("Ready") != "True" and pod["status"]["phase"] != "Succeeded":
            unready.append(pod["metadata"]["name"])
    must(not unready, f"not ready: {first_few(unready)}")


def nothing_restarts(engineer: Engineer) -> None:
    """Has anything restarted under load?"""
    metric = "kube_pod_container_status_restarts_total"
    found = engineer.query(f'increase({metric}{{namespace="{engineer.namespace}"}}[{engineer.window}]) > 0')
    must(not found, f"restarted: {first_few(one.labels['pod'] for one in found)}")


def nothing_warns(engineer: Engineer) -> None:
    """Are there warnings among the events of this time?"""
    since = engineer.now - 60 * engineer.minutes
    late = []
    for event in engineer.api.list("events", engineer.namespace, fields="type=Warning"):
        text = event.get("lastTimestamp") or event.get("eventTime") or event["metadata"]["creationTimestamp"]
        if datetime.fromisoformat(text).timestamp() > since:
            late.append(f"{event['reason']} {event['message'][:80]}")
    must(not late, first_few(late))


def nothing_alerts(engineer: Engineer) -> None:
    """Does an alert fire?"""
    firing = engineer.query('ALERTS{alertstate="firing",alertname!="Watchdog"}')
    must(not firing, f"alerts: {first_few(one.labels['alertname'] for one in firing)}")


def targets_are_up(engineer: Engineer) -> None:
    """Is every target scraped?"""
    down = engineer.query("up == 0")
    must(not down and engineer.query_one("count(up)") > 5, f"down: {first_few(one.labels for one in down)}")


def users_are_served(engineer: Engineer) -> None:
    """Do the journeys of users work?"""
    frontend = engineer.application.frontend
    must(frontend is not None and bool(engineer.application.journeys), "there are no journeys")
    assert frontend is not None
    for journey in engineer.application.journeys:
        complaints = journey.play(engineer.api, frontend, engineer.namespace)
        must(not complaints, first_few(complaints))


def hardly_anything_fails(engineer: Engineer) -> None:
    """How many calls fail?"""
    bad, every = engineer.calls('status_code="STATUS_CODE_ERROR"'), engineer.calls("")
    must(every > 0.5, f"{every:g} calls a second")
    must(bad <= 0.01 * every, f"{bad:g} of {every:g} calls a second fail")


def callers_and_callees_agree(engineer: Engineer) -> None:
    """Are as many calls received as are sent?"""
    sides: dict[str, defaultdict[str, float]] = {}
    for kind in ("CLIENT", "SERVER"):
        expression = f'rate(traces_span_metrics_calls_total{{span_kind="SPAN_KIND_{kind}"}}[{engineer.window}])'
        found = engineer.query(f"sum by (span_name) ({expression})")
        sides[kind] = defaultdict(float)
        for one in found:
            method = _METHOD.search(one.labels["span_name"])
            if method is not None:
                sides[kind][method[0]] += one.value
    both = [name for name in sides["CLIENT"] if name in sides["SERVER"]]
    for name in both:
        must_agree(sides["CLIENT"][name], sides["SERVER"][name], f"calls of {name}, sent and received", absolute=0.05)


def histograms_count_calls(engineer: Engineer) -> None:
    """Do the histograms of durations have as many values as there were calls?"""
    for one in engineer.query("sum by (service_name) (traces_span_metrics_calls_total)"):
        service = one.labels["service_name"]
        count = engineer.total(f'traces_span_metrics_duration_milliseconds_count{{service_name="{service}"}}')
        bucket = engineer.total(
            f'traces_span_metrics_duration_milliseconds_bucket{{service_name="{service}",le="+Inf"}}'
        )
        must_agree(one.value, count, f"calls and durations of {service}", absolute=2)
        must_agree(bucket, count, f"the last bucket and the count of {service}", absolute=0)


def requests_are_fast(engineer: Engineer) -> None:
    """Is the 95th percentile of durations within the objective?"""
    buckets = f"rate(traces_span_metrics_duration_milliseconds_bucket[{engineer.window}])"
    found = engineer.query(f"histogram_quantile(0.95, sum by (le, service_name) ({buckets}))")
    limit = 1000 * engineer.application.objectives.p95_seconds
    slow = [f"{one.labels['service_name']} {one.value:g} ms" for one in found if one.value > limit]
    must(bool(found) and not slow, f"slow: {first_few(slow)}")


def _spans(engineer: Engineer) -> dict[str, dict[str, Any]]:
    """The newest spans of all services by identifier, with the service under `service`."""
    spans = {}
    for service in engineer.services():
        for trace in engineer.traces(service):
            for span in trace["spans"]:
                span["service"] = trace["processes"][span["processID"]]["serviceName"]
                spans[f"{span['traceID']} {span['spanID']}"] = span
    return spans


def _tag(span: dict[str, Any], name: str) -> Any:
    return next((tag["value"] for tag in span["tags"] if tag["key"] == name), None)


def traces_are_whole(engineer: Engineer) -> None:
    """Does every span belong to its parent, and lie in the past?"""
    spans = _spans(engineer)
    must(len(spans) > _FEW, f"{len(spans)} spans")
    now = engineer.now * 1e6 + 1e6
    for span in spans.values():
        must(span["startTime"] + span["duration"] <= now, f"{span['operationName']} ends in the future")
        for reference in span.get("references") or ():
            parent = spans.get(f"{reference['traceID']} {reference['spanID']}")
            if parent is not None and reference["refType"] == "CHILD_OF":
                # Consumers of messages begin after their producer; a second of slack is the rounding of spans.
                must(span["startTime"] >= parent["startTime"] - 1000, f"{span['operationName']} begins too early")


def metrics_and_traces_agree(engineer: Engineer) -> None:
    """Do traces show the failures and the durations that metrics show?"""
    durations: dict[tuple[str, str], list[float]] = defaultdict(list)
    errors: dict[tuple[str, str], int] = defaultdict(int)
    for span in _spans(engineer).values():
        if _tag(span, "span.kind") in ("server", "client"):
            key = (span["service"], f"{span['operationName']}|{str(_tag(span, 'span.kind')).upper()}")
            durations[key].append(span["duration"] / 1000)
            errors[key] += _tag(span, "error") in (True, "true")
    base = "traces_span_metrics_duration_milliseconds"
    by = "sum by (service_name, span_name, span_kind)"
    expression = f"{by} (increase({base}_sum[{engineer.window}])) / {by} (increase({base}_count[{engineer.window}]))"
    means = {
        (
            one.labels["service_name"],
            f"{one.labels['span_name']}|{one.labels['span_kind'].rpartition('_')[2]}",
        ): one.value
        for one in engineer.query(expression)
    }
    compared = 0
    for key, values in durations.items():
        if len(values) < _FEW or key not in means or math.isnan(means[key]):
            continue
        mean = math.fsum(values) / len(values)
        spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))
        allowed = 4 * spread / math.sqrt(len(values)) + 0.15 * means[key] + 0.05
        must(abs(mean - means[key]) <= allowed, f"{key}: {mean:g} ms in traces, {means[key]:g} ms in metrics")
        must(errors[key] <= 0.05 * len(values) + 3, f"{key}: {errors[key]} of {len(values)} traces have errors")
        compared += 1
    must(compared > 0, "no span is frequent enough to be compared")


def kubectl_and_loki_agree(engineer: Engineer) -> None:
    """Has the store of logs the lines that kubectl logs shows?"""
    selector = f'{{namespace="{engineer.namespace}"}}'
    counts = [one for one in engineer.log_counts(selector) if 5 <= one.value <= 2000]
    for one in counts[:5]:
        pod = one.labels["pod"]
        containers = len(engineer.api.get("pods", pod, engineer.namespace)["spec"]["containers"])
        if containers > 1:
            continue
        lines = engineer.api.logs(pod, engineer.namespace, since=60 * engineer.minutes).splitlines()
        must_agree(one.value, len(lines), f"lines of {pod} in Loki and in its log", share=0.02, absolute=4)


def nothing_complains(engineer: Engineer) -> None:
    """Do logs have errors?"""
    selector = f'{{namespace="{engineer.namespace}"}} |~ "(?i)(exception|panic|fatal| error )"'
    found = [one for one in engineer.log_counts(selector) if one.value > 0]
    must(not found, f"errors: {first_few((one.labels['pod'], one.value) for one in found)}")


def metrics_and_objects_agree(engineer: Engineer) -> None:
    """Does kube-state-metrics know the pods that the API has?"""
    names = {pod["metadata"]["name"] for pod in engineer.pods()}
    found = engineer.query(f'kube_pod_info{{namespace="{engineer.namespace}"}}')
    must(names == {one.labels["pod"] for one in found}, "kube_pod_info has other pods than the API")


def services_have_endpoints(engineer: Engineer) -> None:
    """Does every Service lead somewhere?"""
    empty = []
    for service in engineer.api.list("services", engineer.namespace):
        name = service["metadata"]["name"]
        if service["spec"].get("selector"):
            slices = engineer.api.list(
                "endpointslices", engineer.namespace, labels=f"kubernetes.io/service-name={name}"
            )
            if not any(one["conditions"].get("ready") for part in slices for one in part.get("endpoints") or ()):
                empty.append(name)
    must(not empty, f"without endpoints: {first_few(empty)}")


def memory_is_within_limits(engineer: Engineer) -> None:
    """Is the memory of every container within its limit?"""
    used = f'container_memory_working_set_bytes{{namespace="{engineer.namespace}",container!="",container!="POD"}}'
    limit = f'kube_pod_container_resource_limits{{namespace="{engineer.namespace}",resource="memory"}}'
    by = "sum by (pod, container)"
    near = engineer.query(f"{by} ({used}) / {by} ({limit}) > 0.95")
    must(bool(engineer.query(used)) and not near, f"near their limit: {first_few(one.labels for one in near)}")


def processors_add_up(engineer: Engineer) -> None:
    """Do nodes use as much of the processor as their containers, and not much more?"""
    containers = engineer.rate('container_cpu_usage_seconds_total{container!="",container!="POD"}')
    nodes = engineer.rate('node_cpu_seconds_total{mode!="idle",mode!="iowait"}')
    must(0 < containers <= nodes * 1.02, f"containers use {containers:g} cores, nodes {nodes:g}")


def traffic_is_on_the_network(engineer: Engineer) -> None:
    """Do the interfaces of pods carry the traffic?"""
    received, sent = (
        engineer.rate(f'container_network_{way}_bytes_total{{namespace="{engineer.namespace}"}}')
        for way in ("receive", "transmit")
    )
    calls = engineer.calls("")
    must(min(received, sent) > 100 * calls, f"{received:g} bytes in, {sent:g} out, for {calls:g} calls a second")
    must_agree(received, sent, "bytes that pods receive and send", share=0.5)


QUESTIONS: tuple[Question, ...] = (
    pods_are_ready,
    nothing_restarts,
    nothing_warns,
    nothing_alerts,
    targets_are_up,
    hardly_anything_fails,
    callers_and_callees_agree,
    histograms_count_calls,
    requests_are_fast,
    traces_are_whole,
    metrics_and_traces_agree,
    kubectl_and_loki_agree,
    nothing_complains,
    metrics_and_objects_agree,
    services_have_endpoints,
    memory_is_within_limits,
    processors_add_up,
    traffic_is_on_the_network,
    users_are_served,
)

__all__ = ["QUESTIONS", "Doubt"]
