"""Metadata of the Astronomy Shop and Train Ticket problems matches the applications."""

from __future__ import annotations

import re

import pytest

from srearena.conductor.oracles.base import Verdict
from srearena.conductor.problems.base import Problem
from srearena.conductor.problems.feature_flags import FeatureFlag
from srearena.conductor.problems.registry import ProblemRegistry

REGISTRY = ProblemRegistry()
FAMILIES = ("feature_flags", "shop_settings", "shop_stores", "messaging", "train_ticket")
PROBLEMS = [
    problem
    for problem in map(REGISTRY.get_problem, REGISTRY.get_problem_ids())
    if type(problem).__module__.rpartition(".")[2] in FAMILIES
]
FLAGS = [problem for problem in PROBLEMS if isinstance(problem, FeatureFlag)]


def by_id(problem: Problem) -> str:
    return problem.id


@pytest.mark.parametrize("problem", PROBLEMS, ids=by_id)
def test_texts_are_filled_in(problem: Problem) -> None:
    assert problem.explanation
    assert problem.remedy.startswith("kubectl") or "\nkubectl" in problem.remedy
    words = re.compile(r"\{(ns|service|flag|client|store|table|secret|variable|value|image)\}")
    assert not words.search(problem.explanation)
    assert not words.search(problem.remedy)


@pytest.mark.parametrize("problem", PROBLEMS, ids=by_id)
def test_who_suffers_is_part_of_the_application(problem: Problem) -> None:
    objects = {(manifest.kind, manifest.name) for manifest in problem.app.manifests}
    suffer = {target for _, target in problem.propagation}
    assert {(entity.kind, entity.name) for entity in suffer} <= objects


@pytest.mark.parametrize("problem", FLAGS, ids=by_id)
def test_a_flag_exists_and_is_off(problem: FeatureFlag) -> None:
    texts = [
        text
        for manifest in problem.app.manifests
        if (manifest.kind, manifest.name) == ("ConfigMap", "flagd-config")
        for text in manifest.obj["data"].values()
    ]
    found = re.search(rf"{problem.fault}\W[\s\S]*?defaultVariant\W+(\w+)", texts[0])
    assert found is not None and found[1] == "off"


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        (["ad"], True),
        (["flagd-config"], True),
        (["adFailure"], True),
        (["configmap/flagd-config", "deployment/ad"], True),
        (["ad", "flagd"], True),
        (["flagd"], False),
        (["cart"], False),
        (["flagd", "cart"], False),
        ([], False),
    ],
)
def test_a_flag_is_located_by_the_flag_or_the_program_that_obeys_it(answer: list[str], right: bool) -> None:
    oracle = REGISTRY.get_problem("astronomy_shop_ad_service_failure").oracle_for("localization")
    assert Verdict.from_answer(oracle.evaluate(answer)).passed is right
