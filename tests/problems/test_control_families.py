"""Families around workloads on a small application: healthy passes, the fault fails, the remedy repairs."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from srearena.conductor.problems import admission, chaos, network, rollouts
from srearena.conductor.problems.injected import InjectedProblem
from tests.arena.episodes import prepared_episode, shop_problem
from tests.arena.test_families import as_operator

FAMILIES: list[tuple[type[InjectedProblem], str, dict[str, Any]]] = [
    (network.NetworkPolicyBlock, "api", {}),
    (network.ServiceDnsResolutionFailure, "api", {"victims": ("api", "web")}),
    (network.StaleCoreDnsConfig, "api", {"victims": ("web",)}),
    (admission.AdmissionWebhookOutage, "api", {"victims": ("api", "web")}),
    (chaos.PodKill, "api", {"victims": ("api", "web")}),
    (chaos.PodFailure, "api", {"victims": ("web",)}),
    (rollouts.LivenessProbeTooAggressive, "aux-service", {}),
    (rollouts.RollingUpdateMisconfigured, "custom-service", {}),
]


@pytest.mark.kubectl
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
@pytest.mark.parametrize(("kind", "service", "options"), FAMILIES, ids=lambda value: getattr(value, "__name__", ""))
@pytest.mark.daily_cases(3)
def test_a_family_breaks_and_its_remedy_heals(
    kind: type[InjectedProblem], service: str, options: dict[str, Any]
) -> None:
    problem = shop_problem(kind, service, **options)
    with prepared_episode(problem, stages=("noop", "detection", "localization", "mitigation")) as episode:
        oracle = problem.oracle_for("mitigation")
        healthy = oracle.evaluate(None)
        assert healthy.passed, healthy.reasons
        episode.submit("No")  # the fault comes after the no-op stage
        broken = oracle.evaluate(None)
        assert not broken.passed
        as_operator(episode, problem.remedy)
        healed = oracle.evaluate(None)
        assert healed.passed, healed.reasons


@pytest.mark.kubectl
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_undoing_the_template_alone_leaves_a_strategy_that_takes_everybody_away() -> None:
    problem = shop_problem(rollouts.RollingUpdateMisconfigured, "custom-service")
    with prepared_episode(problem) as episode:
        as_operator(episode, f"kubectl -n {problem.namespace} rollout undo deployment/custom-service")
        verdict = problem.oracle_for("mitigation").evaluate(None)
        assert not verdict.passed
        assert "during a rollout" in verdict.reasons[0]


def test_what_was_done_can_be_undone() -> None:
    for kind in (network.NetworkPolicyBlock, network.StaleCoreDnsConfig, chaos.PodFailure):
        problem = shop_problem(kind, "api")
        with prepared_episode(problem):
            problem.recover_fault()
            problem.cluster.wait(60)  # what runs another image again starts anew
            verdict = problem.oracle_for("mitigation").evaluate(None)
            assert verdict.passed, (kind, verdict.reasons)


def test_a_fault_whose_object_a_remedy_has_deleted_is_undone() -> None:
    problem = shop_problem(admission.AdmissionWebhookTlsMismatch, "api")
    with prepared_episode(problem):
        problem.kubernetes.delete("validatingwebhookconfigurations", admission.POLICY)
        problem.recover_fault()
        assert problem.kubernetes.find("validatingwebhookconfigurations", admission.POLICY) is None
