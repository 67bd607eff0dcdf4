"""Roles and their bindings."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry import names
from srearena.cluster.embedded.registry.errors import FieldError
from srearena.cluster.embedded.registry.strategies import checks
from srearena.cluster.embedded.registry.strategies.checks import Problems
from srearena.cluster.embedded.registry.strategies.parts import fill_empty, items, part
from srearena.cluster.embedded.registry.strategy import Strategy

GROUP = "rbac.authorization.k8s.io"
_SUBJECT_GROUPS = {"User": GROUP, "Group": GROUP}


def _default_role(obj: Obj) -> None:
    obj.setdefault("rules", None)


def _default_binding(obj: Obj) -> None:
    fill_empty(part(obj, "roleRef"), {"apiGroup": GROUP})
    for subject in items(obj, "subjects"):
        group = _SUBJECT_GROUPS.get(subject.get("kind", ""))
        if group and not subject.get("apiGroup"):
            subject["apiGroup"] = group


def _rules(obj: Obj, *, namespaced: bool) -> Problems:
    problems: Problems = []
    for index, rule in enumerate(items(obj, "rules")):
        path, urls = f"rules[{index}]", items(rule, "nonResourceURLs")
        checks.required(problems, f"{path}.verbs", rule.get("verbs"), "verbs must contain at least one value")
        if urls:
            if namespaced:
                text = "namespaced rules cannot apply to non-resource URLs"
                problems.append(FieldError.invalid(f"{path}.nonResourceURLs", urls, text))
            if any(rule.get(key) for key in ("apiGroups", "resources", "resourceNames")):
                text = "rules cannot apply to both regular resources and non-resource URLs"
                problems.append(FieldError.invalid(f"{path}.nonResourceURLs", urls, text))
            continue
        for key, what in (("apiGroups", "api group"), ("resources", "resource")):
            text = f"resource rules must supply at least one {what}"
            checks.required(problems, f"{path}.{key}", rule.get(key), text)
    return problems


def _validate_role(obj: Obj) -> Problems:
    return _rules(obj, namespaced=True)


def _validate_cluster_role(obj: Obj) -> Problems:
    problems = _rules(obj, namespaced=False)
    aggregation = obj.get("aggregationRule")
    if aggregation is not None:
        where = "aggregationRule.clusterRoleSelectors"
        text = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        checks.required(problems, where, aggregation.get("clusterRoleSelectors"), text)
        checks.each(problems, where, aggregation.get("clusterRoleSelectors"), checks.selector)
    return problems


def _binding(obj: Obj, kinds: tuple[str, ...], *, namespaced: bool) -> Problems:
    problems: Problems = []
    role = obj.get("roleRef") or {}
    checks.one_of(problems, "roleRef.apiGroup", role.get("apiGroup") or "", (GROUP,))
    checks.one_of(problems, "roleRef.kind", role.get("kind") or "", kinds)
    name = role.get("name") or ""
    if checks.required(problems, "roleRef.name", name):
        checks.invalid_each(problems, "roleRef.name", name, names.path_segment_errors(name))
    for index, subject in enumerate(items(obj, "subjects")):
        _subject(problems, f"subjects[{index}]", subject, namespaced=namespaced)
    return problems


def _subject(problems: Problems, path: str, subject: Obj, *, namespaced: bool) -> None:
    kind, name, group = (subject.get(key) or "" for key in ("kind", "name", "apiGroup"))
    checks.required(problems, f"{path}.name", name)
    if kind == "ServiceAccount":
        if name:
            checks.subdomain(problems, f"{path}.name", name)
        if group:
            problems.append(FieldError.not_supported(f"{path}.apiGroup", group, ("",)))
        if not namespaced:
            checks.required(problems, f"{path}.namespace", subject.get("namespace"))
    elif kind in _SUBJECT_GROUPS:
        checks.one_of(problems, f"{path}.apiGroup", group, (GROUP,))
    else:
        problems.append(FieldError.not_supported(f"{path}.kind", kind, ("ServiceAccount", "User", "Group")))


def _validate_role_binding(obj: Obj) -> Problems:
    return _binding(obj, ("Role", "ClusterRole"), namespaced=True)


def _validate_cluster_role_binding(obj: Obj) -> Problems:
    return _binding(obj, ("ClusterRole",), namespaced=False)


def _validate_binding_update(new: Obj, old: Obj) -> Problems:
    role = new.get("roleRef") or {}
    if role == (old.get("roleRef") or {}):
        return []
    shown = {key: role.get(wire) or "" for key, wire in (("APIGroup", "apiGroup"), ("Kind", "kind"), ("Name", "name"))}
    return [FieldError.invalid("roleRef", shown, "cannot change roleRef")]


STRATEGIES = {
    f"roles.{GROUP}": Strategy(default=_default_role, validate=_validate_role, name_errors=names.path_segment_errors),
    f"clusterroles.{GROUP}": Strategy(
        default=_default_role, validate=_validate_cluster_role, name_errors=names.path_segment_errors
    ),
    f"rolebindings.{GROUP}": Strategy(
        default=_default_binding,
        validate=_validate_role_binding,
        validate_update=_validate_binding_update,
        name_errors=names.path_segment_errors,
    ),
    f"clusterrolebindings.{GROUP}": Strategy(
        default=_default_binding,
        validate=_validate_cluster_role_binding,
        validate_update=_validate_binding_update,
        name_errors=names.path_segment_errors,
    ),
}
