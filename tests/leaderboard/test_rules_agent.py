"""The rule-based agent on recordings: it asks the tools, and blames what they point at."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from clients.rules import RulesAgent
from clients.rules.recording import TOOLS, diagnose
from itbench_evaluations import grade_diagnosis, load_truths
from itbench_leaderboard.cli import main
from srearena.snapshots.examples import unpack

ALERT = {"alertname": "HighErrorRate", "entity": "frontend", "namespace": "shop", "began_during_recording": True}
CHANGE = {"entity": "shop/ConfigMap/flags", "change": "cartFailure: off → on"}
FAILING = {"service": "cart", "own_errors": 7}
WARNING = {"object_kind": "Pod", "object_name": "cart-6d5f7c9b8-x2v4z", "namespace": "shop", "message": "Back-off"}


def blamed(**replies: list[dict[str, Any]]) -> list[str]:
    return [entity["name"] for entity in diagnose(replies)["entities"] if entity["contributing_factor"]]


def test_candidates_have_an_order() -> None:
    known = {
        "change_impact": [{"entity": "shop/Pod/cart-6d5f7c9b8-x2v4z"}, CHANGE],
        "get_trace_error_tree": [FAILING],
        "event_analysis": [WARNING],
        "alert_summary": [ALERT],
    }
    expected = ["shop/ConfigMap/flags", "shop/Deployment/cart", "shop/Deployment/cart", "shop/Service/frontend"]
    for number, name in enumerate(expected):
        rest = {tool: rows for tool, rows in known.items() if tool in list(known)[number:]}
        assert blamed(**rest) == [name]
    assert diagnose({}) == {"entities": [], "propagations": [], "alerts_explained": []}


def test_alerts_tell_what_was_affected() -> None:
    answer = diagnose({"change_impact": [CHANGE], "alert_summary": [ALERT, {**ALERT, "began_during_recording": False}]})
    assert [(step["source"], step["target"]) for step in answer["propagations"]] == [
        ("shop/ConfigMap/flags", "shop/Service/frontend")
    ]
    assert [each["alert"] for each in answer["alerts_explained"]] == ["HighErrorRate"]


async def _actions(agent: RulesAgent, states: list[str]) -> list[str]:
    return [await agent.get_action(state) for state in states]


def test_it_speaks_to_the_tools_of_a_recording() -> None:

    agent = RulesAgent()
    agent.init_context("An incident was recorded", "Answer", dict.fromkeys((*TOOLS, "submit"), ""))
    replies = ["begin", "Error: no", "not JSON", '{"data": null}', json.dumps({"data": [ALERT]})]
    actions = asyncio.run(_actions(agent, replies))
    assert [action.split("(")[0].split()[-1] for action in actions] == [*TOOLS, "submit"]
    assert "shop/Service/frontend" in actions[-1]


def test_it_finds_the_cause_of_a_recorded_incident(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SREARENA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    unpack(tmp_path / "ITBench-Snapshots")
    path = tmp_path / "model_leaderboard.toml"
    path.write_text(
        'scenarios_dir = "ITBench-Snapshots"\n[[agents]]\nname = "rules"\nkind = "python"\nagent = "rules"\n'
    )
    assert main(["--config", str(path), "--scenarios", "6", "--no-connection-test"]) == 0
    rows = json.loads((tmp_path / "leaderboard_results/results/leaderboard.json").read_text())["rankings"]
    assert [(row["agent"], row["score"]) for row in rows] == [("rules", 1.0)]


def test_the_keys_of_the_recordings_grade_their_own_truth_as_perfect(tmp_path: Path) -> None:
    """Every group of a key, named in full, is the right answer to it."""
    unpack(tmp_path)
    truths = load_truths(tmp_path).truths
    assert sorted(truths) == ["1", "2", "3", "4", "5", "6"]
    for truth in truths.values():
        names = {group.id: f"{group.namespace}/{group.kind}/{_example(group.filters[0])}" for group in truth.groups}
        entities = [{"name": names[group.id], "contributing_factor": group.root} for group in truth.groups]
        steps = [{"source": names[step.source], "target": names[step.target]} for step in truth.propagations]
        scores = grade_diagnosis(truth, {"entities": entities, "propagations": steps, "alerts_explained": []}).scores
        for metric in ("root_cause_entity_f1", "propagation_chain", "ntam_fault_localization", "itbench_aa"):
            assert scores[metric] == 1.0, f"{truth.incident_id}: {metric}"


def _example(pattern: str) -> str:
    """A name that a filter of the recorder accepts."""
    return pattern.replace("-.*", "-6d5f7c9b8-x2v4z").replace(r"\b", "").replace("\\", "")
