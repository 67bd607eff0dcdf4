"""The rule-based agent on recordings: it asks the tools, and blames what they point at."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from clients.rules import RulesAgent
from clients.rules.suspects import TOOLS
from itbench_evaluations import grade_diagnosis, load_truths
from itbench_leaderboard.cli import main
from srearena.conductor.actions.parsing import parse
from srearena.snapshots.examples import unpack

ALERT = {"alertname": "HighErrorRate", "entity": "frontend", "namespace": "shop", "began_during_recording": True}
EARLIER = {**ALERT, "alertname": "Old", "began_during_recording": False}
CHANGE = {"entity": "shop/ConfigMap/flags", "change": "cartFailure: off → on", "score": 80.0}
FAILING = {"pivot_time": "x", "root_cause_suspect": {"service": "cart", "reason": "its own calls fail"}}
WARNING = {"object_kind": "Pod", "object_name": "cart-6d5f7c9b8-x2v4z", "namespace": "shop", "message": "Back-off"}
REPLIES: dict[str, dict[str, Any]] = {
    "change_impact": {"data": [{"entity": "shop/Pod/cart-6d5f7c9b8-x2v4z", "score": 90.0}, CHANGE]},
    "get_trace_error_tree": {"summary": FAILING},
    "event_analysis": {"data": [WARNING]},
    "alert_summary": {"data": [ALERT, EARLIER], "summary": {"recording_began": "2026-01-05T10:00:00Z"}},
}


def answered(*tools: str) -> tuple[list[str], dict[str, Any]]:
    """The agent's calls and its diagnosis where these tools reply and the others fail."""
    agent = RulesAgent()
    agent.init_context("An incident was recorded", "Answer", dict.fromkeys((*TOOLS, "submit"), ""))
    calls, state = [], "begin"
    while True:
        call = parse(asyncio.run(agent.get_action(state)), [*TOOLS, "submit"])
        if call.name == "submit":
            return calls, json.loads(call.arguments[0])
        calls.append(call.name)
        state = json.dumps(REPLIES[call.name]) if call.name in tools else "Error: no such table"


def test_it_blames_the_first_suspect_and_alerts_tell_what_was_affected() -> None:
    calls, answer = answered(*TOOLS)
    assert sorted(calls) == sorted(TOOLS), "each tool is asked once"
    # A warning and failing spans of cart outweigh a change that scores 80 of 100.
    assert [(each["name"], each["contributing_factor"]) for each in answer["entities"]] == [
        ("shop/Deployment/cart", True),
        ("shop/Service/frontend", False),
    ]
    assert [(step["source"], step["target"]) for step in answer["propagations"]] == [
        ("shop/Deployment/cart", "shop/Service/frontend")
    ]
    assert [each["alert"] for each in answer["alerts_explained"]] == ["HighErrorRate"]


@pytest.mark.parametrize(
    ("tools", "blamed"),
    [
        (["change_impact", "event_analysis"], "shop/ConfigMap/flags"),
        (["event_analysis"], "shop/Deployment/cart"),
        (["alert_summary"], "shop/Deployment/frontend"),
    ],
)
def test_it_answers_by_what_the_tools_have(tools: list[str], blamed: str) -> None:
    assert [each["name"] for each in answered(*tools)[1]["entities"]] == [blamed]


def test_it_blames_nothing_without_replies() -> None:
    assert answered()[1] == {"entities": [], "propagations": [], "alerts_explained": []}


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
