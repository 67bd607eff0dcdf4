"""References to a pod's own fields and resources, from environment variables and from volumes."""

from __future__ import annotations

import re

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.quantity import parse
from srearena.cluster.embedded.registry.errors import FieldError
from srearena.cluster.embedded.registry.strategies import checks
from srearena.cluster.embedded.registry.strategies.checks import Problems

_ENV_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
_VOLUME_FIELDS = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
_KNOWN_FIELDS = frozenset({*_ENV_FIELDS, *_VOLUME_FIELDS, "spec.restartPolicy", "spec.schedulerName", "status.phase"})
_RESOURCES = (
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
)
_HUGE_PAGES = ("limits.hugepages-", "requests.hugepages-")
_SUBSCRIPTED = re.compile(r"(.+?)\['(.*)'\]", re.DOTALL)
_BYTE_DIVISORS = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_BYTES = ", ".join(_BYTE_DIVISORS)
# By the ending of the resource: which divisors there are, and how the refusal names them.
_DIVISORS = {
    "cpu": (("1m", "1"), "1m and 1 are supported with the cpu resource"),
    "memory": (_BYTE_DIVISORS, f"{_BYTES} are supported with the memory resource"),
    "ephemeral-storage": (_BYTE_DIVISORS, f"{_BYTES} are supported with the local ephemeral storage resource"),
}
_PAGE_DIVISORS = (_BYTE_DIVISORS, f"{_BYTES} are supported with the hugepages resource")


def check_env_field(problems: Problems, path: str, reference: Obj) -> None:
    _field(problems, path, reference, _ENV_FIELDS)


def check_volume_field(problems: Problems, path: str, reference: Obj) -> None:
    _field(problems, path, reference, _VOLUME_FIELDS)


def _field(problems: Problems, path: str, reference: Obj, supported: tuple[str, ...]) -> None:
    version, field = reference.get("apiVersion") or "", reference.get("fieldPath") or ""
    if not version:
        problems.append(FieldError.required(f"{path}.apiVersion"))
        return
    if not field:
        problems.append(FieldError.required(f"{path}.fieldPath"))
        return
    if field in supported:
        return
    subscripted = _SUBSCRIPTED.fullmatch(field)
    base = subscripted[1] if subscripted else field
    if version != "v1":
        problem = f"unsupported pod version: {version}"
    elif subscripted and base not in ("metadata.annotations", "metadata.labels"):
        problem = f"field label does not support subscript: {field}"
    elif not subscripted and field not in _KNOWN_FIELDS:
        problem = f"field label not supported: {field}"
    else:
        problem = ""
    if problem:
        text = f"error converting fieldPath: {problem}"
        problems.append(FieldError.invalid(f"{path}.fieldPath", field, text))
    elif subscripted:
        key = subscripted[2].lower() if base == "metadata.annotations" else subscripted[2]
        checks.qualified_name(problems, path, key)
    else:
        problems.append(FieldError.not_supported(f"{path}.fieldPath", field, supported))


def check_resource_field(problems: Problems, path: str, reference: Obj, *, in_volume: bool) -> None:
    resource = reference.get("resource") or ""
    if in_volume and not reference.get("containerName"):
        problems.append(FieldError.required(f"{path}.containerName"))
    elif not resource:
        problems.append(FieldError.required(f"{path}.resource"))
    elif resource not in _RESOURCES and not resource.startswith(_HUGE_PAGES):
        problems.append(FieldError.not_supported(f"{path}.resource", resource, _RESOURCES))
    divisor = parse(reference.get("divisor"))
    if divisor.is_zero:
        return
    known = resource in _RESOURCES
    rule = _DIVISORS[resource.partition(".")[2]] if known else _PAGE_DIVISORS
    if (known or resource.startswith(_HUGE_PAGES)) and str(divisor) not in rule[0]:
        problems.append(FieldError.invalid(f"{path}.divisor", resource, f"only divisor's values {rule[1]}"))
