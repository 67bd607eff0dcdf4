"""Validating admission policies and match conditions: rules in CEL that refuse writes."""

from __future__ import annotations

from typing import Any

import pytest

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.errors import ApiError

from .door import Door, container, pod

POLICIES = "validatingadmissionpolicies.admissionregistration.k8s.io"
BINDINGS = "validatingadmissionpolicybindings.admissionregistration.k8s.io"
WEBHOOKS = "validatingwebhookconfigurations.admissionregistration.k8s.io"
PODS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["pods"]}


def policy(*validations: Obj, **spec: Any) -> Obj:
    spec = {"matchConstraints": {"resourceRules": [PODS]}, "validations": list(validations), **spec}
    return {"metadata": {"name": "rules.example.com"}, "spec": spec}


def binding(*actions: str, **spec: Any) -> Obj:
    spec = {"policyName": "rules.example.com", "validationActions": list(actions or ("Deny",)), **spec}
    return {"metadata": {"name": "everywhere"}, "spec": spec}


def in_force(door: Door, *validations: Obj, bound: Obj | None = None, **spec: Any) -> None:
    door.let_in(POLICIES, policy(*validations, **spec))
    door.let_in(BINDINGS, bound or binding())


def test_a_policy_refuses_what_its_expression_does_not_hold_for(door: Door) -> None:
    in_force(door, {"expression": "object.spec.containers.all(c, c.image.startsWith('registry.example/'))"})
    with pytest.raises(ApiError) as raised:
        door.let_in("pods", pod())
    message = (
        "ValidatingAdmissionPolicy 'rules.example.com' with binding 'everywhere' denied request: "
        "failed expression: object.spec.containers.all(c, c.image.startsWith('registry.example/'))"
    )
    assert raised.value.status() | {"metadata": {}} == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f'pods "p" is forbidden: {message}',
        "reason": "Invalid",
        "details": {"name": "p", "kind": "pods", "causes": [{"message": message}]},
        "code": 422,
    }
    door.let_in("pods", pod("q", {**container("c"), "image": "registry.example/web"}))


def test_without_a_binding_nothing_is_refused(door: Door) -> None:
    door.let_in(POLICIES, policy({"expression": "false"}))
    door.let_in("pods", pod())


def test_messages_and_reasons(door: Door) -> None:
    in_force(
        door,
        {
            "expression": "object.spec.containers.size() > 1",
            "messageExpression": "'only ' + string(object.spec.containers.size()) + ' container'",
            "message": "too few",
            "reason": "Forbidden",
        },
    )
    with pytest.raises(ApiError) as raised:
        door.let_in("pods", pod())
    assert raised.value.message.endswith("denied request: only 1 container")
    assert (raised.value.code, raised.value.reason) == (403, "Forbidden")


def test_warnings_let_the_write_pass(door: Door) -> None:
    in_force(door, {"expression": "false", "message": "not like this"}, bound=binding("Warn", "Audit"))
    door.let_in("pods", pod())
    assert door.warnings == [
        "Validation failed for ValidatingAdmissionPolicy 'rules.example.com' with binding 'everywhere': not like this"
    ]


@pytest.mark.parametrize(("failure_policy", "refused"), [("Fail", True), ("Ignore", False)])
def test_errors_follow_the_failure_policy(door: Door, failure_policy: str, refused: bool) -> None:
    in_force(door, {"expression": "object.spec.nothing == 1"}, failurePolicy=failure_policy)
    if not refused:
        door.let_in("pods", pod())
        return
    assert door.refuse("pods", pod()).endswith(
        "denied request: expression 'object.spec.nothing == 1' resulted in error: no such key: nothing"
    )


def test_variables_build_on_each_other(door: Door) -> None:
    in_force(
        door,
        {"expression": "variables.few", "messageExpression": "'got ' + string(variables.count)"},
        variables=[
            {"name": "count", "expression": "object.spec.containers.size()"},
            {"name": "few", "expression": "variables.count < 2"},
        ],
    )
    door.let_in("pods", pod("one"))
    assert door.refuse("pods", pod("two", container("a"), container("b"))).endswith("denied request: got 2")


def test_match_conditions_narrow_a_policy(door: Door) -> None:
    named = {"name": "only-web", "expression": "object.metadata.name.startsWith('web')"}
    in_force(door, {"expression": "false"}, matchConditions=[named])
    door.let_in("pods", pod("db"))
    assert "denied request" in door.refuse("pods", pod("web"))


def test_parameters_come_from_objects(door: Door) -> None:
    in_force(
        door,
        {"expression": "object.spec.containers.size() <= int(params.data.most)"},
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
        bound=binding(paramRef={"name": "limits", "parameterNotFoundAction": "Deny"}),
    )
    assert door.refuse("pods", pod()).endswith(
        "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
    )
    door.let_in("configmaps", {"metadata": {"name": "limits"}, "data": {"most": "1"}})
    door.let_in("pods", pod())
    assert "failed expression" in door.refuse("pods", pod("q", container("a"), container("b")))


