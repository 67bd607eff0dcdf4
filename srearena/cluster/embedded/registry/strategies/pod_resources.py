"""What a pod asks for as a whole: sums over its containers, pod-level resources, its quality-of-service class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.quantity import Quantity, add_resources, parse

HUGE_PAGES = "hugepages-"
_POD_LEVEL = ("cpu", "memory")
_QOS = ("cpu", "memory")


def is_pod_level(name: str) -> bool:
    """Whether a resource may be asked for by the pod as a whole."""
    return name in _POD_LEVEL or name.startswith(HUGE_PAGES)


def aggregate(spec: Mapping[str, Any], key: str) -> dict[str, Quantity]:
    """`requests` or `limits` over all containers: together while they run, at most while they start."""
    total: dict[str, Quantity] = {}
    for container in spec.get("containers") or ():
        total = add_resources(total, _amounts(container, key))
    sidecars: dict[str, Quantity] = {}
    starting: dict[str, Quantity] = {}
    for container in spec.get("initContainers") or ():
        own = _amounts(container, key)
        if container.get("restartPolicy") == "Always":
            total = add_resources(total, own)
            own = sidecars = add_resources(sidecars, own)
        else:
            own = add_resources(own, sidecars)
        _raise_to(starting, own)
    _raise_to(total, starting)
    return total


def _amounts(container: Mapping[str, Any], key: str) -> dict[str, Quantity]:
    listed = (container.get("resources") or {}).get(key)
    return {name: parse(value) for name, value in listed.items()} if listed else {}


def _raise_to(amounts: dict[str, Quantity], least: Mapping[str, Quantity]) -> None:
    for name, amount in least.items():
        if name not in amounts or amount > amounts[name]:
            amounts[name] = amount


def default_pod_level(spec: Obj) -> None:
    """Complete the resources a pod asks for as a whole from those of its containers."""
    resources = spec["resources"]
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    if limits or requests:
        for name, amount in aggregate(spec, "limits").items():
            if name.startswith(HUGE_PAGES) and name not in requests and name not in limits:
                resources["limits"] = limits = {**limits, name: str(amount)}
    if not limits:
        return
    missing = {
        name: str(amount)
        for name, amount in aggregate(spec, "requests").items()
        if name in _POD_LEVEL and name not in requests
    }
    for name, amount in limits.items():
        if is_pod_level(name) and name not in requests:
            missing.setdefault(name, amount)
    if missing:
        resources["requests"] = {**requests, **missing}


def qos_class(spec: Mapping[str, Any]) -> str:
    """Guaranteed, Burstable or BestEffort, from what is requested and limited."""
    whole = spec.get("resources")
    if whole is not None:
        holders = [{"resources": whole}]
    else:
        holders = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    requests: dict[str, int] = {}
    limits: dict[str, int] = {}
    guaranteed = True
    for holder in holders:
        resources = holder.get("resources") or {}
        _add_positive(requests, resources.get("requests"))
        limited = _add_positive(limits, resources.get("limits"))
        if limited < len(_QOS) and not (whole is not None and not resources.get("limits")):
            guaranteed = False
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if guaranteed and requests == limits else "Burstable"


def _add_positive(total: dict[str, int], listed: Mapping[str, Any] | None) -> int:
    """Add up the resources that decide the class; returns how many of them were listed."""
    found = 0
    if listed:
        for name in _QOS:
            if name in listed and (amount := parse(listed[name]).nano) > 0:
                total[name] = total.get(name, 0) + amount
                found += 1
    return found
