"""The recorded incidents in the package are what `scripts/record-examples` makes of today's code.

One of them, another every day, is recorded again. Numbers, names of pods and times may differ after a change of the
simulator; what the incident is, its key, its files and what the tools find may not: after such a change the script is
to be run again. Before a release, `scripts/record-examples --check` compares every byte.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from clients.rules.suspects import rank
from sre_tools.offline_incident_analysis import Workspace, call_tool
from sre_tools.offline_incident_analysis.workloads import workload_of
from srearena.conductor.episode.spec import Timeline
from srearena.conductor.problems.registry import ProblemRegistry
from srearena.observer.recorder import Recorder
from srearena.snapshots.examples import ARCHIVE, unpack
from tests.selection import rotating_member, rotation_seed

SCRIPT = (Path(__file__).parents[2] / "scripts" / "record-examples").read_text()
LARGEST = 3_000_000  # bytes of the archive, since it is part of the package


def words() -> list[str]:
    """The arguments of the script's `srearena record`."""
    match = re.search(r"record --all (.*?--after \d+)", SCRIPT, re.DOTALL)
    assert match
    return shlex.split(match[1].replace("\\\n", " "))


def problems() -> list[str]:
    return words()[: words().index("--out")]


def option(name: str) -> float:
    return float(words()[words().index(name) + 1])


def key_of(directory: Path) -> dict[str, Any]:
    key: dict[str, Any] = yaml.safe_load((directory / "ground_truth.yaml").read_text())
    return key


def injected(directory: Path) -> str:
    """The family of the problem that was recorded."""
    return str(key_of(directory)["disruptions"][0]["injections"][0]["id"])


def columns(directory: Path) -> dict[str, str]:
    """The header of each table, of metrics by the kind of object."""
    tables = {path.name: path for path in directory.glob("*.tsv")}
    tables |= {path.name.partition("_")[0]: path for path in directory.glob("metrics/*.tsv")}
    return {name: path.read_text().partition("\n")[0] for name, path in tables.items()}


def _answers(directory: Path) -> dict[str, Any]:
    """What the tools find in a recording, without times and generated names."""
    with Workspace(directory) as workspace:
        alerts = call_tool(workspace, "alert_summary", {"limit": 100})["data"]
        begun = {(row["alertname"], workload_of(row["entity"])) for row in alerts if row["began_during_recording"]}
        suspects = rank(lambda tool, arguments: call_tool(workspace, tool, arguments))
        traces = call_tool(workspace, "get_trace_error_tree")["summary"].get("root_cause_suspect") or {}
    return {"alerts": begun, "suspect": suspects[0].entity, "failing": traces.get("service")}


@pytest.fixture(scope="module")
def scenarios(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return unpack(tmp_path_factory.mktemp("examples"))


def test_the_archive_is_small_and_has_the_problems_of_the_script(scenarios: list[Path]) -> None:
    assert ARCHIVE.stat().st_size < LARGEST
    registry = ProblemRegistry()
    assert sorted(map(injected, scenarios)) == sorted(registry.get_problem(name).family for name in problems())
    kept = re.findall(r"kept\+?='\|?([\w|]+)'", SCRIPT)
    for path in scenarios:
        rows = [row for file in path.glob("metrics/*") for row in file.read_text().splitlines()[1:]]
        metrics = {row.partition("\t")[0] for row in rows}
        assert metrics <= set("|".join(kept).split("|")), path.name


def test_one_of_the_incidents_recorded_again_is_the_same(scenarios: list[Path], tmp_path: Path) -> None:
    name = rotating_member(problems(), rotation_seed())
    problem = ProblemRegistry().get_problem(name)
    (kept,) = (path for path in scenarios if injected(path) == problem.family)
    timeline = Timeline(before=option("--before"), after=option("--after"))
    recorder = Recorder(seed=int(kept.name.removeprefix("Scenario-")), timeline=timeline)  # as a data set has it
    recorder.record(problem, tmp_path / "again", tmp_path / "again")
    key, made = key_of(kept), key_of(tmp_path / "again")
    for section in ("disruptions", "fault", "recommended_actions"):
        assert key[section] == made[section], f"{name}: run scripts/record-examples"
    assert {tuple(sorted(alias)) for alias in key["aliases"]} == {tuple(sorted(alias)) for alias in made["aliases"]}
    assert columns(kept).items() <= columns(tmp_path / "again").items(), "the script leaves out metrics of nodes"
    found, found_again = _answers(kept), _answers(tmp_path / "again")
    assert found == found_again, f"{name}: the tools answer differently: run scripts/record-examples"
    captures = [len(list((path / "alerts").iterdir())) for path in (kept, tmp_path / "again")]
    assert captures[0] == captures[1]
