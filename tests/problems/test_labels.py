"""Labels of the analysis stage: the question defines them, and no key contradicts its problem's level."""

from __future__ import annotations

from typing import get_args

import pytest

from srearena.conductor.errors import ProblemError
from srearena.conductor.problems.metadata import (
    FAULT_TYPE_MEANINGS,
    SYSTEM_LEVEL_MEANINGS,
    FaultType,
    Level,
    SystemLevel,
    contradiction,
    usual_system_level,
)
from srearena.conductor.problems.noop import Noop
from srearena.conductor.problems.registry import ProblemRegistry, problem
from srearena.conductor.problems.scheduling import ScalePodZero
from srearena.conductor.stages import STAGES
from tests.arena.episodes import SHOP


def test_the_question_defines_every_label() -> None:
    assert set(SYSTEM_LEVEL_MEANINGS) == set(get_args(SystemLevel))
    assert set(FAULT_TYPE_MEANINGS) == set(get_args(FaultType))
    question = STAGES["analysis"].question
    for label, meaning in [*SYSTEM_LEVEL_MEANINGS.items(), *FAULT_TYPE_MEANINGS.items()]:
        assert f"{label}: {meaning}" in question


def test_no_key_contradicts_its_level() -> None:
    registry = ProblemRegistry()
    for name in registry.get_problem_ids():
        one = registry.get_problem(name)  # raises where the labels contradict the level
        assert one.ground_truth.system_level == one.analysis_level


@pytest.mark.parametrize("level", get_args(Level))
def test_a_level_agrees_with_its_default(level: Level) -> None:
    fault_type: FaultType = "None" if level == "none" else "Misconfiguration"
    assert not contradiction(level, usual_system_level(level), fault_type)


def test_a_contradicting_label_is_an_error() -> None:
    @problem("corner_shop_mislabelled", app=SHOP, service="api")
    class Mislabelled(ScalePodZero):
        system_level = "Application"

    @problem("corner_shop_unlabelled", app=SHOP)
    class Unlabelled(Noop):
        fault_type = "Misconfiguration"

    try:
        for name in ("corner_shop_mislabelled", "corner_shop_unlabelled"):
            with pytest.raises(ProblemError, match="cannot have the"):
                ProblemRegistry().get_problem(name)
    finally:
        from srearena.conductor.problems import registry

        for name in ("corner_shop_mislabelled", "corner_shop_unlabelled"):
            del registry._entries[name]


def test_a_missing_certificate_in_a_program_is_of_the_application() -> None:
    truth = ProblemRegistry().get_problem("auth_miss_mongodb").ground_truth
    assert (truth.system_level, truth.fault_type) == ("Application", "Authentication Issue")
