"""The compound incidents of the package: files, each inspired by a public report, each asking for several repairs.

Their proofs are those of all problems (`tests/arena/test_validity.py`, `srearena verify`).
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from srearena.conductor.problems.incidents.document import read_incident
from srearena.conductor.problems.incidents.problem import IncidentProblem
from srearena.conductor.problems.registry import ProblemRegistry
from srearena.conductor.trials.problem_suites import problem_suite

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "srearena" / "conductor" / "problems" / "compound").glob("*.yaml"))


def test_there_are_twenty_and_each_names_its_own_report() -> None:
    incidents = [read_incident(path) for path in FILES]
    assert len(incidents) >= 20
    reports = [incident.inspiration for incident in incidents]
    assert all(report.startswith(("https://", "http://")) for report in reports)
    assert len(set(reports)) == len(reports)
    assert all(incident.title for incident in incidents)
    assert len({incident.id for incident in incidents}) == len(incidents)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_it_is_a_problem_of_the_catalogue(path: Path) -> None:
    problem = ProblemRegistry().get_problem(path.stem)
    assert isinstance(problem, IncidentProblem) and problem.id == path.stem
    assert problem.difficulty == "hard" and problem.repairable
    lasting = [part for part in read_incident(path).faults if not part.is_gone]
    assert len(problem.parts) == len(lasting)
    # All of it is asked for: no fault shares its origin with another one, whose repair would repair it as well.
    assert len({origin.changed for origin in problem.origins}) == len(problem.origins)


def test_they_are_part_of_the_suite_of_their_level() -> None:
    several = [path.stem for path in FILES if len(read_incident(path).faults) > 1]
    assert set(several) <= set(problem_suite("correlated").problems)


def test_the_catalogue_lists_every_problem() -> None:
    script = [sys.executable, str(ROOT / "scripts" / "catalogue"), "--check"]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_readme_counts_the_problems() -> None:
    count = len([name for name in ProblemRegistry().get_problem_ids() if not name.startswith("corner_shop_")])
    assert f"**{count} problems on" in (ROOT / "README.md").read_text(encoding="utf-8")
