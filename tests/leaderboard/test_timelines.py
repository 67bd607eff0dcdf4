"""Timelines and charts of incidents, which the website shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from itbench_leaderboard.incidents import Incident
from itbench_leaderboard.timelines import write_missing
from srearena.conductor.results.signals import SIGNALS
from srearena.snapshots.examples import unpack
from tests.view.signals import HANDED_OVER, signals


def written(root: Path, name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((root / "results" / "timelines" / f"{name}.json").read_text())
    return document


def test_a_recording_has_a_timeline_and_charts_of_what_deviates(tmp_path: Path) -> None:
    incident = Incident("Scenario-1", "snapshot", str(unpack(tmp_path / "data")[0]))
    write_missing(tmp_path, [incident])
    document = written(tmp_path, "Scenario-1")
    assert any("cartFailure" in entry["what"] for entry in document["entries"])
    charts = document["charts"]
    levels = [service["level"] for service in charts["services"]]
    assert levels == sorted(levels, reverse=True)
    # A burst of requests at the end may make others deviate as much.
    (cart,) = [service for service in charts["services"] if service["name"] == "cart"]
    assert cart["level"] == 2
    assert all(len(cart[measure]) == len(charts["times"]) for measure in ("requests", "errors"))


def test_a_live_problem_has_charts_up_to_the_agents_start(tmp_path: Path) -> None:
    incident = Incident("wrong_port", "live", "")
    write_missing(tmp_path, [incident])
    assert not (tmp_path / "results" / "timelines" / "wrong_port.json").exists(), "no run has ended"
    run = tmp_path / "rules" / "wrong_port" / "1"
    run.mkdir(parents=True)
    (run / SIGNALS).write_text(json.dumps(signals()))
    write_missing(tmp_path, [incident])
    charts = written(tmp_path, "wrong_port")["charts"]
    assert charts["times"][-1] <= HANDED_OVER
    worst = charts["services"][0]
    assert (worst["name"], worst["level"], worst["errors"][-1]) == ("user-service", 2, 1.0)


def test_an_unreadable_recording_has_neither(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    write_missing(tmp_path, [Incident("nothing", "snapshot", str(tmp_path / "empty"))])
    document = written(tmp_path, "nothing")
    assert document["entries"] == [] and not (document["charts"] or {}).get("services")