def test_selectors_and_names_narrow_a_binding(door: Door) -> None:
    chosen = {"objectSelector": {"matchLabels": {"tier": "front"}}}
    in_force(door, {"expression": "false"}, bound=binding(matchResources=chosen))
    door.let_in("pods", pod("back"))
    front = pod("front")
    front["metadata"]["labels"] = {"tier": "front"}
    assert "denied request" in door.refuse("pods", front)


def test_the_authorizer_can_be_asked(door: Door) -> None:
    checks: list[tuple[str, str, str, str]] = []

    def authorize(user: Any, check: Any) -> tuple[bool, str]:
        checks.append((user.name, check.verb, check.resource, check.namespace))
        return False, "no"

    door.webhooks.conditions.authorize = authorize
    in_force(door, {"expression": "authorizer.group('').resource('nodes').check('drain').allowed()"})
    assert "failed expression" in door.refuse("pods", pod())
    assert checks == [("admin", "drain", "nodes", "")]


def test_the_namespace_and_the_request_are_known(door: Door) -> None:
    in_force(
        door,
        {"expression": "!format.named('dns1123Label').value().validate(object.metadata.name).hasValue()"},
        {"expression": "format.dns1123Label().validate('A_b').hasValue() && format.uuid().validate('x').hasValue()"},
        {"expression": "namespaceObject.metadata.name == 'default' && request.operation == 'CREATE'"},
        {"expression": "request.userInfo.username == 'admin' && oldObject == null && request.kind.kind == 'Pod'"},
    )
    door.let_in("pods", pod())


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            {"validations": [{"expression": "object.spec.replicas"}]},
            'spec.validations[0].expression: Invalid value: "object.spec.replicas": must evaluate to bool but got dyn',
        ),
        (
            {"validations": [{"expression": "1 > 'a'"}]},
            "spec.validations[0].expression: Invalid value: \"1 > 'a'\": compilation failed: ERROR: <input>:1:3: "
            "found no matching overload for '_>_' applied to '(int, string)'",
        ),
        (
            {"validations": [{"expression": "true", "messageExpression": "1"}]},
            'spec.validations[0].messageExpression: Invalid value: "1": must evaluate to string but got int',
        ),
        (
            {"validations": [{"expression": "params.x == 1"}]},
            "undeclared reference to 'params' (in container '')",
        ),
        (
            {"variables": [{"name": "a b", "expression": "1"}]},
            'spec.variables[0].name: Invalid value: "a b": must be a valid CEL identifier',
        ),
        ({"validations": []}, "spec.validations: Required value: validations or auditAnnotations must contain"),
        ({"matchConstraints": {}}, "spec.matchConstraints.resourceRules: Required value"),
        (
            {"auditAnnotations": [{"key": "k", "valueExpression": "1"}]},
            'spec.auditAnnotations[0].valueExpression: Invalid value: "1": '
            "must evaluate to one of [string null_type] but got int",
        ),
        (
            {"matchConditions": [{"name": "n", "expression": "request.nothing"}]},
            "undefined field 'nothing'",
        ),
    ],
)
def test_a_policy_that_cannot_work_is_refused(door: Door, change: Obj, problem: str) -> None:
    assert problem in door.refuse(POLICIES, policy({"expression": "true"}, **change))


def webhook(condition: str, **more: Any) -> Obj:
    return {
        "metadata": {"name": "checks"},
        "webhooks": [
            {
                "name": "pods.example.com",
                "rules": [PODS],
                "clientConfig": {"url": "https://checks.example.com"},
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "matchConditions": [{"name": "condition", "expression": condition}],
                **more,
            }
        ],
    }


def test_a_webhook_is_called_for_what_meets_its_conditions(door: Door) -> None:
    door.let_in(WEBHOOKS, webhook("object.metadata.name == 'watched'"))
    door.let_in("pods", pod("other"))
    assert "failed calling webhook" in door.refuse("pods", pod("watched"))


def test_a_condition_without_a_value_follows_the_failure_policy(door: Door) -> None:
    door.let_in(WEBHOOKS, webhook("object.spec.nothing == 1"))
    assert door.refuse("pods", pod()) == (
        "pods \"p\" is forbidden: expression 'object.spec.nothing == 1' resulted in error: no such key: nothing"
    )


def test_conditions_of_webhooks_are_compiled(door: Door) -> None:
    assert (
        'webhooks[0].matchConditions[0].expression: Invalid value: "object.metadata": must evaluate to bool but got dyn'
        in door.refuse(WEBHOOKS, webhook("object.metadata"))
    )
