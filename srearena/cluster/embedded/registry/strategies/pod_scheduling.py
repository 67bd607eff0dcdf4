"""Where a pod may go: affinity, tolerations, topology spread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry import names
from srearena.cluster.embedded.registry.errors import FieldError
from srearena.cluster.embedded.registry.strategies import checks
from srearena.cluster.embedded.registry.strategies.checks import Problems
from srearena.cluster.embedded.registry.strategies.parts import items

TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
_NODE_POLICIES = ("Honor", "Ignore")


def affinity(problems: Problems, path: str, value: Obj) -> None:
    node = value.get("nodeAffinity")
    if node is not None:
        required = node.get(_REQUIRED)
        if required is not None:
            node_selector(problems, f"{path}.nodeAffinity.{_REQUIRED}", required)
        for index, term in enumerate(items(node, _PREFERRED)):
            where = f"{path}.nodeAffinity.{_PREFERRED}[{index}]"
            _weight(problems, where, term)
            _node_term(problems, f"{where}.preference", term.get("preference") or {}, check_values=False)
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = value.get(kind)
        if rules is None:
            continue
        for index, term in enumerate(items(rules, _REQUIRED)):
            _pod_term(problems, f"{path}.{kind}.{_REQUIRED}[{index}]", term)
        for index, weighted in enumerate(items(rules, _PREFERRED)):
            where = f"{path}.{kind}.{_PREFERRED}[{index}]"
            _weight(problems, where, weighted)
            _pod_term(problems, f"{where}.podAffinityTerm", weighted.get("podAffinityTerm") or {})


def _weight(problems: Problems, path: str, term: Obj) -> None:
    weight = term.get("weight") or 0
    if not 1 <= weight <= 100:
        problems.append(FieldError.invalid(f"{path}.weight", weight, "must be in the range 1-100"))


def node_selector(problems: Problems, path: str, value: Mapping[str, Any]) -> None:
    terms = value.get("nodeSelectorTerms") or ()
    if not terms:
        text = "must have at least one node selector term"
        problems.append(FieldError.required(f"{path}.nodeSelectorTerms", text))
    for index, term in enumerate(terms):
        _node_term(problems, f"{path}.nodeSelectorTerms[{index}]", term, check_values=True)


def _node_term(problems: Problems, path: str, term: Obj, *, check_values: bool) -> None:
    for index, rule in enumerate(items(term, "matchExpressions")):
        _node_requirement(problems, f"{path}.matchExpressions[{index}]", rule, check_values=check_values)
    for index, rule in enumerate(items(term, "matchFields")):
        _node_field(problems, f"{path}.matchFields[{index}]", rule)


def _node_requirement(problems: Problems, path: str, rule: Obj, *, check_values: bool) -> None:
    operator, values = rule.get("operator") or "", items(rule, "values")
    if operator in ("In", "NotIn"):
        if not values:
            text = "must be specified when `operator` is 'In' or 'NotIn'"
            problems.append(FieldError.required(f"{path}.values", text))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            problems.append(FieldError.forbidden(f"{path}.values", text))
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            text = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            problems.append(FieldError.required(f"{path}.values", text))
    else:
        problems.append(FieldError.invalid(f"{path}.operator", operator, "not a valid selector operator"))
    checks.qualified_name(problems, f"{path}.key", rule.get("key") or "")
    if check_values:
        for index, value in enumerate(values):
            checks.label_value(problems, f"{path}.values[{index}]", value)


def _node_field(problems: Problems, path: str, rule: Obj) -> None:
    operator, values = rule.get("operator") or "", items(rule, "values")
    if operator not in ("In", "NotIn"):
        problems.append(FieldError.invalid(f"{path}.operator", operator, "not a valid selector operator"))
    elif len(values) != 1:
        text = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        problems.append(FieldError.required(f"{path}.values", text))
    if rule.get("key") != "metadata.name":
        problems.append(FieldError.invalid(f"{path}.key", rule.get("key") or "", "not a valid field selector key"))
    else:
        for index, value in enumerate(values):
            checks.subdomain(problems, f"{path}.values[{index}]", value)


def _pod_term(problems: Problems, path: str, term: Obj) -> None:
    for key in ("labelSelector", "namespaceSelector"):
        checks.selector(problems, f"{path}.{key}", term.get(key))
    for namespace in items(term, "namespaces"):
        checks.invalid_each(problems, f"{path}.namespace", namespace, names.label_errors(namespace))
    _label_keys(problems, path, term)
    key = term.get("topologyKey") or ""
    if not key:
        problems.append(FieldError.required(f"{path}.topologyKey", "can not be empty"))
    checks.qualified_name(problems, f"{path}.topologyKey", key)


def _label_keys(problems: Problems, path: str, term: Obj) -> None:
    """Keys whose values come from the pod itself need a selector, and neither side may name one twice."""
    wanted, unwanted = items(term, "matchLabelKeys"), items(term, "mismatchLabelKeys")
    if not wanted and not unwanted:
        return
    chosen = term.get("labelSelector")
    for key, listed in (("matchLabelKeys", wanted), ("mismatchLabelKeys", unwanted)):
        if listed and chosen is None:
            text = "must not be specified when labelSelector is not set"
            problems.append(FieldError.forbidden(f"{path}.{key}", text))
        elif listed:
            for index, name in enumerate(listed):
                checks.qualified_name(problems, f"{path}.{key}[{index}]", name)
    if chosen is not None:
        seen = set(chosen.get("matchLabels") or {})
        for expression in items(chosen, "matchExpressions"):
            name = expression.get("key") or ""
            if name in wanted and name in seen:
                where = f"{path}[{len(wanted) - 1 - wanted[::-1].index(name)}]"
                text = "exists in both matchLabelKeys and labelSelector"
                problems.append(FieldError.invalid(where, name, text))
            seen.add(name)
    for index, name in enumerate(wanted):
        if name in unwanted:
            text = "exists in both matchLabelKeys and mismatchLabelKeys"
            problems.append(FieldError.invalid(f"{path}.matchLabelKeys[{index}]", name, text))


def tolerations(problems: Problems, path: str, listed: list[Obj]) -> None:
    for index, toleration in enumerate(listed):
        key, operator = toleration.get("key") or "", toleration.get("operator") or ""
        value, effect = toleration.get("value") or "", toleration.get("effect") or ""
        if key:
            checks.qualified_name(problems, f"{path}[{index}].key", key)
        elif operator != "Exists":
            text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            problems.append(FieldError.invalid(f"{path}[{index}].operator", operator, text))
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            text = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            problems.append(FieldError.invalid(f"{path}[{index}].effect", effect, text))
        if operator in ("Equal", ""):
            if value:
                found = checks.label_value_texts(value)
                if found:
                    problems.append(FieldError.invalid(f"{path}[{index}].operator", value, ";".join(found)))
        elif operator == "Exists":
            if value:
                text = "value must be empty when `operator` is 'Exists'"
                problems.append(FieldError.invalid(f"{path}[{index}].operator", value, text))
        else:
            supported = ("Equal", "Exists")
            problems.append(FieldError.not_supported(f"{path}[{index}].operator", operator, supported))
        if effect:
            checks.one_of(problems, f"{path}[{index}].effect", effect, TAINT_EFFECTS)


def topology_spread(problems: Problems, path: str, constraints: list[Obj]) -> None:
    for index, constraint in enumerate(constraints):
        where = f"{path}[{index}]"
        key, action = constraint.get("topologyKey") or "", constraint.get("whenUnsatisfiable") or ""
        checks.positive(problems, f"{where}.maxSkew", constraint.get("maxSkew"))
        if not key:
            problems.append(FieldError.required(f"{where}.topologyKey", "can not be empty"))
        checks.one_of(problems, f"{where}.whenUnsatisfiable", action, _ACTIONS)
        pair = (key, action)
        if any(
            (c.get("topologyKey") or "", c.get("whenUnsatisfiable") or "") == pair for c in constraints[index + 1 :]
        ):
            shown = f"{{{key}, {action}}}"
            problems.append(FieldError.duplicate(f"{where}.{{topologyKey, whenUnsatisfiable}}", shown))
        fewest = constraint.get("minDomains")
        if fewest is not None:
            checks.positive(problems, f"{where}.minDomains", fewest)
            if action != "DoNotSchedule":
                text = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                problems.append(FieldError.invalid(f"{where}.minDomains", fewest, text))
        for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if constraint.get(policy) is not None:
                checks.one_of(problems, f"{where}.{policy}", constraint[policy], _NODE_POLICIES)
        _label_keys(problems, where, {**constraint, "mismatchLabelKeys": None})
        checks.selector(problems, f"{where}.labelSelector", constraint.get("labelSelector"))
