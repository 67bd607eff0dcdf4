"""What `--fast` covers, what may be skipped, and how problems take turns."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from srearena import bubblewrap
from tests import selection
from tests.selection import (
    ALLOWED_SKIPS,
    FOLDER,
    forbidden_skip,
    in_order,
    is_fast,
    rotating_slice,
    slow_tests,
    todays_cases,
)
from tests.surroundings import ROOT
from zero import docker

PACKAGES = ("clients", "itbench_evaluations", "itbench_leaderboard", "sre_tools", "srearena", "website", "zero")


def packages() -> set[str]:
    """All packages down to the second level, and those of the embedded cluster."""
    found = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for name in PACKAGES
        for pattern in ("__init__.py", "*/__init__.py")
        for path in (ROOT / name).glob(pattern)
    }
    embedded = ROOT / "srearena" / "cluster" / "embedded"
    return found | {".".join(path.parent.relative_to(ROOT).parts) for path in embedded.glob("*/__init__.py")}


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def test_every_package_has_fast_tests(request: pytest.FixtureRequest) -> None:
    items, slow = request.session.items, slow_tests()
    folders = {path.parent for path in FOLDER.rglob("test_*.py")}
    if {item.path.parent for item in items} != folders and not request.config.getoption("--fast"):
        pytest.skip("only a part of the tests was asked for")
    modules = {item.path for item in items if is_fast(item, slow)}
    support = {path for module in modules for path in module.parent.glob("*.py")}
    names = {name for path in support for name in imported(path)}
    missing = {package for package in packages() if not any(f"{name}.".startswith(f"{package}.") for name in names)}
    assert not missing


class Item(str):
    nodeid = property(lambda self: str(self))


def test_long_tests_come_first_in_every_share() -> None:
    slow = {"a": 10.0, "b": 90.0, "c": 50.0}
    items = [Item(name) for name in ("x", "a[1]", "y", "b", "c", "z", "w")]
    assert in_order(items, slow, 2) == ["b", "a[1]", "x", "y", "c", "z", "w"]  # type: ignore[arg-type,comparison-overlap]
    assert in_order(items, slow, 1) == ["b", "c", "a[1]", "x", "y", "z", "w"]  # type: ignore[arg-type,comparison-overlap]


def test_consecutive_seeds_go_through_all_members_of_all_groups() -> None:
    groups = {f"family-{number}": [f"{number}-{member}" for member in "abc"] for number in range(10)}
    seen = [set(rotating_slice(groups, 4, seed)) for seed in range(700_000, 700_000 + 4 * 3)]
    assert set().union(*seen) == {member for members in groups.values() for member in members}
    assert all(2 <= len(one) <= 3 for one in seen)


class Case(Item):
    """An item whose test is marked `daily_cases(3)`, if its name begins with "law"."""

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return pytest.mark.daily_cases(3).mark if self.startswith("law") else None


def test_consecutive_seeds_go_through_all_cases_of_a_daily_test() -> None:
    law = [Case(f"law[{number}]") for number in range(7)]
    other = [Case("other[1]"), Case("lawful[1]")]
    days = [todays_cases([*law, *other], seed) for seed in range(700_000, 700_003)]  # type: ignore[list-item]
    assert all(set(other) <= chosen and len(chosen & set(law)) == 3 for chosen in days)
    assert set().union(*days) == {*law, *other}


def test_only_listed_skips_are_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = tmp_path / "unavailable"
    monkeypatch.setenv(selection.UNAVAILABLE, str(failed))
    assert forbidden_skip("Docker is not installed") is None
    assert "was installed" in str(forbidden_skip("helm is not installed"))
    failed.write_text("ray\nhelm\n")
    assert forbidden_skip("helm is not installed") is None
    assert "does not list it" in str(forbidden_skip("no time today"))


@pytest.mark.parametrize(
    ("program", "reason"), [("bwrap", bubblewrap.unavailable_reason), ("docker", docker.unavailable_reason)]
)
def test_a_sandbox_that_does_not_work_is_an_allowed_skip(
    program: str, reason: Callable[[], str | None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = tmp_path / program
    failing.write_text("#!/bin/sh\nexit 1\n")
    failing.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    text = reason()
    assert text is not None and "does not work" in text
    assert forbidden_skip(text) is None


def test_every_allowed_skip_says_why() -> None:
    installs = (ROOT / "scripts" / "install-everything").read_text()
    for entry in yaml.safe_load(ALLOWED_SKIPS.read_text()):
        assert set(entry) <= {"reason", "why", "unless_installed"}
        assert len(entry["why"]) > 10
        assert entry.get("unless_installed", "") in installs
