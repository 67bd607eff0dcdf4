"""Disruption budgets and resource quotas: what they count, and what they say."""

from __future__ import annotations

from typing import Any

import pytest

from srearena.cluster.embedded.objects import Obj, condition, name_of
from tests.controllers.bench import Bench, template, workload

BUDGETS = "poddisruptionbudgets.policy"
QUOTAS = "resourcequotas"


def budget(bench: Bench, **spec: Any) -> None:
    body = {"selector": {"matchLabels": {"app": "web"}}, **spec}
    bench.create(BUDGETS, {"metadata": {"name": "guard"}, "spec": body})
    bench.advance(5)


def counts(bench: Bench) -> tuple[int, int, int, int]:
    """(current, desired, expected, allowed)"""
    status = bench.the(BUDGETS, "guard")["status"]
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
def test_budgets_add_up(bench: Bench, spec: Obj, expected: tuple[int, int, int, int]) -> None:
    bench.create("deployments.apps", workload(replicas=4))
    budget(bench, **spec)
    assert counts(bench) == expected
    found = condition(bench.the(BUDGETS, "guard"), "DisruptionAllowed") or {}
    enough = expected[3] > 0
    assert (found["status"], found["reason"]) == (
        ("True", "SufficientPods") if enough else ("False", "InsufficientPods")
    )


def test_unready_and_leaving_pods_are_not_healthy(bench: Bench) -> None:
    bench.create("deployments.apps", workload(replicas=4))
    budget(bench, maxUnavailable=2)
    assert counts(bench)[3] == 2
    bench.run(bench.pods()[0], ready=False)
    bench.advance(1)
    assert counts(bench) == (3, 2, 4, 1)


def test_a_granted_eviction_counts_until_the_pod_is_gone_or_two_minutes_pass(bench: Bench) -> None:
    bench.kubelets.stop_seconds = 30
    bench.create("deployments.apps", workload(replicas=4))
    budget(bench, maxUnavailable=2)
    evicted = {name_of(bench.pods()[0]): bench.world.clock.timestamp()}
    status = bench.the(BUDGETS, "guard")["status"]
    bench.client.set_status(BUDGETS, bench.the(BUDGETS, "guard"), {**status, "disruptedPods": evicted})
    bench.advance(1)
    assert counts(bench)[3] == 1
    bench.advance(121)
    assert counts(bench)[3] == 2
    assert "disruptedPods" not in bench.the(BUDGETS, "guard")["status"]


def test_a_budget_without_pods_says_so(bench: Bench) -> None:
    budget(bench, minAvailable=1)
    assert counts(bench) == (0, 1, 0, 0)
    assert ("Normal", "NoPods", "No matching pods found") in bench.events(BUDGETS, "guard")
    assert bench.sources("NoPods") == {"controllermanager"}


def test_a_share_of_pods_nobody_scales_cannot_be_computed(bench: Bench) -> None:
    bench.create("daemonsets.apps", workload("web"))
    budget(bench, maxUnavailable="50%")
    problem = "daemonsets.apps does not implement the scale subresource"
    assert bench.condition(BUDGETS, "guard", "DisruptionAllowed") == ("False", "SyncFailed", problem)
    text = f"Failed to calculate the number of expected pods: {problem}"
    assert ("Warning", "CalculateExpectedPodCountFailed", text) in bench.events(BUDGETS, "guard")


def test_bare_pods_are_pointed_out(bench: Bench) -> None:
    bench.create("pods", {"metadata": {"name": "bare", "labels": {"app": "web"}}, "spec": template()["spec"]})
    budget(bench, maxUnavailable=1)
    ((kind, reason, text), *_) = [event for event in bench.events(BUDGETS, "guard") if event[1] != "NoPods"]
    assert (kind, reason) == ("Warning", "UnmanagedPods")
    assert (
        "(selector: &LabelSelector{MatchLabels:map[string]string{app: web,},"
        "MatchExpressions:[]LabelSelectorRequirement{},})"
    ) in text
    assert counts(bench)[3] == 0


# Quotas


def quota(bench: Bench, hard: dict[str, str], **spec: Any) -> None:
    bench.create(QUOTAS, {"metadata": {"name": "limit"}, "spec": {"hard": hard, **spec}})
    bench.advance(2)


def used(bench: Bench) -> dict[str, str]:
    found: dict[str, str] = bench.the(QUOTAS, "limit")["status"]["used"]
    return found


def test_a_quota_counts_what_is_there_and_what_comes_and_goes(bench: Bench) -> None:
    resources = {"requests": {"cpu": "250m", "memory": "64Mi"}, "limits": {"cpu": "500m", "memory": "128Mi"}}
    body = template(labels={"app": "web"}, resources=resources)
    bench.create("deployments.apps", workload(replicas=2, template=body))
    bench.advance(5)
    quota(
        bench,
        {
            "pods": "10",
            "requests.cpu": "2",
            "limits.memory": "1Gi",
            "count/deployments.apps": "5",
            "configmaps": "10",
        },
    )
    assert used(bench) == {
        "pods": "2",
        "requests.cpu": "500m",
        "limits.memory": "256Mi",
        "count/deployments.apps": "1",
        "configmaps": "1",
    }
    assert bench.the(QUOTAS, "limit")["status"]["hard"]["pods"] == "10"
    bench.change("deployments.apps", "web", spec__replicas=4)
    bench.advance(5)
    assert (used(bench)["pods"], used(bench)["requests.cpu"]) == ("4", "1")
    bench.delete("deployments.apps", "web")
    bench.advance(10)
    assert (used(bench)["pods"], used(bench)["requests.cpu"]) == ("0", "0")


def test_pods_that_ended_free_their_share(bench: Bench) -> None:
    quota(bench, {"pods": "1"})
    bench.create("pods", {"metadata": {"name": "one"}, "spec": template()["spec"]})
    bench.advance(3)
    assert used(bench) == {"pods": "1"}
    bench.finish(bench.the("pods", "one"), "Succeeded")
    bench.advance(3)
    assert used(bench) == {"pods": "0"}


def test_scopes_choose_what_counts(bench: Bench) -> None:
    quota(bench, {"pods": "10"}, scopes=["BestEffort"])
    bench.create("pods", {"metadata": {"name": "free"}, "spec": template()["spec"]})
    bound = template(resources={"requests": {"cpu": "100m"}})["spec"]
    bench.create("pods", {"metadata": {"name": "bound"}, "spec": bound})
    bench.advance(3)
    assert used(bench) == {"pods": "1"}
