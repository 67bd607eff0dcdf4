"""ResourceQuotas and LimitRanges."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.quantity import NANO, parse
from srearena.cluster.embedded.registry.errors import FieldError
from srearena.cluster.embedded.registry.label_syntax import qualified_name_errors
from srearena.cluster.embedded.registry.strategies import checks
from srearena.cluster.embedded.registry.strategies.amounts import reading, settle
from srearena.cluster.embedded.registry.strategies.checks import Problems
from srearena.cluster.embedded.registry.strategies.parts import items, part
from srearena.cluster.embedded.registry.strategies.resource_names import (
    QUOTA,
    amount,
    container_name_errors,
    is_overcommittable,
    is_quota_huge_pages,
    name_errors,
)
from srearena.cluster.embedded.registry.strategy import Strategy, WriteContext

_LIMIT_LISTS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
_LIMIT_TYPES = ("Pod", "Container", "PersistentVolumeClaim")
_POD_RESOURCES = frozenset({"pods", "cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"})
# The scopes there are, and the resources that can be counted within each.
_SCOPES: dict[str, frozenset[str]] = {
    "Terminating": _POD_RESOURCES,
    "NotTerminating": _POD_RESOURCES,
    "NotBestEffort": _POD_RESOURCES,
    "PriorityClass": _POD_RESOURCES,
    "CrossNamespacePodAffinity": _POD_RESOURCES,
    "BestEffort": frozenset({"pods"}),
    "VolumeAttributesClass": frozenset({"persistentvolumeclaims", "requests.storage"}),
}
_BARE_SCOPES = ("BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity")
_MUST_EXIST = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)
# Pairs of amounts in order: the lower, the higher, where the complaint stands, which is shown, and its words.
_ORDERED = (
    ("min", "max", "min", "min", "min value {} is greater than max value {}"),
    (
        "min",
        "defaultRequest",
        "defaultRequest",
        "defaultRequest",
        "min value {} is greater than default request value {}",
    ),
    (
        "defaultRequest",
        "max",
        "defaultRequest",
        "defaultRequest",
        "default request value {} is greater than max value {}",
    ),
    (
        "defaultRequest",
        "default",
        "defaultRequest",
        "defaultRequest",
        "default request value {} is greater than default limit value {}",
    ),
    ("min", "default", "default", "min", "min value {} is greater than default value {}"),
    ("default", "max", "default", "max", "default value {} is greater than max value {}"),
)


def _default_quota(obj: Obj) -> None:
    settle(part(obj, "spec"), "hard")
    settle(part(obj, "status"), "hard", "used")


def _prepare_quota_status(new: Obj, old: Obj, context: WriteContext) -> None:
    settle(new.get("status"), "hard", "used")


def _default_limit_range(obj: Obj) -> None:
    for limit in items(part(obj, "spec"), "limits"):
        settle(limit, *_LIMIT_LISTS)
        if limit.get("type") == "Container":
            default = {**(limit.get("max") or {}), **(limit.get("default") or {})}
            request = {**(limit.get("min") or {}), **default, **(limit.get("defaultRequest") or {})}
            for key, value in (("default", default), ("defaultRequest", request)):
                if value and value != limit.get(key):
                    limit[key] = value


def _validate_quota(obj: Obj) -> Problems:
    problems: Problems = []
    spec = obj.get("spec") or {}
    _amounts(problems, "spec.hard", spec.get("hard") or {})
    scopes = items(spec, "scopes")
    for scope in scopes:
        _scope(problems, "spec.scopes", scope, scopes, spec)
    _conflicts(problems, "spec.scopes", scopes, scopes)
    if spec.get("scopeSelector") is not None:
        _scope_selector(problems, "spec.scopeSelector.matchExpressions", spec)
    return problems


def _amounts(problems: Problems, path: str, amounts: Obj) -> None:
    for name, text in sorted(amounts.items()):
        where = f"{path}[{name}]"
        checks.invalid_each(problems, where, name, name_errors(name))
        if "/" not in name and name not in QUOTA and not is_quota_huge_pages(name):
            problems.append(FieldError.invalid(where, name, "must be a standard resource for quota"))
        amount(problems, where, name, text)


def _scope(problems: Problems, path: str, scope: str, reported_value: object, spec: Obj) -> None:
    if scope not in _SCOPES:
        problems.append(FieldError.invalid(path, reported_value, "unsupported scope"))
    _scope_fits(problems, path, scope, reported_value, spec)


def _scope_fits(problems: Problems, path: str, scope: str, reported_value: object, spec: Obj) -> None:
    allowed = _SCOPES.get(scope)
    for name in sorted(spec.get("hard") or {}):
        if allowed is not None and name not in allowed and (name in QUOTA or is_quota_huge_pages(name)):
            problems.append(FieldError.invalid(path, reported_value, "unsupported scope applied to resource"))


def _conflicts(problems: Problems, path: str, scopes: list[str], reported_value: object) -> None:
    for pair in (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating")):
        if all(scope in scopes for scope in pair):
            problems.append(FieldError.invalid(path, reported_value, "conflicting scopes"))


def _scope_selector(problems: Problems, path: str, spec: Obj) -> None:
    expressions = items(spec["scopeSelector"], "matchExpressions")
    reported_value = {
        "MatchExpressions": [
            {"ScopeName": e.get("scopeName") or "", "Operator": e.get("operator") or "", "Values": e.get("values")}
            for e in expressions
        ]
    }
    for expression in expressions:
        scope, operator = expression.get("scopeName") or "", expression.get("operator") or ""
        values = items(expression, "values")
        if scope not in _SCOPES:
            problems.append(FieldError.invalid(f"{path}.scopeName", scope, "unsupported scope"))
        _scope_fits(problems, path, scope, reported_value, spec)
        if scope in _BARE_SCOPES and operator != "Exists":
            problems.append(FieldError.invalid(f"{path}.operator", operator, _MUST_EXIST))
        if operator in ("In", "NotIn"):
            if not values:
                text = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                problems.append(FieldError.required(f"{path}.values", text))
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                text = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
                problems.append(FieldError.invalid(f"{path}.values", values, text))
        else:
            problems.append(FieldError.invalid(f"{path}.operator", operator, "not a valid selector operator"))
    _conflicts(problems, path, [e.get("scopeName") or "" for e in expressions], spec.get("scopes"))


def _validate_quota_update(new: Obj, old: Obj) -> Problems:
    scopes = items(new.get("spec"), "scopes")
    if set(scopes) == set(items(old.get("spec"), "scopes")):
        return []
    return [FieldError.invalid("spec.scopes", (new.get("spec") or {}).get("scopes"), checks.IMMUTABLE)]


def _validate_quota_status(new: Obj, old: Obj) -> Problems:
    problems: Problems = []
    for key in ("hard", "used"):
        _amounts(problems, f"status.{key}", (new.get("status") or {}).get(key) or {})
    return problems


def _validate_limit_range(obj: Obj) -> Problems:
    problems: Problems = []
    seen: set[str] = set()
    for index, limit in enumerate(items(obj.get("spec"), "limits")):
        path, kind = f"spec.limits[{index}]", limit.get("type") or ""
        wrong = qualified_name_errors(kind)
        checks.invalid_each(problems, f"{path}.type", kind, wrong)
        if not wrong and "/" not in kind and kind not in _LIMIT_TYPES:
            text = "must be a standard limit type or fully qualified"
            problems.append(FieldError.invalid(f"{path}.type", kind, text))
        checks.unique(problems, f"{path}.type", kind, seen)
        _limit_names(problems, path, kind, limit)
        names = sorted({name for key in _LIMIT_LISTS for name in limit.get(key) or {}})
        for name in names:
            _limit_amounts(problems, path, name, kind, limit)
    return problems


def _limit_names(problems: Problems, path: str, kind: str, limit: Obj) -> None:
    wrong = container_name_errors if kind in ("Pod", "Container") else name_errors
    for key in _LIMIT_LISTS:
        if kind == "Pod" and key in ("default", "defaultRequest"):
            if limit.get(key):
                problems.append(FieldError.forbidden(f"{path}.{key}", "may not be specified when `type` is 'Pod'"))
            continue
        for name in sorted(limit.get(key) or {}):
            checks.invalid_each(problems, f"{path}.{key}[{name}]", name, wrong(name))
        storage = ((limit.get("min") or {}).get("storage"), (limit.get("max") or {}).get("storage"))
        if key == "defaultRequest" and kind == "PersistentVolumeClaim" and storage == (None, None):
            text = "either minimum or maximum storage value is required, but neither was provided"
            problems.append(FieldError.required(f"{path}.limits", text))


def _limit_amounts(problems: Problems, path: str, name: str, kind: str, limit: Obj) -> None:
    """The five amounts of one resource against each other."""
    by_key = {key: (limit.get(key) or {}).get(name) for key in _LIMIT_LISTS}
    if kind == "Pod":
        by_key["default"] = by_key["defaultRequest"] = None
    for low, high, where, reported_value, text in _ORDERED:
        if by_key[low] is not None and by_key[high] is not None and parse(by_key[low]) > parse(by_key[high]):
            words = text.format(by_key[low], by_key[high])
            problems.append(FieldError.invalid(f"{path}.{where}[{name}]", by_key[reported_value], words))
    ratio, least, most = by_key["maxLimitRequestRatio"], by_key["min"], by_key["max"]
    if ratio is not None:
        where = f"{path}.maxLimitRequestRatio[{name}]"
        if parse(ratio).nano < NANO:
            problems.append(FieldError.invalid(where, ratio, f"ratio {ratio} is less than 1"))
        if least is not None and most is not None and parse(least).nano:
            highest = parse(most).nano / parse(least).nano
            if parse(ratio).as_float() > highest:
                text = f"ratio {ratio} is greater than max/min = {highest:f}"
                problems.append(FieldError.invalid(where, ratio, text))
    limited, requested = by_key["default"], by_key["defaultRequest"]
    if not is_overcommittable(name) and limited is not None and requested is not None and limited != requested:
        text = f"default value {limited} must equal to defaultRequest value {requested} in {name}"
        problems.append(FieldError.invalid(f"{path}.defaultRequest[{name}]", requested, text))


STRATEGIES = {
    "resourcequotas": Strategy(
        default=reading(_default_quota),
        prepare_status=_prepare_quota_status,
        validate=_validate_quota,
        validate_update=_validate_quota_update,
        validate_status=_validate_quota_status,
    ),
    "limitranges": Strategy(default=reading(_default_limit_range), validate=_validate_limit_range),
}
