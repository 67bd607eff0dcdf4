"""What of an existing pod may change, by the endpoint the change comes through."""

from __future__ import annotations

from typing import Any

from srearena.cluster.embedded.go_text import quoted
from srearena.cluster.embedded.objects import Obj, annotations_of, dig
from srearena.cluster.embedded.registry.errors import FieldError
from srearena.cluster.embedded.registry.strategies import checks
from srearena.cluster.embedded.registry.strategies.checks import MAX_INT32, Problems
from srearena.cluster.embedded.registry.strategies.go_shapes import diff, same, shape_of
from srearena.cluster.embedded.registry.strategies.parts import items
from srearena.cluster.embedded.registry.strategies.pod_resources import qos_class
from srearena.cluster.embedded.registry.strategies.pod_spec import MIRROR

_CHANGEABLE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_RESIZABLE = ("cpu", "memory")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def validate_pod_update(new: Obj, old: Obj) -> Problems:
    """Changes through the pod itself."""
    problems: Problems = []
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    _annotations(problems, annotations_of(new), annotations_of(old))
    for key in ("containers", "initContainers"):
        if len(items(spec, key)) != len(items(before, key)):
            problems.append(FieldError.forbidden(f"spec.{key}", "pod updates may not add or remove containers"))
            return problems
    deadline = spec.get("activeDeadlineSeconds")
    problem = _deadline_problem(deadline, before.get("activeDeadlineSeconds"))
    if problem:
        problems.append(FieldError.invalid("spec.activeDeadlineSeconds", deadline, problem))
        if deadline is not None:
            return problems
    _tolerations(problems, items(spec, "tolerations"), items(before, "tolerations"))
    known = {gate.get("name") for gate in items(before, "schedulingGates")}
    places = {gate.get("name"): index for index, gate in enumerate(items(spec, "schedulingGates"))}
    for name, index in places.items():
        if name not in known:
            text = f"only deletion is allowed, but found new scheduling gate '{name or ''}'"
            problems.append(FieldError.forbidden(f"spec.schedulingGates[{index}].name", text))
    if spec == before:
        return problems
    munged = _with_the_changeable_of(spec, before)
    if known:
        _placement(problems, munged, before)
    if not same("PodSpec", munged, before):
        text = f"pod updates may not change fields other than {_CHANGEABLE}\n{diff('PodSpec', before, munged)}"
        problems.append(FieldError.forbidden("spec", text))
    return problems


def _annotations(problems: Problems, new: dict[str, str], old: dict[str, str]) -> None:
    if new.get(MIRROR) != old.get(MIRROR):
        what = "remove or update" if MIRROR in old else "add"
        where = f"metadata.annotations[{MIRROR}]"
        problems.append(FieldError.forbidden(where, f"may not {what} mirror pod annotation"))


def _deadline_problem(new: int | None, old: int | None) -> str:
    """A deadline can be set and brought nearer."""
    if new is None:
        return "" if old is None else "must not update from a positive integer to nil value"
    if not 0 <= new <= MAX_INT32:
        return checks.between(0, MAX_INT32)
    return "must be less than or equal to previous value" if old is not None and old < new else ""


def _tolerations(problems: Problems, new: list[Obj], old: list[Obj]) -> None:
    """Tolerations may be added, and how long one lasts may change."""
    present = [_without_seconds(toleration) for toleration in new]
    for toleration in old:
        if _without_seconds(toleration) not in present:
            text = "existing toleration can not be modified except its tolerationSeconds"
            problems.append(FieldError.forbidden("spec.tolerations", text))


def _without_seconds(toleration: Obj) -> Obj:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds" and value}


def _with_the_changeable_of(spec: Obj, before: Obj) -> Obj:
    """The new spec with everything that may change put back to what it was."""
    munged = dict(spec)
    for key in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        _take(munged, before, key)
    if (before.get("terminationGracePeriodSeconds") or 0) < 0 and spec.get("terminationGracePeriodSeconds") == 1:
        _take(munged, before, "terminationGracePeriodSeconds")
    for key in ("containers", "initContainers"):
        if items(spec, key):
            pairs = zip(spec[key], before[key], strict=True)
            munged[key] = [{**now, "image": was.get("image") or ""} for now, was in pairs]
    return munged


