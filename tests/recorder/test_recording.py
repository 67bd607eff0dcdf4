"""An incident recorded from a real application: sound, silent about the answer, and solvable with the tools."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from itbench_evaluations.cli import main as evaluate
from sre_tools.offline_incident_analysis import Workspace, all_tools, call_tool
from srearena.conductor.problems.base import Problem
from srearena.conductor.validity.leaks import _REVEALING
from srearena.observer.recorder import Recording
from srearena.snapshots import open_snapshot
from srearena.snapshots.inspection import inspect

NAMED = {
    "get_metric_anomalies": {"k8_object_name": "Deployment/rate"},
    "topology_analysis": {"entity": "Deployment/rate"},
    "get_k8_spec": {"k8_object_name": "Deployment/rate"},
    "get_context_contract": {"k8_object": "Deployment/rate"},
}


@pytest.fixture
def workspace(recording: Recording) -> Workspace:
    return Workspace(recording.directory)


def test_a_recording_is_sound_and_whole(recording: Recording) -> None:
    with open_snapshot(recording.directory) as snapshot:
        found = inspect(snapshot)
    assert found.problems == []
    assert found.oddities == []
    assert found.form == "raw"
    assert {table.table for table in found.tables} == {"alerts", "events", "objects", "logs", "spans", "metrics"}


def test_alerts_are_captured_every_minute_and_once_more_at_the_end(recording: Recording) -> None:
    names = sorted(path.name for path in (recording.directory / "alerts").iterdir())
    assert sum(name.startswith("alerts_at_") for name in names) == 9
    assert sum(name.startswith("alerts_in_alerting_state_") for name in names) == 1


@pytest.mark.parametrize("name", sorted(all_tools()))
def test_every_tool_answers(workspace: Workspace, name: str) -> None:
    with workspace:
        reply = call_tool(workspace, name, NAMED.get(name))
    assert reply["data"], reply["notes"]


def test_the_tools_point_at_the_root_cause(workspace: Workspace) -> None:
    with workspace:
        changes = call_tool(workspace, "change_impact")["data"]
        assert "hotel-reservation/Service/mongodb-rate" in [row["entity"] for row in changes[:2]]
        removed = call_tool(workspace, "k8s_spec_change_analysis")["data"]
        assert any(row["entity"].endswith("Service/mongodb-rate") and row["type"] == "removed" for row in removed)
        logs = call_tool(workspace, "log_analysis", {"k8_object": "Deployment/rate", "severity_filter": "FATAL"})
        assert any("lookup mongodb-rate" in row["pattern"] for row in logs["data"])
        alerts = call_tool(workspace, "alert_summary")["data"]
        assert any(row["entity"].startswith("rate") and row["began_during_recording"] for row in alerts)


def test_the_key_tells_what_was_done_and_how_it_spread(recording: Recording) -> None:
    key = yaml.safe_load(recording.answer_key.read_text())
    assert [group["id"] for group in key["groups"] if group.get("root_cause")] == ["mongodb-rate-service-1"]
    steps = [(step["source"], step["target"]) for step in key["propagations"]]
    assert steps[0] == ("mongodb-rate-service-1", "rate-service-1")
    assert ("rate-service-1", "search-service-1") in steps
    assert ("search-service-1", "frontend-service-1") in steps
    assert key["fault"][0]["entity"]["changed"] == {"element": "the object itself", "from": "present", "to": "absent"}
    assert "kubectl" in key["recommended_actions"][0]["solution"]["actions"][0]
    fired = {(alert["id"], alert.get("group_id")) for alert in key["alerts"]}
    assert ("DeploymentNotReady", "rate-service-1") in fired
    assert evaluate(["lint", str(recording.answer_key.parent.parent)]) == 0


def test_the_key_lists_the_disruption_as_itbench_describes_scenarios(recording: Recording, problem: Problem) -> None:
    key = yaml.safe_load(recording.answer_key.read_text())
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "mongodb-rate", "namespace": "hotel-reservation"},
    }
    expected = {"id": problem.family, "args": {"kubernetesObject": service}}
    assert key["disruptions"] == [{"injections": [expected]}]


def test_the_sections_of_the_key_refer_to_each_other_as_itbenchs_do(recording: Recording) -> None:
    key = yaml.safe_load(recording.answer_key.read_text())
    groups = {group["id"]: group for group in key["groups"]}
    assert {group["kind"] for group in groups.values()} == {"Deployment", "Pod", "Service"}
    for group in groups.values():
        assert group["namespace"] == "hotel-reservation"
        assert group["id"].endswith(f"-{group['kind'].lower()}-1")
        assert all(re.compile(pattern) for pattern in group["filter"])
    assert ["rate-deployment-1", "rate-pod-1", "rate-service-1"] in key["aliases"]
    assert {name for alias in key["aliases"] for name in alias} <= groups.keys()
    assert {step[end] for step in key["propagations"] for end in ("source", "target")} <= groups.keys()
    assert all(step["condition"] and step["effect"] for step in key["propagations"])
    assert {alert["group_id"] for alert in key["alerts"] if "group_id" in alert} <= groups.keys()
    assert {fault["entity"]["group_id"] for fault in key["fault"]} == {"mongodb-rate-service-1"}


def test_no_alert_of_the_key_fired_before_the_fault(recording: Recording) -> None:
    key = yaml.safe_load(recording.answer_key.read_text())
    with open_snapshot(recording.directory) as snapshot:
        early = {a.alertname for a in snapshot.alerts() if a.observed_at.timestamp() < recording.fault_at}  # type: ignore[union-attr]
    assert not early & {alert["id"] for alert in key["alerts"]}


def test_nothing_in_a_recording_names_the_problem(recording: Recording, problem: Problem) -> None:
    own = re.compile("|".join(map(re.escape, (problem.id, problem.family))))
    for path in recording.directory.rglob("*"):
        assert not own.search(path.name)
        if path.is_file():
            text = path.read_text()
            assert not own.search(text), path
            assert not _REVEALING.search(text), (path, _REVEALING.search(text))
    assert not list(recording.directory.rglob("*truth*"))


def _graded(recording: Recording, place: Path, entity: str) -> float:
    answer = {"entities": [{"id": entity, "contributing_factor": True, "reasoning": "", "evidence": ""}]}
    trial = place / "outputs" / "Scenario-1" / "1"
    trial.mkdir(parents=True)
    (trial / "agent_output.json").write_text(json.dumps(answer))
    result = place / "result.json"
    truths = recording.answer_key.parent.parent
    words = ["-g", str(truths), "-o", str(place / "outputs"), "-r", str(result), "--judge", "none"]
    assert evaluate(words) == 0
    scores = json.loads(result.read_text())["raw_results"][0]["scores"]
    return float(scores["root_cause_entity"]["calculation_f1"])


@pytest.mark.parametrize(
    ("entity", "score"),
    [
        ("hotel-reservation/Service/mongodb-rate", 1.0),
        ("hotel-reservation/Deployment/mongodb-rate", 1.0),
        ("hotel-reservation/Deployment/rate", 0.0),
        ("hotel-reservation/Service/mongodb-geo", 0.0),
    ],
)
def test_answers_are_graded_by_the_recorded_key(
    recording: Recording, tmp_path: Path, entity: str, score: float
) -> None:
    assert _graded(recording, tmp_path, entity) == score


def test_every_series_has_one_sample_at_a_time(recording: Recording) -> None:
    """Labels that tell series apart are recorded: queues of a controller, requests of a load generator."""
    with open_snapshot(recording.directory) as snapshot:
        doubled = snapshot.rows(
            "SELECT metric FROM metrics GROUP BY object_kind, object_name, metric, labels, le, status_code, time "
            "HAVING count(*) > 1 LIMIT 5"
        )
        queues = snapshot.rows("SELECT DISTINCT labels FROM metrics WHERE metric = 'workqueue_adds_total'")
    assert doubled == []
    assert len(queues) > 5
