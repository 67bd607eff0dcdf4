"""Agents without a diagnosis: each plays all stages with its one trick, and noise keeps them from winning."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.trivial_agents import AGENTS, MOST, play, table, write_table
from clients.newest_change import last_write
from clients.trivial import undo
from srearena.conductor.agents import agent_names
from srearena.conductor.problems.containers import InitContainerDependencyHang
from srearena.conductor.validity.report import TRIVIAL_AGENTS
from tests.arena.episodes import PORT, QUIET, ZERO, prepared_episode, shop_problem

ROOT = Path(__file__).parents[2]


def test_they_come_with_the_package() -> None:
    assert set(AGENTS) <= set(agent_names())


def test_they_play_every_stage_and_do_not_win(tmp_path: Path) -> None:
    results = [result for problem in (PORT, ZERO, QUIET) for result in play(problem, 3)]
    assert not [result["error"] for result in results if result["error"]]
    assert all({"detection", "localization"} <= result["stages"].keys() for result in results)
    won = [(result["agent"], result["problem"]) for result in results if result["won"]]
    assert len(won) <= 1, won
    page = tmp_path / "validity.md"
    page.write_text(f"# Validity\n\n{TRIVIAL_AGENTS}\n{TRIVIAL_AGENTS}\n\nMore.\n")
    write_table(page, table(results))
    assert page.read_text().count(TRIVIAL_AGENTS) == 2 and page.read_text().endswith("\n\nMore.\n")
    assert "| `undo-everything` |" in page.read_text()


def test_without_noise_an_undo_repairs_what_with_an_innocent_revision_after_the_fault_it_does_not() -> None:
    """Why noise is needed: the previous revision is the healthy one only as long as nobody else deploys."""
    problem = shop_problem(InitContainerDependencyHang)
    with prepared_episode(problem):
        api, name, namespace = problem.kubernetes, "api", problem.namespace
        assert last_write(api.get("deployments", name, namespace)) >= problem.injected_at
        innocent = {"spec": {"template": {"metadata": {"annotations": {"checksum/config": "1"}}}}}
        api.patch("deployments", name, innocent, namespace)
        problem.cluster.wait(10)
        assert undo(api, api.get("deployments", name, namespace))
        assert "initContainers" in api.get("deployments", name, namespace)["spec"]["template"]["spec"]


def test_the_measured_shares_are_below_the_bound() -> None:
    text = (ROOT / "docs" / "validity.md").read_text()
    section = text.split(TRIVIAL_AGENTS)[1]
    shares = re.findall(r"\| `([a-z-]+)` \| \d+ of \d+ \(([0-9.]+)%\)", section)
    assert {name for name, _ in shares} == set(AGENTS)
    assert all(float(share) < 100 * MOST for _, share in shares), shares
