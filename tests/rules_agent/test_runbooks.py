"""Runbooks on small systems: what is named, and which command repairs it."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from clients.rules import commands
from clients.rules.changes import suspicious_revision
from clients.rules.hypotheses import Hypothesis, Strength, conclude
from clients.rules.runbooks import examine, runbooks
from clients.rules.system import Obj, System
from clients.rules.topology import calls
from tests.rules_agent.systems import SPACE, alert, container, deployment, managed, service, system


def found(observed: System) -> list[Hypothesis]:
    return conclude(examine(observed), calls(observed))


def operations(command: str) -> list[Obj]:
    """The JSON patch of a kubectl command."""
    words = shlex.split(command)
    document: list[Obj] = json.loads(words[words.index("-p") + 1])
    return document


def test_a_healthy_system_gives_no_hypothesis() -> None:
    assert found(system(deployment("api"), service("api"), deployment("store"), service("store"))) == []


def test_a_wrong_selector_is_the_fault_of_the_service() -> None:
    wrong = service("api", selector={"app": "api", "track": "blue"})
    [one] = found(system(deployment("api"), wrong, alerts=(alert("ServiceEndpointDown", "api"),)))
    assert (one.culprit, one.strength) == (f"{SPACE}/Service/api", Strength.CONFIRMED)
    assert operations(one.repairs[0].command) == [{"op": "replace", "path": "/spec/selector", "value": {"app": "api"}}]


def test_a_wrong_port_counts_only_where_it_was_edited_or_fails() -> None:
    assert found(system(deployment("api"), service("api", target=9999))) == []
    entry = managed({"f:spec": {"f:ports": {"f:targetPort": {}}}})
    [one] = found(system(deployment("api"), service("api", target=9999, entries=(entry,))))
    assert operations(one.repairs[0].command)[0]["value"] == 8080


def test_a_policy_that_lets_everything_in_is_innocent_and_one_that_lets_nothing_in_is_not() -> None:
    def policy(**spec: Any) -> Obj:
        return {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {"name": "api", "namespace": SPACE},
            "spec": {"podSelector": {"matchLabels": {"app": "api"}}, "policyTypes": ["Ingress"], **spec},
        }

    assert found(system(deployment("api"), service("api"), policy(ingress=[{}]))) == []
    assert [one.culprit for one in found(system(deployment("api"), service("api"), policy()))] == [
        f"{SPACE}/NetworkPolicy/api"
    ]


def test_the_revision_that_broke_a_program_is_taken_back_and_what_came_later_stays() -> None:
    good = {"containers": [container()]}
    bad = container(image="registry/program:broken", env=[{"name": "BUILD_ID", "value": "7"}])
    api = deployment("api", ready=False, history=(good,), containers=[bad])
    [one] = found(system(api, service("api"), alerts=(alert("DeploymentNotReady", "api"),)))
    assert operations(one.repairs[0].command) == [
        {"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "registry/program:1.0"}
    ]
    [back] = operations(one.repairs[0].undo)
    assert back["value"]["spec"]["containers"] == [bad]


def test_a_change_long_before_the_trouble_is_not_blamed() -> None:
    good = {"containers": [container()]}
    api = deployment("api", history=(good,), containers=[container(command=["other"])])
    late = alert("HighRequestErrorRate", "api", at="2026-01-05T11:00:00Z")
    [one] = found(system(api, service("api"), alerts=(late,)))
    assert one.strength is Strength.SYMPTOM


def test_changes_after_the_first_observation_are_the_agents_own() -> None:
    broken = [container(image="registry/program:broken")]
    first = system(deployment("api", history=({"containers": [container()]},), containers=broken))
    repaired = deployment("api", history=({"containers": broken},), containers=[container()])
    second = system(repaired)
    second.first = first
    assert suspicious_revision(second, repaired) is None


def test_what_the_agent_itself_has_scaled_to_nothing_stays_so() -> None:
    assert [one.why for one in found(system(deployment("api", replicas=0)))] == ["it is scaled to nothing"]
    second = system(deployment("api", replicas=0))
    second.first = system(deployment("api"))
    assert found(second) == []


def test_a_patch_is_taken_back_by_its_undo() -> None:
    before = service("api")
    repair = commands.patch(before, [(("spec", "selector", "app"), "x"), (("spec", "sessionAffinity"), "None")])
    assert operations(repair.command) == [
        {"op": "replace", "path": "/spec/selector/app", "value": "x"},
        {"op": "add", "path": "/spec/sessionAffinity", "value": "None"},
    ]
    assert operations(repair.undo) == [
        {"op": "remove", "path": "/spec/sessionAffinity"},
        {"op": "replace", "path": "/spec/selector/app", "value": "api"},
    ]


@pytest.mark.parametrize("name", sorted(runbooks()))
def test_every_runbook_takes_an_empty_system(name: str) -> None:
    assert list(runbooks()[name](System(SPACE))) == []
