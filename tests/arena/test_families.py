"""Every family on a small application: healthy passes, the fault fails, the remedy and recovery repair it."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Any

import pytest

from srearena.conductor.episode.episode import Episode
from srearena.conductor.oracles.mitigation import MitigationOracle
from srearena.conductor.problems import (
    configuration,
    containers,
    names,
    probes,
    resources,
    scheduling,
    services,
    target_port,
)
from srearena.conductor.problems.injected import InjectedProblem
from tests.arena.episodes import prepared_episode, shop_problem

FAMILIES: list[tuple[type[InjectedProblem], str, dict[str, Any]]] = [
    (target_port.TargetPort, "api", {}),
    (services.MissingService, "api", {"client": "web"}),
    (services.WrongServiceSelector, "api", {}),
    (services.ServiceWrongPodSelection, "api", {"other": "store"}),
    (scheduling.AssignToNonExistentNode, "api", {}),
    (scheduling.ScalePodZero, "api", {}),
    (scheduling.PodAntiAffinityDeadlock, "api", {}),
    (scheduling.TaintNoToleration, "api", {}),
    (scheduling.PersistentVolumeAffinityViolation, "api", {}),
    (containers.WrongBinUsage, "api", {}),
    (containers.SidecarPortConflict, "api", {}),
    (containers.ServicePortConflict, "api", {}),
    (containers.InitContainerDependencyHang, "api", {}),
    (probes.LivenessProbeMisconfiguration, "store", {}),
    (probes.ReadinessProbeMisconfiguration, "store", {}),
    (resources.ResourceRequestTooLarge, "store", {"memory_request": "1000Gi"}),
    (resources.ResourceRequestTooSmall, "store", {"memory_limit": "1Mi"}),
    (resources.NamespaceMemoryLimit, "api", {}),
    (resources.PodSecurityRestricted, "api", {}),
    (configuration.MissingConfigMap, "api", {"config_map": "api-site"}),
    (configuration.PvcClaimMismatch, "store", {}),
    (configuration.DuplicatePvcMounts, "api", {}),
    (names.WrongDnsPolicy, "web", {}),
]


def as_operator(episode: Episode, script: str) -> str:
    """Run a script with the agent's identity."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        env={"KUBECONFIG": str(episode.kubeconfig), "PATH": os.environ["PATH"], "HOME": os.environ["HOME"]},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.kubectl
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
@pytest.mark.parametrize(("kind", "service", "options"), FAMILIES, ids=lambda value: getattr(value, "__name__", ""))
@pytest.mark.daily_cases(8)
def test_a_family_breaks_and_its_remedy_heals(
    kind: type[InjectedProblem], service: str, options: dict[str, Any]
) -> None:
    problem = shop_problem(kind, service, **options)
    with prepared_episode(problem, stages=("noop", "detection", "localization", "mitigation")) as episode:
        oracle = problem.oracle_for("mitigation")
        assert isinstance(oracle, MitigationOracle)
        healthy = oracle.evaluate(None)
        assert healthy.passed, healthy.reasons
        episode.submit("No")  # the fault comes after the no-op stage
        broken = oracle.evaluate(None)
        assert not broken.passed
        as_operator(episode, problem.remedy)
        healed = oracle.evaluate(None)
        assert healed.passed, healed.reasons


@pytest.mark.parametrize(("kind", "service", "options"), FAMILIES[:5], ids=lambda value: getattr(value, "__name__", ""))
@pytest.mark.daily_cases(2)
def test_a_fault_can_be_undone(kind: type[InjectedProblem], service: str, options: dict[str, Any]) -> None:
    problem = shop_problem(kind, service, **options)
    with prepared_episode(problem):
        assert problem.fault_injected
        problem.recover_fault()
        assert not problem.fault_injected
        verdict = problem.oracle_for("mitigation").evaluate(None)
        assert verdict.passed, verdict.reasons
