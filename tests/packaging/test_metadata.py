"""What pyproject.toml, the changelog, the workflows and the hooks say agrees."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOWS = ROOT / ".github" / "workflows"


def classified_versions() -> list[str]:
    """Return the Python versions that the classifiers promise."""
    pattern = re.compile(r"Programming Language :: Python :: (3\.\d+)")
    return [match[1] for line in PROJECT["classifiers"] if (match := pattern.fullmatch(line))]


def test_the_version_is_in_one_place() -> None:
    assert metadata.version("srearena") == PROJECT["version"]
    for source in ("srearena", "sre_tools", "itbench_evaluations", "zero", "clients", "itbench_leaderboard", "website"):
        assert "__version__" not in (ROOT / source / "__init__.py").read_text()


def test_the_changelog_has_the_version_and_what_comes_next() -> None:
    headings = re.findall(r"^## \[(.+?)\](?: - (\d{4}-\d\d-\d\d))?$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == ("Unreleased", "")
    assert headings[1][0] == PROJECT["version"]
    assert all(date for _, date in headings[1:])


def test_the_workflow_tests_each_promised_python_version() -> None:
    jobs = yaml.safe_load((WORKFLOWS / "ci.yml").read_text())["jobs"]
    assert jobs["fast"]["strategy"]["matrix"]["python"] == classified_versions()
    assert PROJECT["requires-python"] == f">={classified_versions()[0]}"


def test_workflows_run_scripts_that_exist() -> None:
    for workflow in sorted(WORKFLOWS.glob("*.yml")):
        text = workflow.read_text()
        assert yaml.safe_load(text)["permissions"] == {"contents": "read"}, workflow.name
        for script in re.findall(r"\./(scripts/[\w-]+)", text):
            assert (ROOT / script).stat().st_mode & 0o100, f"{workflow.name}: {script}"


def test_the_hook_runs_what_scripts_check_runs() -> None:
    repositories = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    hooks = [(repository["repo"], hook["entry"]) for repository in repositories for hook in repository["hooks"]]
    assert hooks == [("local", "./scripts/check")]


def test_each_package_declares_its_types() -> None:
    for package in (
        "srearena",
        "sre_tools",
        "itbench_evaluations",
        "zero",
        "clients",
        "itbench_leaderboard",
        "website",
    ):
        assert (ROOT / package / "py.typed").exists(), package