def _take(holder: Obj, source: Obj, key: str) -> None:
    holder.pop(key, None)
    if source.get(key) is not None:
        holder[key] = source[key]


def _placement(problems: Problems, munged: Obj, before: Obj) -> None:
    """While gates hold a pod back, where it may go can be narrowed."""
    selector, was = munged.get("nodeSelector") or {}, before.get("nodeSelector") or {}
    if selector != was:
        shown = checks.in_order(munged.get("nodeSelector"))
        for key, value in was.items():
            if selector.get(key) != value:
                text = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
                problems.append(FieldError.invalid("spec.nodeSelector", shown, text))
        _take(munged, before, "nodeSelector")
    affinity, was_affinity = munged.get("affinity") or {}, before.get("affinity") or {}
    if affinity.get("nodeAffinity") != was_affinity.get("nodeAffinity"):
        _node_affinity(problems, affinity.get("nodeAffinity"), was_affinity.get("nodeAffinity"))
        restored = dict(affinity)
        _take(restored, was_affinity, "nodeAffinity")
        munged["affinity"] = restored
        if not restored and "affinity" not in before:
            del munged["affinity"]


def _node_affinity(problems: Problems, new: Obj | None, old: Obj | None) -> None:
    terms = items(dig(new, _REQUIRED), "nodeSelectorTerms")
    were = items(dig(old, _REQUIRED), "nodeSelectorTerms")
    where = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
    if were and len(terms) != len(were):
        shown = [shape_of("NodeSelectorTerm", term) for term in terms] or None
        text = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        problems.append(FieldError.invalid(where, shown, text))
        return
    for index, (term, was) in enumerate(zip(terms, were, strict=False)):
        if not _only_adds(term, was):
            text = "only additions are allowed (no mutations or deletions)"
            problems.append(FieldError.invalid(f"{where}[{index}]", shape_of("NodeSelectorTerm", term), text))


def _only_adds(term: Obj, was: Obj) -> bool:
    keys = ("matchExpressions", "matchFields")
    if not any(was.get(key) for key in keys):
        return not any(term.get(key) for key in keys)
    return all(items(term, key)[: len(items(was, key))] == items(was, key) for key in keys)


def validate_ephemeral_update(new: Obj, old: Obj) -> Problems:
    """Changes through `ephemeralcontainers`: they can be added, never changed or taken away."""
    problems: Problems = []
    if MIRROR in annotations_of(old):
        return [FieldError.forbidden("", "static pods do not support ephemeral containers")]
    present = {c.get("name"): c for c in items(new.get("spec"), "ephemeralContainers")}
    for container in items(old.get("spec"), "ephemeralContainers"):
        name = container.get("name") or ""
        where, what = "spec.ephemeralContainers", f"existing ephemeral containers {quoted(name)}"
        if name not in present:
            problems.append(FieldError.forbidden(where, f"{what} may not be removed\n"))
        elif not same("EphemeralContainer", present[name], container):
            changed = diff("EphemeralContainer", container, present[name])
            problems.append(FieldError.forbidden(where, f"{what} may not be changed\n{changed}"))
    return problems


def validate_resize(new: Obj, old: Obj) -> Problems:
    """Changes through `resize`: the CPU and memory of containers."""
    problems: Problems = []
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    refusal = _unresizable(spec, before, old)
    if refusal:
        return [FieldError.forbidden("", refusal)]
    if (dig(old, "status", "qosClass") or qos_class(before)) != qos_class(spec):
        shown = dig(new, "status", "qosClass", default="")
        text = "Pod QOS Class may not change as a result of resizing"
        problems.append(FieldError.invalid("spec", shown, text))
    _same_containers(problems, spec, before)
    if problems and problems[-1].field.startswith(("spec.containers", "spec.initContainers")):
        return problems
    for key in ("initContainers", "containers"):
        for index, (now, was) in enumerate(zip(items(spec, key), items(before, key), strict=True)):
            if key == "containers" or was.get("restartPolicy") == "Always":
                _nothing_removed(problems, f"spec.{key}[{index}].resources", now, was)
    for key in ("containers", "initContainers"):
        for now, was in zip(items(spec, key), items(before, key), strict=True):
            _only_amounts_change(problems, key, now, was)
    return problems


