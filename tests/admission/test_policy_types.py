"""Type checks of validating admission policies, as their status shows them."""

from __future__ import annotations

from typing import Any

import pytest

from srearena.cluster.embedded.controllers.policy_status import POLICIES, PolicyStatusController
from srearena.cluster.embedded.registry.identity import SUPERUSERS, User
from tests.clusters import bare_world

DEPLOYMENTS = ("apps", "v1", "deployments")


def checked(*validations: dict[str, str], about: tuple[str, str, str] = DEPLOYMENTS, **spec: Any) -> dict[str, Any]:
    """The status of a policy with these validations."""
    world = bare_world()
    PolicyStatusController(world).start()
    client = world.client(User("admin", (SUPERUSERS,)), "kubectl")
    group, version, resource = about
    rule = {"apiGroups": [group], "apiVersions": [version], "operations": ["CREATE"], "resources": [resource]}
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": list(validations), **spec}
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy"}
    client.create(POLICIES, {**kind, "metadata": {"name": "checked"}, "spec": spec})
    world.clock.advance(1)
    found = client.get(POLICIES, "", "checked")
    assert found is not None
    status: dict[str, Any] = found["status"]
    return status


@pytest.mark.parametrize(
    ("expression", "about"),
    [
        ("object.spec.replicas > 1", DEPLOYMENTS),
        ("object.metadata.creationTimestamp < timestamp('2030-01-01T00:00:00Z')", DEPLOYMENTS),
        (
            "object.spec.template.spec.containers.all(c, has(c.resources.limits) && 'cpu' in c.resources.limits)",
            DEPLOYMENTS,
        ),
        ("object.spec.containers.exists(c, c.image.startsWith('nginx'))", ("", "v1", "pods")),
        ("has(object.spec.versions)", ("apiextensions.k8s.io", "v1", "customresourcedefinitions")),
    ],
)
def test_a_sound_policy_has_no_warnings(expression: str, about: tuple[str, str, str]) -> None:
    assert checked({"expression": expression}, about=about) == {"observedGeneration": 1, "typeChecking": {}}


def test_warnings_name_the_expression_and_the_kind() -> None:
    status = checked(
        {"expression": "object.spec.replicas > '1'"},
        {"expression": "object.spec.replicas >= 1", "messageExpression": "'wants ' + object.spec.maxReplicas"},
        {"expression": "variables.wrong == 1"},
        variables=[{"name": "wrong", "expression": "object.spec.paused"}],
    )
    first, second, third = status["typeChecking"]["expressionWarnings"]
    assert first["fieldRef"] == "spec.validations[0].expression"
    assert first["warning"].startswith("apps/v1, Kind=Deployment: ")
    assert "found no matching overload for '_>_' applied to '(int, string)'" in first["warning"]
    assert second["fieldRef"] == "spec.validations[1].messageExpression"
    assert "undefined field 'maxReplicas'" in second["warning"]
    assert third["fieldRef"] == "spec.validations[2].expression"


def test_kinds_behind_wildcards_are_not_checked() -> None:
    status = checked({"expression": "object.spec.nothing == 1"}, about=("apps", "*", "*"))
    assert status == {"observedGeneration": 1, "typeChecking": {}}
