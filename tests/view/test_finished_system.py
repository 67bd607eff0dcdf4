"""What the pages show of the system of a finished trial."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from srearena.conductor.episode.limits import Limits
from srearena.conductor.problems.scheduling import ScalePodZero
from srearena.conductor.results.signals import SIGNALS, capture_signals
from srearena.view.incidents.finished import finished_system
from srearena.view.trials import LeaderboardTrial
from tests.arena.episodes import prepared_episode, shop_problem
from tests.view.signals import ENDED, FAULT, FIRST, HANDED_OVER, signals


def named(system: dict[str, Any], moment: str) -> dict[str, dict[str, Any]]:
    return {service["name"]: service for service in system[moment]["services"]}


def test_the_graph_is_compared_with_the_time_before_the_fault() -> None:
    system = finished_system(signals())
    assert system is not None
    assert system["baseline"] == (FIRST, FAULT)
    start, end = named(system, "start"), named(system, "end")
    assert start["user-service"]["errors"] == {"now": 1.0, "usual": 0.0, "level": 2}
    assert start["user-mongodb"]["kind"] == "store"
    assert (start["web"]["level"], end["user-service"]["level"]) == (0, 0)
    (call,) = (edge for edge in system["start"]["edges"] if edge["to"] == "user-service")
    assert (call["from"], call["level"], call["errors"]["now"]) == ("web", 2, 1.0)
    assert [(mark["kind"], mark["at"]) for mark in system["marks"]] == [
        ("phase", HANDED_OVER),
        ("phase", ENDED),
        ("fault", FAULT),
    ]
    assert system["alerts"][0]["name"] == "HighErrorRate"


def test_without_a_fault_there_is_no_mark_of_one() -> None:
    system = finished_system({**signals(), "fault": None})
    assert system is not None and [mark["kind"] for mark in system["marks"]] == ["phase", "phase"]


@pytest.mark.parametrize(
    "damage",
    [
        {"schema": "other/1"},
        {"step": 0},
        {"points": "many"},
        {"points": -5},
        {"measures": [1]},
        {"measures": {"requests": [{"key": 3}]}},
        {"traces": [{"count": 10**30, "spans": 5}]},
        {"traces": None},
        {"alerts": [{}]},
        {"handed_over": None},
    ],
)
def test_damaged_signals_are_left_out(damage: dict[str, Any]) -> None:
    assert finished_system({**signals(), **damage}) is None


def test_a_live_run_of_a_leaderboard_has_its_system_too(tmp_path: Path) -> None:
    folder = tmp_path / "board" / "rules" / "wrong_port" / "1"
    folder.mkdir(parents=True)
    trial = LeaderboardTrial("0/rules/wrong_port/1", folder, (0,), {})
    assert "system" not in trial.document()
    (folder / SIGNALS).write_text(json.dumps(signals()))
    assert {service["name"] for service in trial.document()["system"]["start"]["services"]} >= {"web", "user-service"}


def test_the_signals_of_an_episode_are_kept() -> None:
    problem = shop_problem(ScalePodZero, "store")
    with prepared_episode(problem, stages=("detection",), limits=Limits(steps=9)) as episode:
        episode.act("wait(60)")
        assert episode.session.history[-1]["clock"] - episode.session.history[-2]["clock"] >= 60
        episode.submit("Yes")
        episode.grade()
        document = capture_signals(episode)
    assert document is not None
    assert len(json.dumps(document)) < 400_000
    assert document["fault"] < document["handed_over"] < document["ended"] - 60
    system = finished_system(json.loads(json.dumps(document)))
    assert system is not None
    assert {key["key"][0] for key in document["measures"]["cpu"]} >= {"corner-shop"}, (
        "the shop's requests have no metrics"
    )
    assert [mark["kind"] for mark in system["marks"]] == ["phase", "phase", "fault"]
