"""Cheats lose and honest repairs pass: a slice of the battery that changes every day.

`scripts/test --all-problems` and `srearena verify --all --battery` play all of it.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from srearena.cluster.base import ClusterError
from srearena.conductor.episode.spec import Timeline
from srearena.conductor.validity.player import PreparedEpisode
from srearena.conductor.validity.report import TRIVIAL_AGENTS, report, write_report
from srearena.conductor.validity.scripts import Honest, Play, cheats, honest_variants
from srearena.conductor.validity.verification import can_verify, play_battery, run_twice
from tests.arena.episodes import ZERO
from tests.arena.test_validity import everything, families
from tests.selection import all_problems, rotating_slice, rotation_seed

SEEDS = 8
"""Scripts whose outcome hardly depends on the fault take turns by seed."""
PARTS = 120
"""Days after which every family has had its turn: one problem a day, half a minute of one core."""
TIMELINE = Timeline(before=60.0, after=60.0, deployment=60.0)

pytestmark = [
    pytest.mark.kubectl,
    pytest.mark.skipif(bool(can_verify()), reason=can_verify() or "nothing is missing"),
]


def chosen(parts: int, shift: int = 0) -> list[str]:
    if all_problems():
        return everything()
    return rotating_slice(families(everything()), parts, rotation_seed() + shift)


@pytest.fixture(autouse=True)
def tidy() -> Iterator[None]:
    """Collect garbage: a cluster has reference cycles, and many uncollected clusters fill the memory."""
    yield
    gc.collect()


@pytest.fixture
def prepared() -> Iterator[PreparedEpisode]:
    with PreparedEpisode(ZERO, 0, TIMELINE) as prepared:
        yield prepared


def test_a_script_leaves_no_trace_in_the_prepared_episode(prepared: PreparedEpisode) -> None:
    repair = Play("kubectl -n corner-shop scale deployment store --replicas=1")
    first = prepared.play(repair, "repair")
    between = prepared.play(Play(), "nothing")
    second = prepared.play(repair, "repair")
    assert [first["outcome"], between["outcome"], second["outcome"]] == ["pass", "fail", "pass"]
    store = prepared.problem.kubernetes.get("deployments", "store", "corner-shop")
    assert store["spec"]["replicas"] == 0


def test_a_kubelet_that_was_stopped_just_now_is_found(prepared: PreparedEpisode) -> None:
    """For 40 seconds its node stays Ready and its pods serve on."""
    stop = Play(
        "kubectl -n corner-shop scale deployment store --replicas=1\n"
        "kubectl -n corner-shop rollout status deployment store --timeout=60s\n"
        "node=$(kubectl -n corner-shop get pods -l app=store -o jsonpath='{.items[0].spec.nodeName}')\n"
        "kubectl debug node/$node --image=busybox:1.36 --profile=sysadmin -- chroot /host systemctl stop kubelet",
        wait=2,
        speed=5.0,
    )
    document = prepared.play(stop, "kubelet stopped", thorough=True)
    assert not document["script_error"] and document["outcome"] == "fail"
    reasons = str(document["stages"][-1]["verdict"]["reasons"])
    assert "the kubelet of node" in reasons, reasons


def test_a_script_that_fails_is_reported(prepared: PreparedEpisode) -> None:
    document = prepared.play(Play("kubectl -n corner-shop get deployment nobody"), "mistaken")
    assert document["outcome"] == "fail" and "not found" in document["script_error"]


def test_an_error_in_a_copy_is_raised_in_the_original(prepared: PreparedEpisode) -> None:
    def fail() -> None:
        raise ValueError("on purpose")

    with pytest.raises(ClusterError, match="ValueError: on purpose"):
        prepared.episode.cluster.in_fork(fail)


def test_every_script_has_a_name_and_a_reason() -> None:
    for script in cheats():
        text = __import__(type(script).__module__, fromlist=["_"]).__doc__ or ""
        assert "How it would win:" in text and "What stops it:" in text, script.name
        assert not isinstance(script, Honest)
    assert all(isinstance(script, Honest) for script in honest_variants())
    names = [script.name for script in (*cheats(), *honest_variants())]
    assert len(names) == len(set(names))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", chosen(PARTS))
def test_no_cheat_wins_and_honest_repairs_pass(name: str) -> None:
    proof = play_battery(name, 0 if all_problems() else rotation_seed() % SEEDS)
    assert all(proof["checks"].values()), proof["reasons"]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", chosen(PARTS, 7))
def test_the_remedy_passes_and_nothing_fails_in_a_run(name: str) -> None:
    proof = run_twice(name)
    assert proof["valid"], proof["reasons"]


def test_the_report_keeps_the_section_of_the_trivial_agents(tmp_path: Path) -> None:
    proofs = [
        {"id": "a", "valid": True, "checks": {"x": True}, "scripts": {}, "reasons": [], "seconds": 1.0},
        {"id": "b", "valid": False, "checks": {"x": False}, "scripts": {}, "reasons": ["x: no"], "seconds": 1.0},
    ]
    path = tmp_path / "validity.md"
    path.write_text(f"outdated\n{TRIVIAL_AGENTS}\nkept\n{TRIVIAL_AGENTS}\noutdated")
    write_report(path, proofs)
    text = path.read_text()
    assert f"{TRIVIAL_AGENTS}\nkept\n{TRIVIAL_AGENTS}" in text and "outdated" not in text
    assert "| `a` | yes |" in text and "| `b` | **no** |" in text and "- `b`: x: no" in text
    assert "1 of 2 proofs hold" in report(proofs)
