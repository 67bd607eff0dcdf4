"""Validating admission policies and their bindings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from srearena.cluster.embedded.objects import Obj, name_of
from srearena.cluster.embedded.registry import names
from srearena.cluster.embedded.registry.errors import FieldError
from srearena.cluster.embedded.registry.strategies import checks
from srearena.cluster.embedded.registry.strategies.admission_registration import GROUP, check_conditions, check_rule
from srearena.cluster.embedded.registry.strategies.checks import Problems
from srearena.cluster.embedded.registry.strategies.parts import fill, items, part
from srearena.cluster.embedded.registry.strategy import Strategy

if TYPE_CHECKING:
    from srearena.cluster.embedded.registry.admission import expressions

_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_MOST_ANNOTATIONS = 20
_MOST_ANNOTATION_BYTES = 5 * 1024
_IDENTIFIER = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")


def _default_match_resources(constraints: Obj | None) -> None:
    if constraints is None:
        return
    fill(constraints, {"matchPolicy": "Equivalent"})
    part(constraints, "namespaceSelector")
    part(constraints, "objectSelector")
    for key in ("resourceRules", "excludeResourceRules"):
        for rule in items(constraints, key):
            fill(rule, {"scope": "*"})


def _default_policy(obj: Obj) -> None:
    spec = part(obj, "spec")
    fill(spec, {"failurePolicy": "Fail"})
    _default_match_resources(spec.get("matchConstraints"))
    part(obj, "status")


def _default_policy_binding(obj: Obj) -> None:
    _default_match_resources(part(obj, "spec").get("matchResources"))


def _validate_policy(obj: Obj) -> Problems:
    problems: Problems = []
    spec = obj.get("spec") or {}
    checks.one_of(problems, "spec.failurePolicy", spec.get("failurePolicy"), ("Fail", "Ignore"))
    if spec.get("paramKind") is not None:
        _param_kind(problems, spec["paramKind"])
    constraints = spec.get("matchConstraints")
    if constraints is None:
        problems.append(FieldError.required("spec.matchConstraints"))
    else:
        _match_resources(problems, "spec.matchConstraints", constraints)
        if not items(constraints, "resourceRules"):
            problems.append(FieldError.required("spec.matchConstraints.resourceRules"))
    conditions, params = items(spec, "matchConditions"), spec.get("paramKind") is not None
    check_conditions(problems, "spec.matchConditions", conditions, params=params)
    if items(spec, "validations") or items(spec, "auditAnnotations"):
        _expressions(problems, name_of(obj), spec)
    else:
        for key in ("validations", "auditAnnotations"):
            why = "validations or auditAnnotations must contain at least one item"
            problems.append(FieldError.required(f"spec.{key}", why))
    return problems


def _param_kind(problems: Problems, kind: Obj) -> None:
    version, name = kind.get("apiVersion") or "", kind.get("kind") or ""
    if checks.required(problems, "spec.paramKind.apiVersion", version) and version.count("/") > 1:
        why = f"unexpected GroupVersion string: {version}"
        problems.append(FieldError.invalid("spec.paramKind.apiVersion", version, why))
    if checks.required(problems, "spec.paramKind.kind", name):
        wrong = names.label_1035_errors(name.lower())
        if wrong:
            why = f"may have mixed case, but should otherwise match: {','.join(wrong)}"
            problems.append(FieldError.invalid("spec.paramKind.kind", name, why))


def _match_resources(problems: Problems, path: str, constraints: Obj) -> None:
    checks.one_of(problems, f"{path}.matchPolicy", constraints.get("matchPolicy"), ("Equivalent", "Exact"))
    for key in ("namespaceSelector", "objectSelector"):
        checks.selector(problems, f"{path}.{key}", constraints.get(key))
    for key in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(items(constraints, key)):
            seen: set[str] = set()
            for place, name in enumerate(items(rule, "resourceNames")):
                checks.unique(problems, f"{path}.{key}[{index}].resourceNames[{place}]", name, seen)
            check_rule(problems, f"{path}.{key}[{index}]", rule)


def _expressions(problems: Problems, policy: str, spec: Obj) -> None:
    """Everything in CEL besides the match conditions; each variable may refer to those before it."""
    from srearena.cluster.embedded.registry.admission import expressions

    scope = expressions.Scope(params=spec.get("paramKind") is not None)
    for index, variable in enumerate(items(spec, "variables")):
        path, name, source = f"spec.variables[{index}]", variable.get("name") or "", variable.get("expression") or ""
        named = checks.required(problems, f"{path}.name", name.strip(), "name is not specified")
        if named and _IDENTIFIER.fullmatch(name) is None:
            problems.append(FieldError.invalid(f"{path}.name", name, "must be a valid CEL identifier"))
        if checks.required(problems, f"{path}.expression", source.strip(), "expression is not specified"):
            wrong = expressions.problem_of(source, scope, expressions.ANY)
            if wrong:
                problems.append(FieldError.invalid(f"{path}.expression", source, wrong))
            scope = expressions.with_variable(scope, name, source)
    silent = expressions.Scope(scope.params, False, scope.variables)
    for index, validation in enumerate(items(spec, "validations")):
        path, source = f"spec.validations[{index}]", validation.get("expression") or ""
        if checks.required(problems, f"{path}.expression", source.strip(), "expression is not specified"):
            wrong = expressions.problem_of(source, scope, expressions.CONDITION)
            if wrong:
                problems.append(FieldError.invalid(f"{path}.expression", source, wrong))
        message_source = validation.get("messageExpression") or ""
        if message_source:
            wrong = "must be non-empty if specified"
            if message_source.strip():
                wrong = expressions.problem_of(message_source, silent, expressions.MESSAGE)
            if wrong:
                problems.append(FieldError.invalid(f"{path}.messageExpression", message_source, wrong))
        _message(problems, path, validation)
    _annotations(problems, policy, items(spec, "auditAnnotations"), scope)


def _message(problems: Problems, path: str, validation: Obj) -> None:
    message = validation.get("message") or ""
    if message and not message.strip():
        problems.append(FieldError.invalid(f"{path}.message", message, "must be non-empty if specified"))
    elif "\n" in message.strip() or "\r" in message.strip():
        problems.append(FieldError.invalid(f"{path}.message", message, "must not contain line breaks"))
    if validation.get("reason") is not None:
        checks.one_of(problems, f"{path}.reason", validation["reason"], _REASONS)


def _annotations(problems: Problems, policy: str, annotations: list[Obj], scope: expressions.Scope) -> None:
    from srearena.cluster.embedded.registry.admission import expressions

    if len(annotations) > _MOST_ANNOTATIONS:
        why = f"must not have more than {_MOST_ANNOTATIONS} auditAnnotations"
        problems.append(FieldError.invalid("spec.auditAnnotations", annotations, why))
    seen: set[str] = set()
    for index, annotation in enumerate(annotations):
        path, key = f"spec.auditAnnotations[{index}]", annotation.get("key") or ""
        source = (annotation.get("valueExpression") or "").strip()
        checks.qualified_name(problems, f"{path}.key", f"{policy}/{key}")
        if checks.required(problems, f"{path}.valueExpression", source, "valueExpression is not specified"):
            wrong = expressions.problem_of(source, scope, expressions.ANNOTATION)
            if len(source.encode()) > _MOST_ANNOTATION_BYTES:
                why = f"must not exceed {_MOST_ANNOTATION_BYTES} bytes in length"
                problems.append(FieldError.required(f"{path}.valueExpression", why))
            elif wrong:
                value = annotation["valueExpression"]
                problems.append(FieldError.invalid(f"{path}.valueExpression", value, wrong))
        checks.unique(problems, f"{path}.key", key, seen)


def _param_ref(problems: Problems, reference: Obj) -> None:
    path, name, selector = "spec.paramRef", reference.get("name") or "", reference.get("selector")
    exclusive = "name and selector are mutually exclusive"
    if name:
        problems += [FieldError.invalid(f"{path}.name", name, why) for why in names.path_segment_errors(name)]
    if name and selector is not None:
        problems.append(FieldError.forbidden(f"{path}.name", exclusive))
    checks.selector(problems, f"{path}.selector", selector)
    if name and selector is not None:
        problems.append(FieldError.forbidden(f"{path}.selector", exclusive))
    if not name and selector is None:
        problems.append(FieldError.required(path, "one of name or selector must be specified"))
    action = reference.get("parameterNotFoundAction")
    if checks.required(problems, f"{path}.parameterNotFoundAction", action):
        checks.one_of(problems, f"{path}.parameterNotFoundAction", action, ("Deny", "Allow"))


def _validate_policy_binding(obj: Obj) -> Problems:
    problems: Problems = []
    spec = obj.get("spec") or {}
    policy, actions = spec.get("policyName") or "", items(spec, "validationActions")
    if checks.required(problems, "spec.policyName", policy):
        checks.subdomain(problems, "spec.policyName", policy)
    if spec.get("paramRef") is not None:
        _param_ref(problems, spec["paramRef"])
    if spec.get("matchResources") is not None:
        _match_resources(problems, "spec.matchResources", spec["matchResources"])
    checks.required(problems, "spec.validationActions", actions, "at least one validation action is required")
    for index, action in enumerate(actions):
        checks.one_of(problems, f"spec.validationActions[{index}]", action, ("Audit", "Deny", "Warn"))
    if "Deny" in actions and "Warn" in actions:
        text = (
            "must not contain both Deny and Warn (repeating the same validation failure information in the API "
            "response and headers serves no purpose)"
        )
        problems.append(FieldError.invalid("spec.validationActions", actions, text))
    return problems


STRATEGIES = {
    f"validatingadmissionpolicies.{GROUP}": Strategy(default=_default_policy, validate=_validate_policy),
    f"validatingadmissionpolicybindings.{GROUP}": Strategy(
        default=_default_policy_binding, validate=_validate_policy_binding
    ),
}
