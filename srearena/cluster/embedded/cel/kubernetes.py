"""Kubernetes' own types: quantities, semantic versions, named formats, and checks of the authorizer."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import total_ordering
from typing import Any, Final

from srearena.cluster.embedded.cel.errors import EvaluationError
from srearena.cluster.embedded.cel.functions import overload, traversal
from srearena.cluster.embedded.cel.values import Optional, register_type
from srearena.cluster.embedded.quantity import NANO, Quantity, QuantityError, parse

register_type(Quantity, "kubernetes.Quantity")


@overload("quantity(string) quantity", cost=traversal)
def _quantity(text: str) -> Quantity:
    try:
        return parse(text)
    except QuantityError as problem:
        raise EvaluationError(str(problem)) from None


@overload("isQuantity(string) bool", cost=traversal)
def _is_quantity(text: str) -> bool:
    try:
        parse(text)
    except QuantityError:
        return False
    return True


@overload("quantity.sign() int")
def _sign(quantity: Quantity) -> int:
    return quantity.sign


@overload("quantity.isInteger() bool")
def _is_integer(quantity: Quantity) -> bool:
    return quantity.nano % NANO == 0 and abs(quantity.nano) < 2**63 * NANO


@overload("quantity.asInteger() int")
def _as_integer(quantity: Quantity) -> int:
    if not _is_integer(quantity):
        raise EvaluationError("cannot convert value to integer")
    return quantity.value()


@overload("quantity.asApproximateFloat() double")
def _as_float(quantity: Quantity) -> float:
    return quantity.as_float()


@overload("quantity.add(quantity) quantity", "quantity.add(int) quantity")
def _add(quantity: Quantity, other: Any) -> Quantity:
    return quantity + (other if isinstance(other, Quantity) else Quantity.of(other))


@overload("quantity.sub(quantity) quantity", "quantity.sub(int) quantity")
def _sub(quantity: Quantity, other: Any) -> Quantity:
    return quantity - (other if isinstance(other, Quantity) else Quantity.of(other))


@total_ordering
@dataclass(frozen=True, slots=True)
class Semver:
    """A semantic version."""

    numbers: tuple[int, int, int]
    pre: tuple[str, ...] = ()
    build: str = ""

    def __lt__(self, other: Semver) -> bool:
        if self.numbers != other.numbers:
            return self.numbers < other.numbers
        if not self.pre or not other.pre:
            return bool(self.pre) and not other.pre
        return [_precedence(part) for part in self.pre] < [_precedence(part) for part in other.pre]

    def __str__(self) -> str:
        text = ".".join(map(str, self.numbers))
        return text + (f"-{'.'.join(self.pre)}" if self.pre else "") + (f"+{self.build}" if self.build else "")


def _precedence(part: str) -> tuple[int, int, str]:
    return (0, int(part), "") if part.isdecimal() else (1, 0, part)


register_type(Semver, "kubernetes.Semver")
_SEMVER: Final = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z.-]+))?(?:\+([0-9A-Za-z.-]+))?", re.ASCII
)
_LOOSE: Final = re.compile(r"v?(\d+)(?:\.(\d+))?(?:\.(\d+))?(?:-([0-9A-Za-z.-]+))?(?:\+([0-9A-Za-z.-]+))?", re.ASCII)


def _version(text: str, normalize: bool) -> Semver | None:
    match = (_LOOSE if normalize else _SEMVER).fullmatch(text)
    if match is None:
        return None
    major, minor, patch = (int(match[group] or 0) for group in (1, 2, 3))
    return Semver((major, minor, patch), tuple((match[4] or "").split(".")) if match[4] else (), match[5] or "")


@overload("semver(string) semver", "semver(string, bool) semver", cost=traversal)
def _semver(text: str, normalize: bool = False) -> Semver:
    found = _version(text, normalize)
    if found is None:
        if text.count(".") < 2:
            raise EvaluationError("No Major.Minor.Patch elements found")
        raise EvaluationError(f'Invalid character(s) found in version number "{text}"')
    return found


@overload("isSemver(string) bool", "isSemver(string, bool) bool", cost=traversal)
def _is_semver(text: str, normalize: bool = False) -> bool:
    return _version(text, normalize) is not None


def _register_parts() -> None:
    for place, name in enumerate(("major", "minor", "patch")):

        def read(version: Semver, place: int = place) -> int:
            return version.numbers[place]

        overload(f"semver.{name}() int")(read)


_register_parts()


@overload("quantity.compareTo(quantity) int", "semver.compareTo(semver) int")
def _compare_to(one: Any, other: Any) -> int:
    return int(one > other) - int(one < other)


@overload("quantity.isLessThan(quantity) bool", "semver.isLessThan(semver) bool")
def _is_less_than(one: Any, other: Any) -> bool:
    return bool(one < other)


@overload("quantity.isGreaterThan(quantity) bool", "semver.isGreaterThan(semver) bool")
def _is_greater_than(one: Any, other: Any) -> bool:
    return bool(one > other)


@dataclass(frozen=True, slots=True)
class Format:
    """A named format of strings."""

    name: str
    problems: Callable[[str], Sequence[str]]


register_type(Format, "kubernetes.NamedFormat")
FORMATS: Final[dict[str, Callable[[str], Sequence[str]]]] = {}
"""Formats by name, each giving the problems of a text; `registry` fills in those it validates with."""


@overload("format:named(string) optional_type(format)")
def _named(name: str) -> Optional:
    return Optional(True, Format(name, FORMATS[name])) if name in FORMATS else Optional()


def _register_formats() -> None:
    for name in _FORMAT_NAMES:
        overload(f"format:{name}() format")(lambda name=name: Format(name, FORMATS[name]))


_FORMAT_NAMES: Final = (
    "dns1123Label",
    "dns1123Subdomain",
    "dns1035Label",
    "qualifiedName",
    "dns1123LabelPrefix",
    "dns1123SubdomainPrefix",
    "dns1035LabelPrefix",
    "labelValue",
    "uri",
    "uuid",
    "byte",
    "date",
    "datetime",
)
_register_formats()


@overload("format.validate(string) optional_type(list(string))", cost=traversal)
def _validate(named: Format, text: str) -> Optional:
    problems = named.problems(text)
    return Optional(True, problems) if problems else Optional()


@dataclass(frozen=True, slots=True)
class Check:
    """A question to the authorizer, as far as it is asked; `decide` answers it."""

    decide: Callable[[Check], tuple[bool, str]]
    user: str = ""
    groups: tuple[str, ...] = ()
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    verb: str = ""


class Authorizer(Check):
    __slots__ = ()


class PathCheck(Check):
    __slots__ = ()


class GroupCheck(Check):
    __slots__ = ()


class ResourceCheck(Check):
    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Decision:
    allowed: bool
    reason: str


for _kind, _type in (
    (Authorizer, "Authorizer"),
    (PathCheck, "PathCheck"),
    (GroupCheck, "GroupCheck"),
    (ResourceCheck, "ResourceCheck"),
    (Decision, "Decision"),
):
    register_type(_kind, f"kubernetes.authorization.{_type}")


def _further(kind: type[Check], check: Check, **known: Any) -> Check:
    values = {name: getattr(check, name) for name in Check.__slots__}
    return kind(**{**values, **known})


@overload("authorizer.path(string) path_check")
def _path(check: Authorizer, path: str) -> Check:
    return _further(PathCheck, check, path=path)


@overload("authorizer.group(string) group_check")
def _group(check: Authorizer, group: str) -> Check:
    return _further(GroupCheck, check, group=group)


@overload("authorizer.serviceAccount(string, string) authorizer")
def _service_account(check: Authorizer, namespace: str, name: str) -> Check:
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
    return replace(check, user=f"system:serviceaccount:{namespace}:{name}", groups=groups)


@overload("group_check.resource(string) resource_check")
def _resource(check: GroupCheck, resource: str) -> Check:
    return _further(ResourceCheck, check, resource=resource)


@overload("resource_check.subresource(string) resource_check")
def _subresource(check: ResourceCheck, subresource: str) -> Check:
    return replace(check, subresource=subresource)


@overload("resource_check.namespace(string) resource_check")
def _namespace(check: ResourceCheck, namespace: str) -> Check:
    return replace(check, namespace=namespace)


@overload("resource_check.name(string) resource_check")
def _name(check: ResourceCheck, name: str) -> Check:
    return replace(check, name=name)


@overload(
    "path_check.check(string) decision", "resource_check.check(string) decision", cost=lambda _check, _verb: 350_000
)
def _check(check: Check, verb: str) -> Decision:
    return Decision(*check.decide(replace(check, verb=verb)))


@overload("decision.allowed() bool")
def _allowed(decision: Decision) -> bool:
    return decision.allowed


@overload("decision.reason() string")
def _reason(decision: Decision) -> str:
    return decision.reason


@overload("decision.errored() bool")
def _errored(_: Decision) -> bool:
    return False


@overload("decision.error() string")
def _error(_: Decision) -> str:
    return ""