def _unresizable(spec: Obj, before: Obj, old: Obj) -> str:
    if any(dig(whole, "resources", key) for whole in (spec, before) for key in ("requests", "limits")):
        return "pods with pod-level resources cannot be resized"
    return "static pods cannot be resized" if MIRROR in annotations_of(old) else ""


def _same_containers(problems: Problems, spec: Obj, before: Obj) -> None:
    for key in ("containers", "initContainers"):
        now, was = items(spec, key), items(before, key)
        if len(now) != len(was):
            problems.append(FieldError.forbidden(f"spec.{key}", f"{key} may not be added or removed on resize"))
            continue
        for index, (left, right) in enumerate(zip(now, was, strict=True)):
            if left.get("name") != right.get("name"):
                text = f"{key} may not be renamed or reordered on resize"
                problems.append(FieldError.forbidden(f"spec.{key}[{index}].name", text))


def _nothing_removed(problems: Problems, path: str, now: Obj, was: Obj) -> None:
    for key in ("requests", "limits"):
        listed, before = dig(now, "resources", key, default={}), dig(was, "resources", key, default={})
        if any(name not in listed for name in before):
            problems.append(FieldError.forbidden(f"{path}.{key}", f"resource {key} cannot be removed"))


def _only_amounts_change(problems: Problems, key: str, now: Obj, was: Obj) -> None:
    fixed = key == "initContainers" and was.get("restartPolicy") != "Always"
    if fixed:
        if not same("Container", now, was):
            text = "resources for non-sidecar init containers are immutable"
            problems.append(FieldError.forbidden("spec", text))
        return
    resources: dict[str, Any] = {}
    for kind in ("limits", "requests"):
        before = dig(was, "resources", kind)
        if before is not None:
            others = {n: v for n, v in dig(now, "resources", kind, default={}).items() if n not in _RESIZABLE}
            resources[kind] = {**others, **{n: v for n, v in before.items() if n in _RESIZABLE}}
    if not same("Container", {**now, "resources": resources}, was):
        whose = " for sidecar containers" if key == "initContainers" else ""
        problems.append(FieldError.forbidden("spec", f"only cpu and memory resources{whose} are mutable"))


def keep_all_but_ephemeral(new: Obj, old: Obj) -> None:
    added = (new.get("spec") or {}).get("ephemeralContainers")
    new["spec"] = {key: value for key, value in old["spec"].items() if key != "ephemeralContainers"}
    if added:
        new["spec"]["ephemeralContainers"] = added
    _keep_rest(new, old)


def keep_all_but_resources(new: Obj, old: Obj) -> None:
    """What is not about resources is put back; containers that do not line up are left for validation to refuse."""
    spec, before = new.get("spec") or {}, old["spec"]
    kept = dict(before)
    for key in ("containers", "initContainers"):
        now, was = items(spec, key), items(before, key)
        if [c.get("name") for c in now] != [c.get("name") for c in was]:
            return
        if was:
            kept[key] = [_with_resources(left, right) for left, right in zip(was, now, strict=True)]
    new["spec"] = kept
    _keep_rest(new, old)


def _with_resources(container: Obj, source: Obj) -> Obj:
    result = {**container, "resources": source.get("resources") or {}}
    _take(result, source, "resizePolicy")
    return result


def _keep_rest(new: Obj, old: Obj) -> None:
    if "status" in old:
        new["status"] = old["status"]
    kept = new["metadata"].get("managedFields")
    new["metadata"] = {**old["metadata"]}
    if kept is not None:
        new["metadata"]["managedFields"] = kept
