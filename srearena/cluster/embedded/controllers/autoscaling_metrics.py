"""The replica calculator of the autoscaler: usage against requests or target values.

Pods that are not ready or have no metrics count conservatively: as idle when scaling up, as fully used when scaling
down. A ratio within 10 % of one changes nothing. Errors are worded as the real calculator words them, since
they end up in conditions and events.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import ceil

from srearena.cluster.embedded.controllers.pod_metrics import NoMetrics, PodMetrics
from srearena.cluster.embedded.controllers.scale_target import ScaleTarget
from srearena.cluster.embedded.controllers.selector_text import printed_selector
from srearena.cluster.embedded.durations import parse_time
from srearena.cluster.embedded.objects import Obj, condition, dig, is_terminating, labels_of, name_of, namespace_of
from srearena.cluster.embedded.quantity import Quantity, parse
from srearena.cluster.embedded.registry.strategies.pod_resources import aggregate
from srearena.cluster.embedded.store import Store

TOLERANCE = 0.1
_STARTING_SECONDS = 300.0
_READINESS_DELAY = 30.0


class MetricFailure(Exception):
    """A metric is unavailable; `message` is for condition and event, `summary` for the combined error."""

    def __init__(self, reason: str, message: str, summary: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.summary = summary


@dataclass(slots=True, frozen=True)
class Proposal:
    replicas: int
    name: str
    status: Obj


@dataclass(slots=True, frozen=True)
class _Sample:
    milli: int
    at: float
    window: float


@dataclass(slots=True)
class _Groups:
    """Usage of the ready pods, and the names of unready pods and of pods without metrics."""

    used: dict[str, int] = field(default_factory=dict)
    unready: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


class _Problem(Exception):
    """Why a number cannot be computed."""


def propose(metric: Obj, target: ScaleTarget, store: Store, metrics: PodMetrics, now: float) -> Proposal:
    """How many replicas one metric of the spec asks for."""
    kind = metric.get("type", "")
    if kind == "Resource":
        return _resource(metric["resource"], "", target, store, metrics, now)
    if kind == "ContainerResource":
        source = metric["containerResource"]
        return _resource(source, source["container"], target, store, metrics, now)
    raise _without_api(kind, metric, namespace_of(target.obj))


# Metrics that no API of this cluster serves


def _without_api(kind: str, metric: Obj, namespace: str) -> MetricFailure:
    source: Obj = metric.get(kind.lower()) or {}
    name = dig(source, "metric", "name", default="")
    custom = "unable to fetch metrics from custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered"
    if kind == "Pods":
        message = f"unable to get metric {name}: {custom}"
        return MetricFailure("FailedGetPodsMetric", message, f"failed to get pods metric value: {message}")
    if kind == "Object":
        about = source.get("describedObject") or {}
        message = f"unable to get metric {name}: {about.get('kind')} on {namespace} {about.get('name')}/{custom}"
        summary = f"failed to get object metric value: failed to get {name} object metric: {message}"
        return MetricFailure("FailedGetObjectMetric", message, summary)
    selector = printed_selector(dig(source, "metric", "selector"))
    message = (
        f"unable to get external metric {namespace}/{name}/{selector}: unable to fetch metrics from external metrics "
        f"API: the server could not find the requested resource (get {name}.external.metrics.k8s.io)"
    )
    summary = f"failed to get {name} external metric value: failed to get {name} external metric: {message}"
    return MetricFailure("FailedGetExternalMetric", message, summary)


# Resources


def _resource(
    source: Obj, container: str, target: ScaleTarget, store: Store, metrics: PodMetrics, now: float
) -> Proposal:
    resource = source["name"]
    percent: int | None = source["target"].get("averageUtilization")
    try:
        samples = _samples(target, store, metrics, resource, container)
        pods = [p for p in store.objects("pods", namespace_of(target.obj)) if target.selector.matches(labels_of(p))]
        groups = _grouped(pods, samples, resource, now)
        if not groups.used:
            raise _Problem("did not receive metrics for targeted pods (pods might be unready)")
        if percent is not None:
            requests = {name_of(pod): _request(pod, resource, container) for pod in pods}
            return _by_utilization(source, container, percent, groups, requests, target.wanted)
        target_value = parse(source["target"].get("averageValue")).milli_value()
        return _by_value(source, container, target_value, groups, target.wanted)
    except _Problem as problem:
        noun = "utilization" if percent is not None else "usage"
        message = f"failed to get {resource} {noun}: {problem}"
        if container:
            summary = f"failed to get {container} container metric value: {message}"
            raise MetricFailure("FailedGetContainerResourceMetric", message, summary) from None
        summary = f"failed to get {resource} resource metric value: {message}"
        raise MetricFailure("FailedGetResourceMetric", message, summary) from None


def _samples(
    target: ScaleTarget, store: Store, metrics: PodMetrics, resource: str, container: str
) -> Mapping[str, _Sample]:
    if isinstance(metrics, NoMetrics):
        raise _Problem(
            f"unable to get metrics for resource {resource}: unable to fetch metrics from resource metrics API: "
            f"{metrics.problem}"
        )
    found: dict[str, _Sample] = {}
    for pod in store.objects("pods", namespace_of(target.obj)):
        usage = metrics.pod_usage(pod) if target.selector.matches(labels_of(pod)) else None
        chosen = [use for name, use in (usage or {}).items() if not container or name == container]
        if not chosen:
            continue
        if resource == "cpu":
            milli = round(sum(use.cores for use in chosen) * 1000)
        else:
            milli = sum(use.working_set for use in chosen) * 1000
        found[name_of(pod)] = _Sample(milli, min(use.at for use in chosen), max(use.window for use in chosen))
    if not found:
        raise _Problem(f"unable to get metrics for resource {resource}: no metrics returned from resource metrics API")
    return found


def _grouped(pods: list[Obj], samples: Mapping[str, _Sample], resource: str, now: float) -> _Groups:
    if not pods:
        raise _Problem("no pods returned by selector while calculating replica count")
    groups = _Groups()
    for pod in pods:
        phase = dig(pod, "status", "phase")
        sample = samples.get(name_of(pod))
        if is_terminating(pod) or phase == "Failed":
            continue
        if phase == "Pending":
            groups.unready.append(name_of(pod))
        elif sample is None:
            groups.missing.append(name_of(pod))
        elif resource == "cpu" and _is_starting(pod, sample, now):
            groups.unready.append(name_of(pod))
        else:
            groups.used[name_of(pod)] = sample.milli
    return groups


def _is_starting(pod: Obj, sample: _Sample, now: float) -> bool:
    """Whether to ignore a pod's CPU usage: it is not ready, or was not for the whole measured window."""
    verdict = condition(pod, "Ready")
    begun = dig(pod, "status", "startTime")
    if verdict is None or begun is None:
        return True
    unready = verdict.get("status") == "False"
    changed = parse_time(verdict.get("lastTransitionTime") or begun)
    if parse_time(begun) + _STARTING_SECONDS > now:
        return unready or sample.at < changed + sample.window
    return unready and parse_time(begun) + _READINESS_DELAY > changed


