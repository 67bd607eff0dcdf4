"""From a metric to a number of replicas: what pods use, against what they asked for or may use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

from srearena.cluster.embedded.controllers.pod_metrics import PodMetrics
from srearena.cluster.embedded.controllers.scale_target import ScaleTarget
from srearena.cluster.embedded.durations import parse_time
from srearena.cluster.embedded.objects import Obj, condition, dig, is_terminating, labels_of, name_of, namespace_of
from srearena.cluster.embedded.quantity import Format, Quantity, parse
from srearena.cluster.embedded.store import Store

TOLERANCE = 0.1
_STARTING_SECONDS = 300.0
_READY_DELAY = 30.0


class MetricFailure(Exception):
    """A metric could not be had; `message` is what the condition says, `summary` what the event sums up."""

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
    pod: Obj
    milli: int


def propose(metric: Obj, target: ScaleTarget, store: Store, metrics: PodMetrics, now: float) -> Proposal:
    """How many replicas one metric of the spec asks for."""
    match metric.get("type"):
        case "Resource":
            return _resource(metric["resource"], "", target, store, metrics, now)
        case "ContainerResource":
            source = metric["containerResource"]
            return _resource(source, source["container"], target, store, metrics, now)
        case "Pods" | "Object":
            kind = str(metric.get("type"))
            name = dig(metric, kind.lower(), "metric", "name", default="")
            raise _no_api(kind, name, "custom.metrics.k8s.io")
        case _:
            name = dig(metric, "external", "metric", "name", default="")
            raise _no_api("External", name, "external.metrics.k8s.io")


def _no_api(kind: str, name: str, group: str) -> MetricFailure:
    api = "external" if kind == "External" else "custom"
    cause = f"unable to fetch metrics from {api} metrics API: no {group} API is registered"
    message = f"unable to get metric {name}: {cause}"
    reason = {"Pods": "FailedGetPodsMetric", "Object": "FailedGetObjectMetric"}.get(kind, "FailedGetExternalMetric")
    return MetricFailure(reason, message, f"failed to get {kind.lower()} metric value: {message}")


def _resource(
    source: Obj, container: str, target: ScaleTarget, store: Store, metrics: PodMetrics, now: float
) -> Proposal:
    resource = source["name"]
    reason = "FailedGetContainerResourceMetric" if container else "FailedGetResourceMetric"
    pods = [
        pod
        for pod in store.objects("pods", namespace_of(target.obj))
        if target.selector.matches(labels_of(pod))
        and not is_terminating(pod)
        and dig(pod, "status", "phase") != "Failed"
    ]
    by_request = source["target"].get("averageUtilization") is not None
    noun = "utilization" if by_request else "usage"

    def failure(cause: str) -> MetricFailure:
        message = f"failed to get {resource} {noun}: {cause}"
        return MetricFailure(reason, message, f"failed to get {resource} resource metric value: {message}")

    if not pods:
        raise failure("no pods returned by selector while calculating replica count")
    usage = {name_of(pod): _used(metrics, pod, resource, container) for pod in pods}
    if all(used is None for used in usage.values()):
        raise failure(f"unable to get metrics for resource {resource}: no metrics returned from resource metrics API")
    ready, ignored, missing = _grouped(pods, usage, resource, now)
    if not ready:
        raise failure("did not receive metrics for targeted pods (pods might be unready)")
    return _proposal(source, container, target, ready, ignored, missing, failure_of=failure)


def _used(metrics: PodMetrics, pod: Obj, resource: str, container: str) -> int | None:
    found = metrics.pod_usage(pod)
    if found is None:
        return None
    chosen = [use for name, use in found.items() if not container or name == container]
    if resource == "cpu":
        return round(sum(use.cores for use in chosen) * 1000)
    return sum(use.working_set for use in chosen) * 1000


def _grouped(
    pods: list[Obj], usage: dict[str, int | None], resource: str, now: float
) -> tuple[list[_Sample], list[Obj], list[Obj]]:
    """Pods that count, pods that are still starting, and pods nothing is known of."""
    ready: list[_Sample] = []
    ignored: list[Obj] = []
    missing: list[Obj] = []
    for pod in pods:
        used = usage[name_of(pod)]
        if dig(pod, "status", "phase") == "Pending" or (resource == "cpu" and _starting(pod, now)):
            ignored.append(pod)
        elif used is None:
            missing.append(pod)
        else:
            ready.append(_Sample(pod, used))
    return ready, ignored, missing


def _starting(pod: Obj, now: float) -> bool:
    verdict = condition(pod, "Ready")
    begun = dig(pod, "status", "startTime")
    if verdict is None or begun is None:
        return True
    changed = parse_time(verdict.get("lastTransitionTime") or begun)
    if parse_time(begun) + _STARTING_SECONDS > now:
        return verdict.get("status") == "False" or changed + _READY_DELAY > now
    return verdict.get("status") == "False" and parse_time(begun) + _READY_DELAY > changed


def _proposal(
    source: Obj,
    container: str,
    target: ScaleTarget,
    ready: list[_Sample],
    ignored: list[Obj],
    missing: list[Obj],
    *,
    failure_of: Callable[[str], MetricFailure],
) -> Proposal:
    resource = source["name"]
    percent = source["target"].get("averageUtilization")
    if percent is not None:
        asked = {name_of(s.pod): _request(s.pod, resource, container, failure_of) for s in ready}
        others = {name_of(pod): _request(pod, resource, container, failure_of) for pod in (*ignored, *missing)}
        total = sum(asked.values()) or 1
        current = sum(s.milli for s in ready) * 100 // total
        ratio = current / percent
        goal = {name: request * percent / 100 for name, request in {**asked, **others}.items()}
        average = sum(s.milli for s in ready) // len(ready)
        value: Obj = {"averageUtilization": current, "averageValue": _text(resource, average)}
        name = f"{resource} resource utilization (percentage of request)"
    else:
        wanted = parse(source["target"]["averageValue"]).milli_value()
        average = sum(s.milli for s in ready) // len(ready)
        ratio = average / wanted
        goal = {name_of(pod): float(wanted) for pod in (*[s.pod for s in ready], *ignored, *missing)}
        value = {"averageValue": _text(resource, average)}
        name = f"{resource} resource"
    if container:
        name = f"{resource} container resource{name.removeprefix(f'{resource} resource')}"
    status_key = "containerResource" if container else "resource"
    shown: Obj = {"name": resource, "current": value}
    if container:
        shown["container"] = container
    status: Obj = {"type": status_key[0].upper() + status_key[1:], status_key: shown}
    replicas = _replicas(ratio, target.wanted, ready, ignored, missing, goal)
    return Proposal(replicas, name, status)


def _replicas(
    ratio: float, current: int, ready: list[_Sample], ignored: list[Obj], missing: list[Obj], goal: dict[str, float]
) -> int:
    if not ignored and not missing:
        return current if abs(ratio - 1) <= TOLERANCE else ceil(ratio * len(ready) - 1e-9)
    # The unknown counts against moving: as idle when growing, as fully used when shrinking.
    used = {name_of(sample.pod): float(sample.milli) for sample in ready}
    for pod in missing:
        used[name_of(pod)] = goal[name_of(pod)] if ratio < 1 else 0.0
    if ratio > 1:
        for pod in ignored:
            used[name_of(pod)] = 0.0
    again = sum(used.values()) / (sum(goal[name] for name in used) or 1)
    if abs(again - 1) <= TOLERANCE or (ratio < 1) != (again < 1):
        return current
    proposed = ceil(again * len(used) - 1e-9)
    return current if (again < 1 and proposed > current) or (again > 1 and proposed < current) else proposed


def _request(pod: Obj, resource: str, container: str, failure_of: Callable[[str], MetricFailure]) -> int:
    total = 0
    for entry in dig(pod, "spec", "containers", default=()):
        if container and entry.get("name") != container:
            continue
        request = dig(entry, "resources", "requests", resource)
        if request is None:
            where = f"container {entry.get('name')} of Pod {name_of(pod)}"
            raise failure_of(f"missing request for {resource} in {where}")
        total += parse(request).milli_value()
    return total


def _text(resource: str, milli: int) -> str:
    if resource == "cpu":
        return str(Quantity.of_milli(milli))
    return str(Quantity.of(milli // 1000, Format.DECIMAL_SI))
