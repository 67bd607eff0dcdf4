"""Expressions of admission, in CEL: what policies and match conditions may refer to, and how they are evaluated.

Only imported where an expression is there, since CEL is not needed before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Final

from srearena.cluster.embedded.cel.compiled import Expression, compile
from srearena.cluster.embedded.cel.errors import CompileError, EvaluationError
from srearena.cluster.embedded.cel.evaluation import Lazy
from srearena.cluster.embedded.cel.kubernetes import FORMATS, Authorizer, Check, ResourceCheck
from srearena.cluster.embedded.cel.types import (
    BOOL,
    DYN,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    ObjectType,
    Type,
    list_of,
    map_of,
)
from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.admission.chain import Attributes
from srearena.cluster.embedded.registry.identity import User
from srearena.cluster.embedded.registry.label_syntax import label_value_errors, qualified_name_errors
from srearena.cluster.embedded.registry.names import label_1035_errors, label_errors, subdomain_errors
from srearena.cluster.embedded.registry.string_formats import matches_format

Authorize = Callable[[User, Check], tuple[bool, str]]
"""Answers whether a user may do what a check asks about, and why."""
BUDGET: Final = 10_000_000
"""The cost of all expressions of a policy for one write, in CEL's units."""
MATCH_BUDGET: Final = BUDGET // 4
"""The same for the match conditions of a policy or a webhook."""
_OUT_OF_BUDGET: Final = "validation failed due to running out of cost budget, no further validation rules will be run"
ANY: Final[tuple[Type, ...]] = ()
"""Result types of an expression that may be of any."""
CONDITION: Final = (BOOL,)
MESSAGE: Final = (STRING,)
ANNOTATION: Final = (STRING, NULL)

_STRINGS: Final = map_of(STRING, STRING)


_WIRE_FORMATS: Final = {"uri": "uri", "uuid": "uuid", "byte": "byte", "date": "date", "datetime": "date-time"}


def _format_errors(wire: str, text: str) -> list[str]:
    return [] if matches_format(wire, text) else [f"invalid {wire}"]


def _object(name: str, /, **fields: Type) -> ObjectType:
    return ObjectType.of(f"kubernetes.{name}", fields)


_KIND: Final = _object("GroupVersionKind", group=STRING, version=STRING, kind=STRING)
_RESOURCE: Final = _object("GroupVersionResource", group=STRING, version=STRING, resource=STRING)
_USER: Final = _object(
    "UserInfo", username=STRING, uid=STRING, groups=list_of(STRING), extra=map_of(STRING, list_of(STRING))
)
_REQUEST: Final = _object(
    "AdmissionRequest",
    kind=_KIND,
    resource=_RESOURCE,
    subResource=STRING,
    requestKind=_KIND,
    requestResource=_RESOURCE,
    requestSubResource=STRING,
    name=STRING,
    namespace=STRING,
    operation=STRING,
    userInfo=_USER,
    dryRun=BOOL,
    options=DYN,
)
_NAMESPACE: Final = _object(
    "Namespace",
    metadata=_object(
        "NamespaceMetadata",
        name=STRING,
        generateName=STRING,
        namespace=STRING,
        labels=_STRINGS,
        annotations=_STRINGS,
        UID=STRING,
        creationTimestamp=TIMESTAMP,
        deletionGracePeriodSeconds=INT,
        deletionTimestamp=TIMESTAMP,
        generation=INT,
        resourceVersion=STRING,
        finalizers=list_of(STRING),
    ),
    spec=_object("NamespaceSpec", finalizers=list_of(STRING)),
    status=_object(
        "NamespaceStatus",
        phase=STRING,
        conditions=list_of(
            _object(
                "NamespaceCondition",
                status=STRING,
                type=STRING,
                lastTransitionTime=TIMESTAMP,
                message=STRING,
                reason=STRING,
            )
        ),
    ),
)
FORMATS.update(
    {
        "dns1123Label": label_errors,
        "dns1123Subdomain": subdomain_errors,
        "dns1035Label": label_1035_errors,
        "dns1123LabelPrefix": partial(label_errors, is_prefix=True),
        "dns1123SubdomainPrefix": partial(subdomain_errors, is_prefix=True),
        "dns1035LabelPrefix": partial(label_1035_errors, is_prefix=True),
        "qualifiedName": qualified_name_errors,
        "labelValue": label_value_errors,
        **{name: partial(_format_errors, wire) for name, wire in _WIRE_FORMATS.items()},
    }
)
Declared = tuple[tuple[str, Type], ...]
"""The variables of a policy so far, with their types."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What an expression may refer to besides the object and the request."""

    params: bool = False
    authorizer: bool = True
    variables: Declared = ()
    object_type: Type = DYN

    def types(self) -> dict[str, Type]:
        found: dict[str, Type] = {
            "object": self.object_type,
            "oldObject": self.object_type,
            "request": _REQUEST,
            "namespaceObject": _NAMESPACE,
        }
        if self.params:
            found["params"] = DYN
        if self.authorizer:
            found["authorizer"] = Type("kubernetes.authorization.Authorizer")
            found["authorizer.requestResource"] = Type("kubernetes.authorization.ResourceCheck")
        if self.variables:
            found["variables"] = ObjectType.of("kubernetes.variables", dict(self.variables))
        return found