def _request(pod: Obj, resource: str, container: str) -> int:
    """What the pod as a whole, its containers together, or one of them requested for."""
    if dig(pod, "spec", "resources", "requests") and not container:
        spec = pod["spec"]
        requested = {**aggregate(spec, "requests"), **{k: parse(v) for k, v in spec["resources"]["requests"].items()}}
        if resource not in requested:
            raise _Problem(f"missing pod-level request for {resource} in Pod {name_of(pod)}")
        return requested[resource].milli_value()
    entries = [
        *dig(pod, "spec", "containers", default=()),
        *(c for c in dig(pod, "spec", "initContainers", default=()) if c.get("restartPolicy") == "Always"),
    ]
    total = 0
    for entry in entries:
        if container and entry.get("name") != container:
            continue
        request = dig(entry, "resources", "requests", resource)
        if request is None:
            raise _Problem(f"missing request for {resource} in container {entry.get('name')} of Pod {name_of(pod)}")
        total += parse(request).milli_value()
    return total


def _by_utilization(
    source: Obj, container: str, percent: int, groups: _Groups, requests: Mapping[str, int], current: int
) -> Proposal:
    def ratio(used: Mapping[str, int]) -> tuple[float, int]:
        requested = sum(requests[name] for name in used)
        if not requested:
            raise _Problem("no metrics returned matched known pods")
        utilization = sum(used.values()) * 100 // requested
        return utilization / percent, utilization

    _, utilization = ratio(groups.used)
    full = max(100, percent)
    replicas = _replicas(groups, current, lambda used: ratio(used)[0], lambda name: requests[name] * full // 100)
    average = sum(groups.used.values()) // len(groups.used)
    value = {"averageUtilization": utilization, "averageValue": str(Quantity.of_milli(average))}
    name = f"{source['name']} resource utilization (percentage of request)"
    return Proposal(replicas, name, _status(source, container, value))


def _by_value(source: Obj, container: str, target_value: int, groups: _Groups, current: int) -> Proposal:
    def ratio(used: Mapping[str, int]) -> float:
        return (sum(used.values()) // len(used)) / target_value

    replicas = _replicas(groups, current, ratio, lambda name: target_value)
    average = sum(groups.used.values()) // len(groups.used)
    value: Obj = {"averageValue": str(Quantity.of_milli(average))}
    return Proposal(replicas, f"{source['name']} resource", _status(source, container, value))


def _replicas(
    groups: _Groups, current: int, ratio_of: Callable[[Mapping[str, int]], float], full: Callable[[str], int]
) -> int:
    ratio = ratio_of(groups.used)
    growing = ratio > 1
    if not groups.missing and not (growing and groups.unready):
        return current if abs(ratio - 1) <= TOLERANCE else ceil(ratio * len(groups.used))
    used = dict(groups.used)
    if ratio < 1:
        used.update({name: full(name) for name in groups.missing})
    elif growing:
        used.update(dict.fromkeys((*groups.missing, *groups.unready), 0))
    again = ratio_of(used)
    if abs(again - 1) <= TOLERANCE or (ratio < 1 < again) or (again < 1 < ratio):
        return current  # too little, or the other way round
    proposed = ceil(again * len(used))
    turned = (again < 1 and proposed > current) or (again > 1 and proposed < current)
    return current if turned else proposed


def _status(source: Obj, container: str, value: Obj) -> Obj:
    shown: Obj = {"name": source["name"], "current": value}
    if container:
        return {"type": "ContainerResource", "containerResource": {**shown, "container": container}}
    return {"type": "Resource", "resource": shown}
