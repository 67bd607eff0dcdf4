"""Problem ids: old ids work, unknown ids get suggestions, and problems can be combined."""

from __future__ import annotations

import pytest

from srearena.conductor.errors import ProblemError, UnknownProblem
from srearena.conductor.problems.registry import ProblemRegistry, Selection
from srearena.conductor.stages import STAGES, select_stages


@pytest.fixture(scope="module")
def registry() -> ProblemRegistry:
    return ProblemRegistry()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("k8s_target_port-misconfig", Selection(("k8s_target_port-misconfig",))),
        ("k8s_target_port-misconfig-detection-1", Selection(("k8s_target_port-misconfig",), ("detection",))),
        ("k8s_target_port-misconfig-1", Selection(("k8s_target_port-misconfig",))),
        ("noop_detection_social_network-1", Selection(("noop_social_network",))),
        (
            "astronomy_shop_kafka_queue_problems-localization-1",
            Selection(("kafka_queue_problems",), ("localization",)),
        ),
        ("k8s_target_port-misconfig-mitigation-2", Selection(("k8s_target_port-misconfig-2",), ("mitigation",))),
        (
            "assign_to_non_existent_node_social_net-analysis-1",
            Selection(("assign_to_non_existent_node",), ("analysis",)),
        ),
        (
            "scale_pod_zero_social_net+wrong_dns_policy_social_network",
            Selection(("scale_pod_zero_social_net", "wrong_dns_policy_social_network")),
        ),
    ],
)
def test_ids_people_know_are_understood(registry: ProblemRegistry, text: str, expected: Selection) -> None:
    assert registry.resolve(text) == expected


def test_a_wrong_id_is_answered_with_the_nearest(registry: ProblemRegistry) -> None:
    with pytest.raises(UnknownProblem, match="did you mean k8s_target_port-misconfig"):
        registry.resolve("k8s_targt_port-misconfig")


def test_globs_name_several_and_none_is_an_error(registry: ProblemRegistry) -> None:
    assert "missing_service_social_network" in registry.match(["missing_service_*"])
    with pytest.raises(UnknownProblem):
        registry.match(["no_such_*"])


def test_every_problem_can_be_made_and_says_what_it_is(registry: ProblemRegistry) -> None:
    for name in registry.get_problem_ids():
        problem = registry.get_problem(name)
        assert problem.id == name
        summary = problem.summary()
        assert "ground_truth" not in summary.as_document()
        assert "ground_truth" in summary.as_document(spoilers=True)
        for stage in STAGES:
            problem.oracle_for(stage)
        assert bool(problem.remedy) == problem.repairable
        if problem.level != "none":
            assert problem.explanation and "{" not in problem.explanation
            assert problem.ground_truth.roots or problem.level in (
                "node",
                "hardware",
            )  # the nodes are chosen at run time


def test_every_problem_asks_the_same_stages_by_default_and_any_on_request() -> None:
    assert select_stages(None) == ("detection", "localization", "mitigation")
    assert select_stages(["mitigation", "analysis"]) == ("analysis", "mitigation")
    with pytest.raises(ProblemError, match="no stage is called"):
        select_stages(["victory"])


def test_two_problems_are_one_with_both_answers(registry: ProblemRegistry) -> None:
    both = registry.get_problem("scale_pod_zero_social_net+wrong_service_selector_social_network")
    assert both.faulty_services == ("user-service", "user-service")
    assert "scale" in both.remedy and "patch" in both.remedy


def test_problems_of_different_applications_do_not_go_together(registry: ProblemRegistry) -> None:
    with pytest.raises(ProblemError, match="different applications"):
        registry.get_problem("scale_pod_zero_social_net+wrong_bin_usage")
