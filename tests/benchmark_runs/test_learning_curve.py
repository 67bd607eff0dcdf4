"""The policy learns what words tell, from rewards that a real world gives."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks import learning_curve
from benchmarks.learning_curve import BATCHES, RUNBOOKS, World, curve, explore, interval, leave_alone, report, scale_up
from srearena.conductor.worlds import fork_is_safe
from srearena.frameworks.incidents import IncidentPool, framework_spec


def table_of(worlds: list[World]) -> dict[World, dict[str, Any]]:
    """In worlds of the first family the first runbook is right, in those of the second the second; one word tells."""
    table = {}
    for world in worlds:
        right = learning_curve.FAMILIES.index(world.problem)
        rewards = [1.0 if number == right else 0.5 for number in range(len(RUNBOOKS))]
        table[world] = {"words": ["pod", f"sign{right}", f"noise{world.seed}"], "rewards": rewards}
    return table


def test_a_policy_learns_to_tell_families_apart_and_knows_nothing_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning_curve, "REPEATS", 4)
    train = [World(problem, seed) for problem in learning_curve.FAMILIES[:2] for seed in range(4)]
    others = [World(problem, 100) for problem in learning_curve.FAMILIES[:2]]
    table = table_of([*train, *others])
    tests = {"training seeds": train, "held-out seeds": others}
    curves = curve(train, tests, table)["held-out seeds"]
    chance = (1.0 + 0.5 * (len(RUNBOOKS) - 1)) / len(RUNBOOKS)
    assert curves[:, 0].mean() == pytest.approx(chance)
    assert curves[:, -1].mean() > 0.9
    mean, low, high = interval(curves[:, -1, :])
    assert low <= mean <= high and mean == pytest.approx(curves[:, -1].mean())
    rows = list(report(train, tests, table))
    assert rows[2].startswith("| 0 | 0.57 (0.57 to 0.57)")
    assert f"| {BATCHES[-1] * learning_curve.GROUP} |" in "\n".join(rows)
    assert "| best runbook | 1.00 | 1.00 |" in rows


@pytest.mark.skipif(not fork_is_safe(), reason="episodes are forked on Linux only")
@pytest.mark.timeout(300)
def test_a_world_shows_words_and_rewards_the_right_runbook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning_curve, "RUNBOOKS", (leave_alone, scale_up))
    with IncidentPool(framework_spec(max_steps=60), 1) as pool:
        found = explore(pool, World("scale_pod_zero_social_net", 0))
    wrong, right = found["rewards"]
    assert wrong < 0.5 and right == 1.0
    assert "firing" in found["words"] and "scale_pod_zero_social_net" not in " ".join(found["words"])
