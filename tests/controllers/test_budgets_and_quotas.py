"""Disruption budgets and resource quotas: what they count, and what they say."""

from __future__ import annotations

from typing import Any

import pytest

from srearena.cluster.embedded.objects import Obj, condition, name_of
from tests.controllers.stage import Stage, template, workload

BUDGETS = "poddisruptionbudgets.policy"
QUOTAS = "resourcequotas"


def budget(stage: Stage, **spec: Any) -> None:
    body = {"selector": {"matchLabels": {"app": "web"}}, **spec}
    stage.create(BUDGETS, {"metadata": {"name": "guard"}, "spec": body})
    stage.advance(5)


def counts(stage: Stage) -> tuple[int, int, int, int]:
    """(current, desired, expected, allowed)"""
    status = stage.the(BUDGETS, "guard")["status"]
    return (
        status["currentHealthy"],
        status["desiredHealthy"],
        status["expectedPods"],
        status["disruptionsAllowed"],
    )


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"minAvailable": 3}, (4, 3, 4, 1)),
        ({"minAvailable": "50%"}, (4, 2, 4, 2)),
        ({"minAvailable": "51%"}, (4, 3, 4, 1)),
        ({"maxUnavailable": 1}, (4, 3, 4, 1)),
        ({"maxUnavailable": "30%"}, (4, 2, 4, 2)),
        ({"minAvailable": 4}, (4, 4, 4, 0)),
        ({"maxUnavailable": 10}, (4, 0, 4, 4)),
    ],
)
def test_budgets_add_up(stage: Stage, spec: Obj, expected: tuple[int, int, int, int]) -> None:
    stage.create("deployments.apps", workload(replicas=4))
    budget(stage, **spec)
    assert counts(stage) == expected
    found = condition(stage.the(BUDGETS, "guard"), "DisruptionAllowed") or {}
    enough = expected[3] > 0
    assert (found["status"], found["reason"]) == (
        ("True", "SufficientPods") if enough else ("False", "InsufficientPods")
    )


def test_unready_and_leaving_pods_are_not_healthy(stage: Stage) -> None:
    stage.create("deployments.apps", workload(replicas=4))
    budget(stage, maxUnavailable=2)
    assert counts(stage)[3] == 2
    stage.run(stage.pods()[0], ready=False)
    stage.advance(1)
    assert counts(stage) == (3, 2, 4, 1)


def test_a_granted_eviction_counts_until_the_pod_is_gone_or_two_minutes_pass(stage: Stage) -> None:
    stage.kubelets.stop_seconds = 30
    stage.create("deployments.apps", workload(replicas=4))
    budget(stage, maxUnavailable=2)
    evicted = {name_of(stage.pods()[0]): stage.world.clock.timestamp()}
    status = stage.the(BUDGETS, "guard")["status"]
    stage.client.set_status(BUDGETS, stage.the(BUDGETS, "guard"), {**status, "disruptedPods": evicted})
    stage.advance(1)
    assert counts(stage)[3] == 1
    stage.advance(121)
    assert counts(stage)[3] == 2
    assert "disruptedPods" not in stage.the(BUDGETS, "guard")["status"]


def test_a_budget_without_pods_says_so(stage: Stage) -> None:
    budget(stage, minAvailable=1)
    assert counts(stage) == (0, 1, 0, 0)
    assert ("Normal", "NoPods", "No matching pods found") in stage.events(BUDGETS, "guard")
    assert stage.sources("NoPods") == {"controllermanager"}


def test_a_share_of_pods_nobody_scales_cannot_be_computed(stage: Stage) -> None:
    stage.create("daemonsets.apps", workload("web"))
    budget(stage, maxUnavailable="50%")
    problem = "daemonsets.apps does not implement the scale subresource"
    assert stage.condition(BUDGETS, "guard", "DisruptionAllowed") == ("False", "SyncFailed", problem)
    text = f"Failed to calculate the number of expected pods: {problem}"
    assert ("Warning", "CalculateExpectedPodCountFailed", text) in stage.events(BUDGETS, "guard")


def test_bare_pods_are_pointed_out(stage: Stage) -> None:
    stage.create("pods", {"metadata": {"name": "bare", "labels": {"app": "web"}}, "spec": template()["spec"]})
    budget(stage, maxUnavailable=1)
    ((kind, reason, text), *_) = [event for event in stage.events(BUDGETS, "guard") if event[1] != "NoPods"]
    assert (kind, reason) == ("Warning", "UnmanagedPods")
    assert (
        "(selector: &LabelSelector{MatchLabels:map[string]string{app: web,},"
        "MatchExpressions:[]LabelSelectorRequirement{},})"
    ) in text
    assert counts(stage)[3] == 0


# Quotas


def quota(stage: Stage, hard: dict[str, str], **spec: Any) -> None:
    stage.create(QUOTAS, {"metadata": {"name": "limit"}, "spec": {"hard": hard, **spec}})
    stage.advance(2)


def used(stage: Stage) -> dict[str, str]:
    found: dict[str, str] = stage.the(QUOTAS, "limit")["status"]["used"]
    return found


def test_a_quota_counts_what_is_there_and_what_comes_and_goes(stage: Stage) -> None:
    resources = {"requests": {"cpu": "250m", "memory": "64Mi"}, "limits": {"cpu": "500m", "memory": "128Mi"}}
    body = template(labels={"app": "web"}, resources=resources)
    stage.create("deployments.apps", workload(replicas=2, template=body))
    stage.advance(5)
    quota(
        stage,
        {
            "pods": "10",
            "requests.cpu": "2",
            "limits.memory": "1Gi",
            "count/deployments.apps": "5",
            "configmaps": "10",
        },
    )
    assert used(stage) == {
        "pods": "2",
        "requests.cpu": "500m",
        "limits.memory": "256Mi",
        "count/deployments.apps": "1",
        "configmaps": "1",
    }
    assert stage.the(QUOTAS, "limit")["status"]["hard"]["pods"] == "10"
    stage.change("deployments.apps", "web", spec__replicas=4)
    stage.advance(5)
    assert (used(stage)["pods"], used(stage)["requests.cpu"]) == ("4", "1")
    stage.delete("deployments.apps", "web")
    stage.advance(10)
    assert (used(stage)["pods"], used(stage)["requests.cpu"]) == ("0", "0")


def test_pods_that_ended_free_their_share(stage: Stage) -> None:
    quota(stage, {"pods": "1"})
    stage.create("pods", {"metadata": {"name": "one"}, "spec": template()["spec"]})
    stage.advance(3)
    assert used(stage) == {"pods": "1"}
    stage.finish(stage.the("pods", "one"), "Succeeded")
    stage.advance(3)
    assert used(stage) == {"pods": "0"}


def test_scopes_choose_what_counts(stage: Stage) -> None:
    quota(stage, {"pods": "10"}, scopes=["BestEffort"])
    stage.create("pods", {"metadata": {"name": "free"}, "spec": template()["spec"]})
    bound = template(resources={"requests": {"cpu": "100m"}})["spec"]
    stage.create("pods", {"metadata": {"name": "bound"}, "spec": bound})
    stage.advance(3)
    assert used(stage) == {"pods": "1"}
