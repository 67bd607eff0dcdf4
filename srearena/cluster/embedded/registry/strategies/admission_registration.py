"""Webhook configurations."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry import names
from srearena.cluster.embedded.registry.errors import FieldError
from srearena.cluster.embedded.registry.strategies import checks
from srearena.cluster.embedded.registry.strategies.checks import Problems
from srearena.cluster.embedded.registry.strategies.parts import fill, items, part
from srearena.cluster.embedded.registry.strategies.webhook_clients import (
    REVIEW_VERSIONS,
    check_client,
    check_review_versions,
)
from srearena.cluster.embedded.registry.strategy import Strategy

GROUP = "admissionregistration.k8s.io"
_WEBHOOK = {"failurePolicy": "Fail", "matchPolicy": "Equivalent", "timeoutSeconds": 10}
_MUTATING = {"reinvocationPolicy": "Never"}
_SIDE_EFFECTS = ("None", "NoneOnDryRun")
_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_MOST_CONDITIONS = 64


def _default_webhooks(obj: Obj) -> None:
    for webhook in items(obj, "webhooks"):
        fill(webhook, _WEBHOOK)
        part(webhook, "namespaceSelector")
        part(webhook, "objectSelector")
        service = part(webhook, "clientConfig").get("service")
        if service is not None:
            fill(service, {"port": 443})
        for rule in items(webhook, "rules"):
            fill(rule, {"scope": "*"})


def _default_mutating_webhooks(obj: Obj) -> None:
    _default_webhooks(obj)
    for webhook in items(obj, "webhooks"):
        fill(webhook, _MUTATING)


def _validate_webhooks(obj: Obj) -> Problems:
    problems: Problems = []
    seen: set[str] = set()
    for index, webhook in enumerate(items(obj, "webhooks")):
        path, name = f"webhooks[{index}]", webhook.get("name") or ""
        _webhook(problems, path, webhook)
        versions = items(webhook, "admissionReviewVersions")
        missing = f"must specify one of {', '.join(REVIEW_VERSIONS)}"
        check_review_versions(problems, f"{path}.admissionReviewVersions", versions, missing=missing)
        if name:
            checks.unique(problems, f"{path}.name", name, seen)
    return problems


def _webhook(problems: Problems, path: str, webhook: Obj) -> None:
    _qualified(problems, f"{path}.name", webhook.get("name") or "")
    checks.each(problems, f"{path}.rules", webhook.get("rules"), check_rule)
    for key, supported in (("failurePolicy", ("Fail", "Ignore")), ("matchPolicy", ("Equivalent", "Exact"))):
        if webhook.get(key) is not None:
            checks.one_of(problems, f"{path}.{key}", webhook[key], supported)
    effects = webhook.get("sideEffects")
    if effects is None:
        text = f"must specify one of {', '.join(_SIDE_EFFECTS)}"
        problems.append(FieldError.required(f"{path}.sideEffects", text))
    else:
        checks.one_of(problems, f"{path}.sideEffects", effects, _SIDE_EFFECTS)
    seconds = webhook.get("timeoutSeconds")
    if seconds is not None and not 1 <= seconds <= 30:
        text = "the timeout value must be between 1 and 30 seconds"
        problems.append(FieldError.invalid(f"{path}.timeoutSeconds", seconds, text))
    for key in ("namespaceSelector", "objectSelector"):
        checks.selector(problems, f"{path}.{key}", webhook.get(key))
    if webhook.get("reinvocationPolicy") is not None:
        supported = ("IfNeeded", "Never")
        checks.one_of(problems, f"{path}.reinvocationPolicy", webhook["reinvocationPolicy"], supported)
    check_client(problems, f"{path}.clientConfig", webhook.get("clientConfig") or {})
    check_conditions(problems, f"{path}.matchConditions", items(webhook, "matchConditions"))


def _qualified(problems: Problems, path: str, name: str) -> None:
    """A name of at least three parts, such as `check.example.com`."""
    if not checks.required(problems, path, name):
        return
    wrong = names.subdomain_errors(name)
    if wrong:
        problems.append(FieldError.invalid(path, name, ",".join(wrong)))
    elif name.count(".") < 2:
        text = "should be a domain with at least three segments separated by dots"
        problems.append(FieldError.invalid(path, name, text))


def check_rule(problems: Problems, path: str, rule: Obj) -> None:
    operations = items(rule, "operations")
    if not operations:
        problems.append(FieldError.required(f"{path}.operations"))
    _alone(problems, f"{path}.operations", operations, "operations")
    for index, operation in enumerate(operations):
        checks.one_of(problems, f"{path}.operations[{index}]", operation, _OPERATIONS)
    for key, what in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        listed = items(rule, key)
        if not listed:
            problems.append(FieldError.required(f"{path}.{key}"))
        _alone(problems, f"{path}.{key}", listed, what)
    for index, version in enumerate(items(rule, "apiVersions")):
        if not version:
            problems.append(FieldError.required(f"{path}.apiVersions[{index}]"))
    _resources(problems, f"{path}.resources", items(rule, "resources"))
    if rule.get("scope") is not None:
        checks.one_of(problems, f"{path}.scope", rule["scope"], ("*", "Cluster", "Namespaced"))


def _alone(problems: Problems, path: str, listed: list[str], what: str) -> None:
    if len(listed) > 1 and "*" in listed:
        problems.append(FieldError.invalid(path, listed, f"if '*' is present, must not specify other {what}"))


def _resources(problems: Problems, path: str, resources: list[str]) -> None:
    if not resources:
        problems.append(FieldError.required(path))
    whole: set[str] = set()
    everywhere: set[str] = set()
    for index, name in enumerate(resources):
        resource, slash, part_of = name.partition("/")
        if not name:
            problems.append(FieldError.required(f"{path}[{index}]"))
        elif slash:
            if resource in whole:
                text = f"if '{resource}/*' is present, must not specify {name}"
                problems.append(FieldError.invalid(f"{path}[{index}]", name, text))
            if part_of in everywhere:
                text = f"if '*/{part_of}' is present, must not specify {name}"
                problems.append(FieldError.invalid(f"{path}[{index}]", name, text))
            if part_of == "*":
                whole.add(resource)
            if resource == "*":
                everywhere.add(part_of)
    if len(resources) > 1 and "*/*" in resources:
        text = "if '*/*' is present, must not specify other resources"
        problems.append(FieldError.invalid(path, resources, text))
    if "*" in resources and any(name and name != "*" and "/" not in name for name in resources):
        text = "if '*' is present, must not specify other resources without subresources"
        problems.append(FieldError.invalid(path, resources, text))


def check_conditions(problems: Problems, path: str, conditions: list[Obj], *, params: bool = False) -> None:
    """Match conditions; those of a policy with parameters may refer to them."""
    if conditions:
        from srearena.cluster.embedded.registry.admission.expressions import condition_problem
    if len(conditions) > _MOST_CONDITIONS:
        problems.append(FieldError.too_many(path, len(conditions), _MOST_CONDITIONS))
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        where, name = f"{path}[{index}]", condition.get("name") or ""
        source = (condition.get("expression") or "").strip()
        if checks.required(problems, f"{where}.expression", source):
            wrong = condition_problem(source, params=params)
            if wrong:
                problems.append(FieldError.invalid(f"{where}.expression", source, wrong))
        if checks.required(problems, f"{where}.name", name):
            checks.qualified_name(problems, f"{where}.name", name)
            checks.unique(problems, f"{where}.name", name, seen)


STRATEGIES = {
    f"validatingwebhookconfigurations.{GROUP}": Strategy(default=_default_webhooks, validate=_validate_webhooks),
    f"mutatingwebhookconfigurations.{GROUP}": Strategy(default=_default_mutating_webhooks, validate=_validate_webhooks),
}
