"""ValidatingAdmissionPolicy: policies in CEL that bindings put into force.

A policy without a binding does nothing. Each binding that concerns a write is evaluated once for each of its
parameter objects; the first denial is the one that the client sees.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from srearena.cluster.embedded.cel.errors import EvaluationError
from srearena.cluster.embedded.objects import Obj, labels_of, name_of
from srearena.cluster.embedded.registry import conversion
from srearena.cluster.embedded.registry.admission.chain import Attributes, Plugin
from srearena.cluster.embedded.registry.admission.conditions import Conditions
from srearena.cluster.embedded.registry.admission.webhook_rules import selected
from srearena.cluster.embedded.registry.errors import ApiError
from srearena.cluster.embedded.registry.resources import Resource, ResourceTable
from srearena.cluster.embedded.registry.selectors import label_selector_of
from srearena.cluster.embedded.store import Store

if TYPE_CHECKING:
    from srearena.cluster.embedded.registry.admission.expressions import Evaluation, Scope

GROUP = "admissionregistration.k8s.io"
POLICIES = f"validatingadmissionpolicies.{GROUP}"
BINDINGS = f"validatingadmissionpolicybindings.{GROUP}"
_EXEMPT = frozenset(
    {
        *(f"{kind}admissionpolic{end}.{GROUP}" for kind in ("validating", "mutating") for end in ("ies", "ybindings")),
        *(f"{name}.authentication.k8s.io" for name in ("selfsubjectreviews", "tokenreviews")),
        *(
            f"{name}.authorization.k8s.io"
            for name in (
                "localsubjectaccessreviews",
                "selfsubjectaccessreviews",
                "selfsubjectrulesreviews",
                "subjectaccessreviews",
            )
        ),
    }
)
"""What no policy is asked about."""
_CODES = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413, "Invalid": 422}
_MOST_MESSAGE_BYTES = 5 * 1024


@dataclass(frozen=True, slots=True)
class _Denial:
    message: str
    reason: str = "Invalid"


class _Misconfigured(Exception):
    """A policy or binding that cannot be put into force."""


class ValidatingPolicies(Plugin):
    name = "ValidatingAdmissionPolicy"

    def __init__(self, store: Store, resources: ResourceTable, conditions: Conditions) -> None:
        self._store = store
        self._resources = resources
        self._conditions = conditions

    def validate(self, attributes: Attributes) -> None:
        if not self._store.count(BINDINGS) or not self._store.count(POLICIES):
            return
        if attributes.row.group_resource in _EXEMPT:
            return
        denied: list[tuple[str, _Denial]] = []
        for policy in self._store.objects(POLICIES):
            if selected(self._store, policy["spec"].get("matchConstraints") or {}, attributes):
                denied += self._denials(policy, attributes)
        if denied:
            who, denial = denied[0]
            raise _refusal(
                attributes, f"ValidatingAdmissionPolicy {who} denied request: {denial.message}", denial.reason
            )

    def _denials(self, policy: Obj, attributes: Attributes) -> Iterator[tuple[str, _Denial]]:
        name, fails = name_of(policy), policy["spec"].get("failurePolicy") != "Ignore"
        for binding in self._store.objects(BINDINGS):
            spec = binding["spec"]
            if spec.get("policyName") != name:
                continue
            matching = spec.get("matchResources")
            if matching and not selected(self._store, matching, attributes, ruled=False):
                continue
            who = f"'{name}' with binding '{name_of(binding)}'"
            try:
                params = list(self._params(policy["spec"].get("paramKind"), spec.get("paramRef"), attributes))
            except _Misconfigured as problem:
                if fails:
                    yield who, _Denial(f"failed to configure binding: {problem}")
                continue
            actions = spec.get("validationActions") or ()
            for param in params:
                for denial in self._evaluate(policy["spec"], attributes, param, fails=fails):
                    if "Deny" in actions:
                        yield who, denial
                    if "Warn" in actions:
                        attributes.warnings.append(
                            f"Validation failed for ValidatingAdmissionPolicy {who}: {denial.message}"
                        )

    def _params(self, kind: Obj | None, ref: Obj | None, attributes: Attributes) -> Iterator[Obj | None]:
        """The parameter objects that a binding refers to; None where it has none."""
        if not kind or not ref:
            yield None
            return
        row = self._resources.of_kind(kind["apiVersion"], kind["kind"])
        if row is None:
            shown = f"&ParamKind{{APIVersion:{kind['apiVersion']},Kind:{kind['kind']},}}"
            raise _Misconfigured(f"paramKind kind `{shown}` not known")
        namespace = self._param_namespace(row, ref, attributes)
        if ref.get("name"):
            named = self._store.get(row.storage_key, namespace, ref["name"])
            found = [] if named is None else [named]
        else:
            selector = label_selector_of(ref.get("selector") or {})
            listed = self._store.objects(row.storage_key, namespace)
            found = [obj for obj in listed if selector.matches(labels_of(obj))]
        if not found and ref.get("parameterNotFoundAction") == "Deny":
            raise _Misconfigured("no params found for policy binding with `Deny` parameterNotFoundAction")
        for obj in found:
            yield conversion.from_storage(row, obj)

    @staticmethod
    def _param_namespace(row: Resource, ref: Obj, attributes: Attributes) -> str:
        named: str = ref.get("namespace") or ""
        if not row.namespaced:
            if named:
                raise _Misconfigured("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
            return ""
        if not named and not attributes.namespace:
            raise _Misconfigured(
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
            )
        return named or attributes.namespace

    def _evaluate(self, spec: Obj, attributes: Attributes, param: Obj | None, *, fails: bool) -> list[_Denial]:
        """What a policy has against a write, given one parameter object."""
        from srearena.cluster.embedded.registry.admission import expressions

        namespace = None
        if attributes.namespace and attributes.row.group_resource != "namespaces":
            namespace = self._store.get("namespaces", "", attributes.namespace)
        variables = expressions.bindings(self._conditions.authorize, attributes, namespace, param)
        scope = expressions.Scope(params=bool(spec.get("paramKind")))
        found: list[_Denial] = []
        try:
            matched = expressions.Evaluation(variables, expressions.MATCH_BUDGET)
            if not expressions.all_match(matched, spec.get("matchConditions") or [], scope):
                return []
            evaluation = expressions.Evaluation(variables)
            scope = evaluation.define(spec.get("variables") or [], scope)
            for validation in spec.get("validations") or ():
                denial = self._verdict(evaluation, scope, validation, fails=fails)
                found += [denial] if denial else []
            for annotation in spec.get("auditAnnotations") or ():
                # Errors deny as those of validations do; the annotation itself is for the audit log.
                evaluation.value(annotation["valueExpression"].strip(), scope)
        except EvaluationError as problem:
            return [*found, _Denial(str(problem))] if fails else found
        return found

    @staticmethod
    def _verdict(evaluation: Evaluation, scope: Scope, validation: Obj, *, fails: bool) -> _Denial | None:
        from srearena.cluster.embedded.registry.admission import expressions

        source = validation["expression"]
        try:
            if evaluation.value(source, scope) is True:
                return None
        except expressions.OutOfBudget:
            raise
        except EvaluationError as problem:
            return _Denial(str(problem)) if fails else None
        message = _message(evaluation, scope, validation) or (validation.get("message") or "").strip()
        return _Denial(message or f"failed expression: {source.strip()}", validation.get("reason") or "Invalid")


def _message(evaluation: Evaluation, scope: Scope, validation: Obj) -> str:
    """What a messageExpression says; empty where it says nothing that can be shown."""
    source = validation.get("messageExpression")
    if not source:
        return ""
    try:
        found: Any = evaluation.value(source, scope)
    except EvaluationError:
        return ""
    text = found.strip() if isinstance(found, str) else ""
    return "" if "\n" in text or len(text.encode()) > _MOST_MESSAGE_BYTES else text


def _refusal(attributes: Attributes, message: str, reason: str) -> ApiError:
    refusal = attributes.refusal(message)
    refusal.reason = reason
    refusal.code = _CODES.get(reason, 422)
    refusal.details = {**(refusal.details or {}), "causes": [{"message": message}]}
    return refusal
