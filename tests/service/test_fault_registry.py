"""Faults are found by name, whichever module of the package they are in."""

from __future__ import annotations

import pytest

from srearena.conductor.problems.registry import ProblemRegistry
from srearena.generators.fault.errors import FaultError
from srearena.generators.fault.inject_virtual import target_port
from srearena.generators.fault.registry import fault, fault_names, find_fault


def test_a_fault_may_have_several_names() -> None:
    assert find_fault("misconfig") is find_fault("misconfig_k8s") is find_fault("target_port") is target_port


def test_every_problem_names_a_registered_fault() -> None:
    registry = ProblemRegistry()
    problems = [registry.get_problem(name) for name in registry.get_problem_ids()]
    used = {problem.fault for problem in problems if getattr(problem, "fault", "")}
    assert used and used <= set(fault_names())


def test_an_unknown_name_is_refused_with_the_nearest_ones() -> None:
    with pytest.raises(FaultError, match=r"there is no fault 'missing_servic': did you mean missing_service"):
        find_fault("missing_servic")


def test_two_faults_cannot_have_one_name() -> None:
    with pytest.raises(FaultError, match="two faults are called 'misconfig'"):
        fault("misconfig")(target_port)
