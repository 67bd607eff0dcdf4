"""Admission policies: one that is suddenly enforced, and one whose parameters change.

Of the first either of its two objects may go, and pods of other workloads are refused too; the second denies without
its parameters as well.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from srearena.conductor.episode.spec import Timeline
from srearena.conductor.validity.player import PreparedEpisode
from srearena.conductor.validity.scripts import Play
from srearena.conductor.validity.verification import can_verify

pytestmark = [
    pytest.mark.kubectl,
    pytest.mark.skipif(bool(can_verify()), reason=can_verify() or "nothing is missing"),
]
TIMELINE = Timeline(before=60.0, after=60.0, deployment=60.0)
RESTART = "kubectl -n hotel-reservation rollout restart deployment/recommendation"


@pytest.fixture(scope="module")
def prepared() -> Iterator[PreparedEpisode]:
    with PreparedEpisode("admission_policy_enforced_hotel_reservation", 0, TIMELINE) as prepared:
        yield prepared


def test_without_the_policy_its_binding_does_nothing(prepared: PreparedEpisode) -> None:
    script = f"kubectl delete validatingadmissionpolicy pinned-images\n{RESTART}"
    document = prepared.play(Play(script, wait=30), "policy deleted")
    assert document["outcome"] == "pass", document["stages"][-1]


def test_one_workload_that_complies_is_no_repair(prepared: PreparedEpisode) -> None:
    """The others cannot be restarted yet; and the policy is told in the events of their replica sets."""
    image = "deathstarbench/hotel-reservation@sha256:" + "0" * 64
    script = (
        f"kubectl -n hotel-reservation set image deployment/recommendation '*={image}'\n{RESTART}\n"
        "kubectl -n hotel-reservation delete pod -l io.kompose.service=profile --wait=false\nsleep 2\n"
        "kubectl -n hotel-reservation get events | grep 'images must be pinned by digest'"
    )
    document = prepared.play(Play(script, wait=30, speed=5.0), "images pinned")
    assert document["outcome"] == "fail" and not document["script_error"]


@pytest.fixture(scope="module")
def compared() -> Iterator[PreparedEpisode]:
    with PreparedEpisode("admission_policy_parameters_hotel_reservation", 0, TIMELINE) as prepared:
        yield prepared


def test_without_its_parameters_the_policy_denies_as_before(compared: PreparedEpisode) -> None:
    restart = "kubectl -n hotel-reservation rollout restart deployment/profile"
    script = f"kubectl -n hotel-reservation delete configmap blocked-registries\n{restart}"
    document = compared.play(Play(script, wait=30), "parameters deleted")
    assert document["outcome"] == "fail" and not document["script_error"]
    verdict = document["stages"][-1]["verdict"]
    assert any("profile" in line for line in verdict["reasons"]), verdict


def test_without_its_binding_the_policy_denies_nothing(compared: PreparedEpisode) -> None:
    restart = "kubectl -n hotel-reservation rollout restart deployment/profile"
    script = f"kubectl delete validatingadmissionpolicybinding blocked-registries\n{restart}"
    document = compared.play(Play(script, wait=30), "binding deleted")
    assert document["outcome"] == "pass", document["stages"][-1]
