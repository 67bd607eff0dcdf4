"""Recorded incidents and live problems have families, difficulties and applications of the same names."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from itbench_leaderboard.incidents import Incident
from itbench_leaderboard.taxonomy import classification
from srearena.conductor.problems.metadata import Difficulty, Level
from srearena.ground_truth.model import Fault, GroundTruth, Group
from srearena.service.apps import all_applications
from srearena.snapshots.examples import unpack


def truth(kind: str, category: str, name: str = "cart", namespace: str = "otel-demo") -> GroundTruth:
    group = Group("root", kind, namespace, name, (), True)
    return GroundTruth("1", "v2", (group,), faults=(Fault("root", kind, name, "", "", category, ""),))


def test_our_recordings_are_classified_as_the_problems_they_are_of(tmp_path: Path) -> None:
    applications = {app.name for app in all_applications()}
    found = [classification(Incident(path.name, "snapshot", str(path)).truth()) for path in unpack(tmp_path)]
    assert [one["family"] for one in found] == [
        "application",
        "application",
        "application",
        "virtualization",
        "network",
        "virtualization",
    ]
    assert {one["difficulty"] for one in found} <= {*get_args(Difficulty)}
    assert {one["application"] for one in found} <= applications


@pytest.mark.parametrize(
    ("kind", "category", "name", "family"),
    [
        ("NetworkChaos", "Chaos", "delay", "network"),
        ("StressChaos", "Chaos", "memory", "hardware"),
        ("ConfigMap", "Change", "flagd-config", "application"),
        ("ConfigMap", "Change", "cart", "virtualization"),
        ("Deployment", "Resource Saturation", "cart", "virtualization"),
        ("Deployment", "nobody's word", "cart", ""),
    ],
)
def test_recordings_of_others_are_classified_by_kind_and_category(
    kind: str, category: str, name: str, family: str
) -> None:
    found = classification(truth(kind, category, name))
    assert found == {"family": family, "difficulty": "", "application": "Astronomy Shop"}
    assert family in ("", *get_args(Level))


def test_a_namespace_of_nobody_stays_as_it_is() -> None:
    assert classification(truth("Deployment", "Change", namespace="bookinfo"))["application"] == "bookinfo"
