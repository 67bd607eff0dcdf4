"""Nodes: what they offer is what they have, unless they say otherwise."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.errors import FieldError, FieldErrorKind
from srearena.cluster.embedded.registry.strategies import checks
from srearena.cluster.embedded.registry.strategies.amounts import reading, settle
from srearena.cluster.embedded.registry.strategies.checks import Problems
from srearena.cluster.embedded.registry.strategies.parts import fill, items, part
from srearena.cluster.embedded.registry.strategies.pod_scheduling import TAINT_EFFECTS
from srearena.cluster.embedded.registry.strategies.resource_names import amount
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


def _validate(obj: Obj) -> Problems:
    problems: Problems = []
    spec = obj.get("spec") or {}
    _taints(problems, items(spec, "taints"))
    for index, value in enumerate(items(spec, "podCIDRs")):
        checks.cidr(problems, f"spec.podCIDRs[{index}]", value)
    return problems


def _taints(problems: Problems, taints: list[Obj]) -> None:
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        # The real paths say metadata here.
        where = f"metadata.taints[{index}]"
        key, value, effect = (taint.get(name) or "" for name in ("key", "value", "effect"))
        checks.qualified_name(problems, f"{where}.key", key)
        wrong = checks.label_value_texts(value)
        if wrong:
            problems.append(FieldError.invalid(f"{where}.value", value, ";".join(wrong)))
        checks.required_one_of(problems, f"{where}.effect", effect, TAINT_EFFECTS)
        if (key, effect) in seen:
            shown = {"Key": key, "Value": value, "Effect": effect, "TimeAdded": taint.get("timeAdded")}
            detail = "taints must be unique by key and effect pair"
            problems.append(FieldError(FieldErrorKind.DUPLICATE, where, shown, detail))
        seen.add((key, effect))


def _validate_new(obj: Obj) -> Problems:
    """A node registers with its status."""
    problems: Problems = []
    for key in ("capacity", "allocatable"):
        for name, text in ((obj.get("status") or {}).get(key) or {}).items():
            amount(problems, f"status.{key}.{name}", name, text)
    return problems


def _validate_update(new: Obj, old: Obj) -> Problems:
    problems: Problems = []
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    for key, shown in (("podCIDRs", "podCIDR"), ("providerID", "providerID")):
        if before.get(key) and spec.get(key) != before[key]:
            text = f'node updates may not change {shown} except from "" to valid'
            problems.append(FieldError.forbidden(f"spec.{key}", text))
    return problems


STRATEGIES = {
    "nodes": Strategy(
        default=reading(_default),
        prepare_status=_prepare_status,
        validate=_validate,
        validate_create=_validate_new,
        validate_update=_validate_update,
        keeps_status_on_create=True,
    ),
}
