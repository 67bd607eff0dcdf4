"""Incidents in files: what is read and refused, which problem they make, and that a file is as good as an id."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from srearena.cli import cli
from srearena.conductor.episode.spec import EpisodeSpec
from srearena.conductor.errors import ProblemError, UnknownProblem
from srearena.conductor.problems.incidents.document import Incident, parse_incident, read_incident
from srearena.conductor.problems.incidents.problem import IncidentProblem
from srearena.conductor.problems.registry import ProblemRegistry, problem_of
from srearena.view.playing import problems

FAULT = {"problem": "wrong_service_selector_social_network", "arguments": {"service": "text-service"}}
SECOND = {"problem": "scale_pod_zero_social_net", "arguments": {"service": "user-service"}, "after": 30}
DOCUMENT: dict[str, Any] = {
    "format": "srearena.incident/1",
    "application": "social_network",
    "seed": 17,
    "noise": True,
    "load": {"rate": 60},
    "faults": [FAULT, SECOND],
}


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SREARENA_INCIDENTS", str(tmp_path / "library"))
    return tmp_path / "library"


def written(tmp_path: Path, **changes: Any) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump({**DOCUMENT, **changes}))
    return path


def test_the_id_is_that_of_what_decides_the_episode() -> None:
    incident = parse_incident(DOCUMENT)
    assert parse_incident(incident.as_document()) == incident
    assert parse_incident({**DOCUMENT, "title": "Two at once", "difficulty": "hard"}).id == incident.id
    for change in ({"seed": 18}, {"noise": False}, {"load": {}}, {"faults": [FAULT]}):
        assert parse_incident({**DOCUMENT, **change}).id != incident.id


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "this version reads"),
        ({"faults": []}, "one to"),
        ({"faults": [FAULT] * 6}, "one to"),
        ({"faults": [{**FAULT, "script": "rm"}]}, "no field script"),
        ({"faults": [{**FAULT, "lasts": 30}]}, "all faults end"),
        ({"faults": [{**FAULT, "pause": 30}]}, "says how long it `lasts`"),
        ({"faults": [{**FAULT, "after": -1}]}, "seconds"),
        ({"faults": [{**FAULT, "after": float("nan")}]}, "seconds"),
        ({"seed": -1}, "whole number"),
        ({"seed": True}, "whole number"),
        ({"noise": "yes"}, "true or false"),
        ({"difficulty": "nasty"}, "one of easy"),
        ({"load": {"rate": float("inf")}}, "neither a text nor a number"),
        ({"shell": "id"}, "no field shell"),
    ],
)
def test_what_is_no_incident_is_refused_with_the_reason(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        parse_incident({**DOCUMENT, **change})


@pytest.mark.parametrize("text", ["", "[1, 2]", "{", "- " * 70_000, "!!python/object/apply:os.system [id]", "a: " * 99])
def test_files_that_are_no_incidents_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(text)
    with pytest.raises(ProblemError, match=r"x\.yaml"):
        read_incident(path)


@pytest.mark.parametrize(
    ("faults", "error", "message"),
    [
        ([{"problem": "no_such_fault"}], UnknownProblem, "registered problems"),
        ([{"problem": "noop_social_network"}], ProblemError, "has no fault"),
        ([{**FAULT, "arguments": {"colour": "red"}}], ProblemError, "does not take these arguments"),
        ([FAULT, {"problem": "network_policy_block"}], ProblemError, "cannot be combined"),
        ([{"problem": "network_policy_block"}], ProblemError, "are not on social_network"),
    ],
)
def test_faults_that_do_not_exist_or_do_not_fit_are_refused(
    faults: list[Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        problem_of(parse_incident({**DOCUMENT, "faults": faults}))


def test_the_problem_has_all_faults_and_its_own_seed() -> None:
    problem = problem_of(parse_incident(DOCUMENT))
    assert [str(root) for root in problem.roots] == [
        "social-network/Service/text-service",
        "social-network/Deployment/user-service",
    ]
    assert (problem.load["rate"], problem.arrival_seconds, problem.level) == (60, 30, "correlated")
    assert EpisodeSpec(seed=3).pinned_by(problem) == EpisodeSpec(seed=17, noise=True)
    one = problem_of(parse_incident({**DOCUMENT, "faults": [FAULT], "seed": None, "noise": None}))
    assert (one.level, one.difficulty, dict(one.pins)) == ("virtualization", "easy", {})


def test_a_fault_that_is_over_is_no_part_of_the_answer() -> None:
    faults = [{**SECOND, "lasts": 40}, {**FAULT, "lasts": 60, "pause": 45}]
    problem = problem_of(parse_incident({**DOCUMENT, "faults": faults}))
    assert isinstance(problem, IncidentProblem)
    assert [root.name for root in problem.roots] == ["text-service"]
    assert "user-service" in problem.affected_components, "innocent changes leave it alone"
    performed: list[str] = []
    for number, part in enumerate(problem.arriving):
        part.inject_fault = lambda number=number: performed.append(f"inject {number}")  # type: ignore[method-assign,misc]
        part.recover_fault = lambda number=number: performed.append(f"recover {number}")  # type: ignore[method-assign,misc]
    problem._cluster = Waits(performed)  # type: ignore[assignment]
    problem.inject_fault()
    assert performed == [
        *("wait 30", "inject 0", "wait 40", "recover 0"),
        *("wait 0", "inject 1", "wait 60", "recover 1", "wait 45", "inject 1"),
    ]
    assert problem.arrival_seconds == 175


class Waits:
    """A cluster that only waits."""

    def __init__(self, performed: list[str]) -> None:
        self._performed = performed

    def wait(self, seconds: float) -> None:
        self._performed.append(f"wait {seconds:g}")


def test_a_file_is_accepted_as_an_id_and_found_again_by_its_id(tmp_path: Path, library: Path) -> None:
    registry = ProblemRegistry()
    path = written(tmp_path)
    [name] = registry.match([str(path)])
    assert name == read_incident(path).id and (library / f"{name}.yaml").is_file()
    path.unlink()
    assert registry.resolve(name).ids == (name,)
    assert registry.get_problem(name).id == name
    assert registry.match([name]) == [name]
    assert problems([name])[0] == {
        "id": name,
        "application": "Social Network",
        "level": "correlated",
        "difficulty": "hard",
    }


def test_ids_from_elsewhere_open_no_file(tmp_path: Path, library: Path) -> None:
    """What a client of an HTTP server names is an id: never a path, never one that leaves the library."""
    registry = ProblemRegistry()
    path = written(tmp_path)
    for text in (str(path), "incident-../../../mine", "incident-000000000000.yaml"):
        with pytest.raises(UnknownProblem):
            registry.resolve(text)
    with pytest.raises(UnknownProblem, match="has no incident"):
        registry.get_problem("incident-000000000000")
    name = registry.identify(str(path))
    (library / f"{name}.yaml").write_text(yaml.safe_dump({**DOCUMENT, "seed": 99}))
    with pytest.raises(ProblemError, match="was edited"):
        registry.get_problem(name)


def test_the_command_line_lists_it(tmp_path: Path, library: Path) -> None:
    result = CliRunner().invoke(cli, ["problems", str(written(tmp_path)), "--spoilers", "--json"])
    [listed] = json.loads(result.output)
    assert listed["id"].startswith("incident-") and len(listed["ground_truth"]["roots"]) == 2
    assert Incident("social_network", ()).id != listed["id"]


def test_a_wrong_file_is_a_message_and_no_traceback(tmp_path: Path, library: Path) -> None:
    path = written(tmp_path, faults=[])
    result = CliRunner().invoke(cli, ["verify", str(path)])
    assert isinstance(result.exception, ProblemError) and "one to" in str(result.exception)
    assert not library.exists()
