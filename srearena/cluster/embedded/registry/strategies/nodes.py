"""Nodes: what they offer is what they have, unless they say otherwise."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.strategies.amounts import reading, settle
from srearena.cluster.embedded.registry.strategies.parts import fill, part
from srearena.cluster.embedded.registry.strategy import Strategy, WriteContext

_NODE_INFO = dict.fromkeys(
    (
        "machineID",
        "systemUUID",
        "bootID",
        "kernelVersion",
        "osImage",
        "containerRuntimeVersion",
        "kubeletVersion",
        "kubeProxyVersion",
        "operatingSystem",
        "architecture",
    ),
    "",
)


def _default(obj: Obj) -> None:
    spec = part(obj, "spec")
    if spec.get("podCIDR") and (spec.get("podCIDRs") or [None])[0] != spec["podCIDR"]:
        spec["podCIDRs"] = [spec["podCIDR"]]
    elif spec.get("podCIDRs") and not spec.get("podCIDR"):
        spec["podCIDR"] = spec["podCIDRs"][0]
    _default_status(part(obj, "status"))


def _default_status(status: Obj) -> None:
    settle(status, "capacity", "allocatable")
    if status.get("allocatable") is None and status.get("capacity") is not None:
        status["allocatable"] = dict(status["capacity"])
    part(part(status, "daemonEndpoints"), "kubeletEndpoint").setdefault("Port", 0)
    fill(part(status, "nodeInfo"), _NODE_INFO)


def _prepare_status(new: Obj, old: Obj, context: WriteContext) -> None:
    if new.get("status") is not None:
        _default_status(new["status"])


STRATEGIES = {
    "nodes": Strategy(default=reading(_default), prepare_status=_prepare_status, keeps_status_on_create=True),
}