@lru_cache(maxsize=1024)
def compiled(source: str, scope: Scope) -> Expression:
    """The compiled expression; raises CompileError."""
    return compile(source, scope.types())


def problem_of(source: str, scope: Scope, results: tuple[Type, ...]) -> str:
    """What is wrong with an expression; empty where nothing is."""
    try:
        found = compiled(source, scope).type
    except CompileError as problem:
        return f"compilation failed: {problem}"
    if not results or found in results:
        return ""
    if len(results) == 1:
        return f"must evaluate to {results[0]} but got {found}"
    return f"must evaluate to one of [{' '.join(map(str, results))}] but got {found}"


def condition_problem(source: str, *, params: bool) -> str:
    """What is wrong with a match condition; empty where nothing is."""
    return problem_of(source, Scope(params=params), CONDITION)


class OutOfBudget(EvaluationError):
    """The expressions cost more than the server allows for one write."""

    def __init__(self) -> None:
        super().__init__(_OUT_OF_BUDGET)


@dataclass(slots=True)
class Evaluation:
    """Evaluates expressions about one write, within a budget."""

    variables: dict[str, Any]
    budget: int = BUDGET

    def value(self, source: str, scope: Scope) -> Any:
        """The value of an expression; raises EvaluationError with the server's words."""
        try:
            outcome = compiled(source, scope).evaluate(self.variables)
        except CompileError as problem:
            raise EvaluationError(f"compilation error: compilation failed: {problem}") from None
        except OutOfBudget:
            raise
        except EvaluationError as problem:
            raise EvaluationError(f"expression '{source}' resulted in error: {problem}") from None
        self.budget -= outcome.cost
        if self.budget < 0:
            raise OutOfBudget
        return outcome.value

    def define(self, variables: list[Obj], scope: Scope) -> Scope:
        """Make the variables of a policy available, each computed when first used; returns the scope with them."""
        values: dict[str, Any] = {}
        self.variables["variables"] = values
        for variable in variables:
            name, source, known = variable["name"], variable["expression"], scope
            values[name] = Lazy(partial(self._variable, source, known))
            scope = with_variable(scope, name, source)
        return scope

    def _variable(self, source: str, scope: Scope) -> Any:
        outcome = compiled(source, scope).evaluate(self.variables)
        self.budget -= outcome.cost
        return outcome.value


def with_variable(scope: Scope, name: str, source: str) -> Scope:
    """The scope with one more variable of a policy."""
    try:
        kind = compiled(source, scope).type
    except CompileError:
        kind = DYN
    return Scope(scope.params, scope.authorizer, (*scope.variables, (name, kind)), scope.object_type)


def bindings(
    authorize: Authorize | None, attributes: Attributes, namespace: Obj | None = None, params: Obj | None = None
) -> dict[str, Any]:
    """The variables of expressions about a write."""

    def decide(check: Check) -> tuple[bool, str]:
        if authorize is None:
            return False, ""
        return authorize(User(check.user, check.groups) if check.user else attributes.user, check)

    row = attributes.row
    return {
        "object": attributes.obj,
        "oldObject": attributes.old,
        "request": request_of(attributes),
        "namespaceObject": namespace,
        "params": params,
        "authorizer": Authorizer(decide),
        "authorizer.requestResource": ResourceCheck(
            decide,
            group=row.group,
            resource=row.plural,
            subresource=attributes.subresource,
            namespace=attributes.namespace,
            name=attributes.name,
        ),
    }


def all_match(evaluation: Evaluation, conditions: list[Obj], scope: Scope) -> bool:
    """Whether a write meets all match conditions; raises EvaluationError where that cannot be said."""
    problems: list[str] = []
    for condition in conditions:
        try:
            if evaluation.value(condition["expression"].strip(), scope) is False:
                return False
        except OutOfBudget:
            raise
        except EvaluationError as problem:
            problems.append(str(problem))
    if problems:
        raise EvaluationError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
    return True


def request_of(attributes: Attributes) -> Mapping[str, Any]:
    """The request as expressions see it: an AdmissionRequest without the objects."""
    row = attributes.row
    kind = {"group": row.group, "version": row.version, "kind": row.kind}
    if attributes.operation == "CONNECT" and attributes.obj is not None:
        kind = {"group": "", "version": "v1", "kind": attributes.obj["kind"]}
    resource = {"group": row.group, "version": row.version, "resource": row.plural}
    request: dict[str, Any] = {
        "uid": "",
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "operation": attributes.operation,
        "userInfo": attributes.user.info(),
        "dryRun": attributes.dry_run,
        "options": attributes.options or None,
    }
    named = {
        "name": attributes.name,
        "namespace": attributes.namespace,
        "subResource": attributes.subresource,
        "requestSubResource": attributes.subresource,
    }
    return request | {key: value for key, value in named.items() if value}
