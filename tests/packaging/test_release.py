"""A release is built, installed into an empty environment and used there, as a stranger would.

The wheel is built from the sdist, so that both are proven complete.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())
VERSION: str = SETTINGS["project"]["version"]
PACKAGES: list[str] = SETTINGS["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
IGNORED = (ROOT / ".gitignore").read_text().split()
OFFLINE = re.compile(r"NewConnectionError|NameResolutionError|Temporary failure in name resolution|ConnectTimeout")
# Read before a test moves HOME: pip's cache is the user's own, as it is for scripts/test. PYTHONPATH and the like go.
INSTALLER_SETTINGS = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def run_installer(*command: str | Path, cwd: Path) -> None:
    """Run a command that reads from the package index; skip where the index cannot be reached."""
    done = subprocess.run(
        command, cwd=cwd, env=INSTALLER_SETTINGS, capture_output=True, text=True, timeout=400, check=False
    )
    output = done.stdout + done.stderr
    if done.returncode and OFFLINE.search(output):
        pytest.skip("the package index is not reachable")
    assert done.returncode == 0, output


def copy_source(target: Path) -> None:
    """Copy what belongs to the source, as .gitignore has it."""
    by_name = shutil.ignore_patterns(".git", *(line.rstrip("/") for line in IGNORED))
    by_path = {ROOT / line.rstrip("/") for line in IGNORED}

    def ignored(directory: str, names: list[str]) -> set[str]:
        return by_name(directory, names) | {name for name in names if Path(directory, name) in by_path}

    shutil.copytree(ROOT, target, ignore=ignored)


def files_of(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}


def check_contents(source: Path, sdist: Path, wheel: Path) -> None:
    """Check that both archives hold every file of the source that they should, and no other."""
    tree = files_of(source)
    with tarfile.open(sdist) as archive:
        in_sdist = {member.name.split("/", 1)[1] for member in archive if member.isfile()}
    assert in_sdist == tree | {"PKG-INFO"}
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = {name for name in archive.namelist() if not name.startswith(f"srearena-{VERSION}.dist-info/")}
    assert in_wheel == {name for name in tree if name.split("/")[0] in PACKAGES}


@pytest.mark.timeout(1200)
def test_a_release_runs_in_an_empty_environment(tmp_path: Path) -> None:
    source = tmp_path / "source"
    copy_source(source)
    dist = tmp_path / "dist"
    run_installer(sys.executable, "-m", "build", "--outdir", dist, source, cwd=tmp_path)
    sdist, wheel = dist / f"srearena-{VERSION}.tar.gz", dist / f"srearena-{VERSION}-py3-none-any.whl"
    assert files_of(dist) == {sdist.name, wheel.name}
    check_contents(source, sdist, wheel)

    environment = tmp_path / "empty"
    venv.create(environment, with_pip=True)
    programs = environment / "bin"
    run_installer(programs / "python", "-m", "pip", "install", "--quiet", wheel, cwd=tmp_path)
    variables = {
        "PATH": str(programs),
        "HOME": str(tmp_path),
        "SREARENA_STATE_DIR": str(tmp_path / "state"),
        "SREARENA_RESULTS": str(tmp_path / "results"),
    }

    def output_of(*command: str) -> str:
        done = subprocess.run(
            [programs / command[0], *command[1:]],
            cwd=tmp_path,
            env=variables,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    output_of("python", "-m", "pip", "check")
    assert output_of("srearena", "--version") == f"srearena, version {VERSION}\n"
    assert "wrong_service_selector_hotel_reservation" in output_of("srearena", "problems")
    assert "1 trials: 1 pass" in output_of("srearena", "run", "--agent", "rules", "scale_pod_zero_social_net")
    for command in ("itbench-eval", "zero", "sre-tools", "itbench-leaderboard"):
        assert "sage: " in output_of(command, "--help")
    assert output_of("python", "-m", "zero", "--help").startswith("Usage: ")
