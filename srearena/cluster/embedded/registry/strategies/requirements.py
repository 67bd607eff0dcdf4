"""Resource requirements of containers, pods and templates: limits, requests, and what holds between them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.quantity import parse
from srearena.cluster.embedded.registry.errors import FieldError, FieldErrorKind
from srearena.cluster.embedded.registry.strategies import checks
from srearena.cluster.embedded.registry.strategies.checks import Problems
from srearena.cluster.embedded.registry.strategies.parts import items
from srearena.cluster.embedded.registry.strategies.pod_resources import aggregate, is_pod_level
from srearena.cluster.embedded.registry.strategies.resource_names import (
    amount,
    container_name_errors,
    huge_pages_error,
    is_huge_pages,
    is_overcommittable,
    name_errors,
)

_POD_LEVEL_NAMES = ("cpu", "hugepages-", "memory")
_COMPUTE = ("cpu", "memory")


def container_requirements(
    problems: Problems, path: str, requirements: Mapping[str, Any] | None, claims: Collection[str] = ()
) -> None:
    if requirements:
        _requirements(problems, path, requirements, _container_name, claims)


def pod_requirements(problems: Problems, path: str, spec: Obj) -> None:
    """What the pod as a whole asks for, also against what its containers do."""
    resources = spec.get("resources")
    if resources is None:
        return
    if resources.get("claims") is not None:
        problems.append(FieldError.forbidden(f"{path}.claims", "claims may not be set for Resources at pod-level"))
    _requirements(problems, path, resources, _pod_name, ())
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    for name, needed in aggregate(spec, "requests").items():
        if name in requests and needed > parse(requests[name]):
            text = f"must be greater than or equal to aggregate container requests of {needed}"
            problems.append(FieldError.invalid(f"{path}.requests[{name}]", requests[name], text))
    for name, needed in aggregate(spec, "limits").items():
        if is_huge_pages(name) and name in limits and needed > parse(limits[name]):
            text = f"must be greater than or equal to aggregate container limits of {needed}"
            problems.append(FieldError.invalid(f"{path}.limits[{name}]", limits[name], text))
    for index, container in enumerate(items(spec, "containers")):
        for name, limit in ((container.get("resources") or {}).get("limits") or {}).items():
            if name in limits and parse(limit) > parse(limits[name]):
                text = f"must be less than or equal to pod limits of {limits[name]}"
                where = f"{path}.containers[{index}][{name}].limits"
                problems.append(FieldError.invalid(where, limit, text))


def _container_name(problems: Problems, path: str, name: str) -> None:
    for text in container_name_errors(name):
        problems.append(FieldError.invalid(path, name, text))


def _pod_name(problems: Problems, path: str, name: str) -> None:
    found = name_errors(name)
    checks.invalid_each(problems, path, name, found)
    if not found and not is_pod_level(name):
        problems.append(FieldError.not_supported(path, name, _POD_LEVEL_NAMES))


def _requirements(
    problems: Problems,
    path: str,
    requirements: Mapping[str, Any],
    check_name: Callable[[Problems, str, str], None],
    claims: Collection[str],
) -> None:
    limits, requests = requirements.get("limits") or {}, requirements.get("requests") or {}
    has_huge_pages = False
    for name, limit in sorted(limits.items()) if len(limits) > 1 else limits.items():
        where = f"{path}.limits[{name}]"
        check_name(problems, where, name)
        amount(problems, where, name, limit)
        has_huge_pages |= _huge_pages(problems, where, name, limit)
    for name, request in sorted(requests.items()) if len(requests) > 1 else requests.items():
        where = f"{path}.requests[{name}]"
        check_name(problems, where, name)
        amount(problems, where, name, request)
        if name in limits:
            limit = limits[name]
            if request != limit:
                _against_limit(problems, f"{path}.requests", name, request, limit)
        elif not is_overcommittable(name):
            problems.append(FieldError.required(f"{path}.limits", "Limit must be set for non overcommitable resources"))
        has_huge_pages |= _huge_pages(problems, where, name, request)
    if has_huge_pages and not any(name in limits or name in requests for name in _COMPUTE):
        problems.append(FieldError.forbidden(path, "HugePages require cpu or memory"))
    if requirements.get("claims"):
        _claims(problems, f"{path}.claims", requirements["claims"], claims)


def _against_limit(problems: Problems, path: str, name: str, request: str, limit: str) -> None:
    wanted, most = parse(request), parse(limit)
    if wanted != most and not is_overcommittable(name):
        problems.append(FieldError.invalid(path, request, f"must be equal to {name} limit of {limit}"))
    elif wanted > most:
        problems.append(FieldError.invalid(path, request, f"must be less than or equal to {name} limit of {limit}"))


def _huge_pages(problems: Problems, path: str, name: str, text: str) -> bool:
    if not is_huge_pages(name):
        return False
    error = huge_pages_error(name, text)
    if error:
        problems.append(FieldError.invalid(path, text, error))
    return True


def _claims(problems: Problems, path: str, listed: list[Obj], known: Collection[str]) -> None:
    seen: set[str] = set()
    for index, claim in enumerate(listed):
        where, name, request = f"{path}[{index}]", claim.get("name") or "", claim.get("request") or ""
        if not name:
            problems.append(FieldError.required(where))
            continue
        if name in seen:
            problems.append(FieldError.duplicate(where, name))
        else:
            if request:
                checks.label(problems, f"{where}.request", request)
            key = f"{name}/{request}" if request else name
            if key in seen or (not request and any(other.startswith(f"{name}/") for other in seen)):
                problems.append(FieldError.duplicate(where, key))
            seen.add(key)
        if name not in known:
            tail = f": {', '.join(sorted(known))}" if known else " which is empty"
            detail = f"must be one of the names in pod.spec.resourceClaims{tail}"
            problems.append(FieldError(FieldErrorKind.NOT_FOUND, where, name, detail))
