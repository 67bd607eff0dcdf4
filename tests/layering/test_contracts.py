"""The import contracts of pyproject.toml can fail: a forbidden import planted in a copy of the code is refused."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
PACKAGES: list[str] = SETTINGS["root_packages"]

PLANTED = {
    "Packages import only from layers below": [
        ("srearena/conductor/problems/planted.py", "import sre_tools.errors"),
        ("sre_tools/planted.py", "import zero.errors"),
        ("website/planted.py", "import itbench_leaderboard.errors"),
    ],
    "srearena: packages import only from layers below": [
        ("srearena/cluster/planted.py", "import srearena.service.errors"),
        ("srearena/unlisted/__init__.py", ""),
    ],
    "Inside the conductor, packages import only from layers below": [
        ("srearena/conductor/oracles/planted.py", "import srearena.conductor.episode.limits"),
        ("srearena/conductor/episode/planted.py", "import srearena.conductor.trials.trial"),
        ("srearena/conductor/unlisted.py", ""),
    ],
    "Inside the service package, modules import only from layers below": [
        ("srearena/service/products/planted.py", "import srearena.service.apps.base"),
        ("srearena/service/unlisted.py", ""),
    ],
    "Inside the embedded cluster, packages import only from layers below": [
        ("srearena/cluster/embedded/machine/planted.py", "import srearena.cluster.embedded.programs.base"),
        ("srearena/cluster/embedded/network/planted.py", "import srearena.cluster.embedded.kubelet.nodes"),
        ("srearena/cluster/embedded/unlisted/__init__.py", ""),
    ],
    "Only the factory and the interface for program models import the embedded cluster": [
        ("srearena/conductor/problems/planted.py", "import srearena.cluster.embedded.world"),
        ("srearena/observer/planted.py", "import srearena.cluster.embedded.world"),
        ("srearena/cluster/planted.py", "import srearena.cluster.embedded.world"),
        ("srearena/service/apps/fleetcast/programs/planted.py", "import srearena.cluster.embedded.world"),
    ],
    "Only programs of applications and products use the interface for program models": [
        ("srearena/generators/planted.py", "import srearena.cluster.program_models"),
    ],
    "Zero uses recordings, tools and the judge, never a cluster or an episode": [
        ("zero/planted.py", "import srearena.cluster.base"),
    ],
    "The judge uses no cluster, no episode and no tools": [
        ("itbench_evaluations/planted.py", "import srearena.conductor.errors"),
    ],
}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python files of all packages, and the contracts."""
    folder = tmp_path_factory.mktemp("code")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=_only_code)
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def _only_code(folder: str, names: list[str]) -> set[str]:
    return {n for n in names if n == "__pycache__" or not (n.endswith(".py") or (Path(folder) / n).is_dir())}


def _lint(folder: Path) -> str:
    """What import-linter prints about the code in a folder, as one line."""
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"]
    done = subprocess.run([*command, "--no-cache"], cwd=folder, capture_output=True, text=True, check=False)
    return re.sub(r"\s+", " ", done.stdout + done.stderr)


def test_every_contract_has_a_planted_import() -> None:
    assert {contract["name"] for contract in SETTINGS["contracts"]} == set(PLANTED)


def test_the_code_as_it_is_passes(copy: Path) -> None:
    assert f"Contracts: {len(PLANTED)} kept, 0 broken" in _lint(copy)


@pytest.mark.parametrize(
    ("name", "path", "line"), [(name, path, line) for name, plants in PLANTED.items() for path, line in plants]
)
def test_a_forbidden_import_is_refused(copy: Path, name: str, path: str, line: str) -> None:
    planted = copy / path
    planted.parent.mkdir(parents=True, exist_ok=True)
    planted.write_text(f"{line}\n")
    try:
        assert f"{name} BROKEN" in _lint(copy)
    finally:
        planted.unlink()
        if planted.name == "__init__.py":
            planted.parent.rmdir()


def test_every_package_of_the_repository_is_under_contract() -> None:
    found = {folder.parent.name for folder in ROOT.glob("*/__init__.py")} - {"tests", "benchmarks"}
    assert found == set(PACKAGES)
    layers = " ".join(SETTINGS["contracts"][0]["layers"])
    assert all(re.search(rf"\b{package}\b", layers) for package in PACKAGES)


ALLOWED_NAMES = {
    # The sandbox lists what is shown to and hidden from the agent inside it: folders, not imports.
    ("zero/sandbox.py", "sre_tools"),
    ("zero/sandbox.py", "itbench_evaluations"),
    ("zero/sandbox.py", "itbench_leaderboard"),
    # A program of the simulated machine's /proc.
    ("srearena/cluster/embedded/machine/files/procfs.py", "zero"),
    # The name of a command, which is found by entry point.
    ("srearena/cli.py", "zero"),
}


def _module_names(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            match = re.fullmatch(r"(\w+)((?:\.\w+)*)(?::\w+)?", node.value)
            if match is not None and match[1] in PACKAGES:
                yield match[1] + match[2]


def _rank(parts: list[str]) -> int:
    """The layer of a module, counted from the top; packages that the first contract does not list count as lowest."""
    layers: list[str] = SETTINGS["contracts"][0]["layers"]
    names = {".".join(parts[:1]), ".".join(parts[:2])}
    return next((n for n, layer in enumerate(layers) if names & set(layer.split(" | "))), len(layers))


def _looks_up(path: str, name: str) -> bool:
    source, target = path.removesuffix(".py").split("/"), name.split(".")
    return (source[0] != target[0] and target[0] != "srearena") or _rank(target) < _rank(source)


def test_no_import_of_another_package_hides_in_a_string() -> None:
    """Modules of other packages are reached by import or by entry point, so that the contracts see every edge."""
    hidden = []
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            relative = path.relative_to(ROOT).as_posix()
            for name in _module_names(path):
                exists = (ROOT / name.replace(".", "/")).is_dir() or (ROOT / f"{name.replace('.', '/')}.py").is_file()
                if exists and _looks_up(relative, name) and (relative, name) not in ALLOWED_NAMES:
                    hidden.append(f"{relative}: {name}")
    assert hidden == []
