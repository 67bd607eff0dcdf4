"""Pods on the write path: defaults, the status they are born with, how long a deletion waits for them."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj, dig, labels_of
from srearena.cluster.embedded.registry.strategies import pod_updates as updates
from srearena.cluster.embedded.registry.strategies.amounts import reading
from srearena.cluster.embedded.registry.strategies.checks import Problems
from srearena.cluster.embedded.registry.strategies.parts import items, part
from srearena.cluster.embedded.registry.strategies.pod_defaults import default_pod, default_template
from srearena.cluster.embedded.registry.strategies.pod_resources import qos_class
from srearena.cluster.embedded.registry.strategies.pod_spec import check_template, validate_new_pod, validate_pod
from srearena.cluster.embedded.registry.strategies.pod_warnings import pod_warnings
from srearena.cluster.embedded.registry.strategy import Strategy, WriteContext

FINISHED = ("Succeeded", "Failed")
_GATED = "Scheduling is blocked due to non-empty scheduling gates"


def prepare_create(pod: Obj, context: WriteContext) -> None:
    spec = pod["spec"]
    pod["status"] = {"phase": "Pending", "qosClass": qos_class(spec)}
    if spec.get("schedulingGates"):
        gated = {
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": None,
            "lastTransitionTime": context.clock.timestamp(),
            "reason": "SchedulingGated",
            "message": _GATED,
        }
        pod["status"]["conditions"] = [gated]
    if spec.get("affinity"):
        _merge_affinity_keys(pod)
    for constraint in items(spec, "topologySpreadConstraints"):
        if constraint.get("matchLabelKeys") and constraint.get("labelSelector") is not None:
            _require_labels(constraint["labelSelector"], constraint["matchLabelKeys"], "In", labels_of(pod))


def _merge_affinity_keys(pod: Obj) -> None:
    """The keys a term wants equal (or different) become requirements with this pod's own values."""
    labels = labels_of(pod)
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = dig(pod, "spec", "affinity", kind, default={})
        preferred = items(rules, "preferredDuringSchedulingIgnoredDuringExecution")
        terms = [part(rule, "podAffinityTerm") for rule in preferred]
        for term in (*terms, *items(rules, "requiredDuringSchedulingIgnoredDuringExecution")):
            selector = term.get("labelSelector")
            if selector is not None:
                _require_labels(selector, items(term, "matchLabelKeys"), "In", labels)
                _require_labels(selector, items(term, "mismatchLabelKeys"), "NotIn", labels)


def _require_labels(selector: Obj, keys: list[str], operator: str, labels: dict[str, str]) -> None:
    wanted = [{"key": key, "operator": operator, "values": [labels[key]]} for key in keys if key in labels]
    if wanted:
        selector["matchExpressions"] = [*items(selector, "matchExpressions"), *wanted]


def grace_seconds(pod: Obj, options: Obj, context: WriteContext) -> int:
    spec = pod.get("spec") or {}
    if not spec.get("nodeName") or dig(pod, "status", "phase") in FINISHED:
        return 0
    period = options.get("gracePeriodSeconds")
    if period is None:
        period = spec.get("terminationGracePeriodSeconds") or 0
    return period if period >= 0 else 1


def _default_pod_template(obj: Obj) -> None:
    default_template(part(obj, "template"))


def _validate_pod_template(obj: Obj) -> Problems:
    problems: Problems = []
    check_template(problems, "template", obj.get("template") or {})
    return problems


def _prepare_status(new: Obj, old: Obj, context: WriteContext) -> None:
    """The class a pod was born with and the generation last acted upon stay known when a writer leaves them out."""
    status, before = new.get("status") or {}, old.get("status") or {}
    kept = {key: before[key] for key in ("qosClass", "observedGeneration") if before.get(key) and not status.get(key)}
    addresses = status.get("podIPs")
    if status.get("podIP") and (not addresses or addresses[0].get("ip") != status["podIP"]):
        kept["podIPs"] = [{"ip": status["podIP"]}]
    if kept:
        new["status"] = {**status, **kept}


def _prepare_ephemeral(new: Obj, old: Obj, context: WriteContext) -> None:
    updates.keep_all_but_ephemeral(new, old)


def _prepare_resize(new: Obj, old: Obj, context: WriteContext) -> None:
    updates.keep_all_but_resources(new, old)


_DEFAULT = reading(default_pod)

STRATEGIES = {
    "pods": Strategy(
        default=_DEFAULT,
        prepare_create=prepare_create,
        prepare_status=_prepare_status,
        validate=validate_pod,
        validate_create=validate_new_pod,
        validate_update=updates.validate_pod_update,
        warnings=pod_warnings,
        grace_seconds=grace_seconds,
        subresources={
            "ephemeralcontainers": Strategy(
                default=_DEFAULT,
                prepare_update=_prepare_ephemeral,
                validate=validate_pod,
                validate_update=updates.validate_ephemeral_update,
            ),
            "resize": Strategy(
                default=_DEFAULT,
                prepare_update=_prepare_resize,
                validate=validate_pod,
                validate_update=updates.validate_resize,
            ),
        },
    ),
    "podtemplates": Strategy(default=reading(_default_pod_template), validate=_validate_pod_template),
}
