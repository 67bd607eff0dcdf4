"""A release is built, installed into an empty environment and used there, as a stranger would.

The commands are those of the Dockerfile, so that its steps are proven on machines without Docker. The wheel is built
from the sdist, so that both are proven complete.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from tests.packaging.dockerfile import arguments_of

ROOT = Path(__file__).parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())
VERSION: str = SETTINGS["project"]["version"]
PACKAGES: list[str] = SETTINGS["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
ADDED: dict[str, str] = SETTINGS["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
IGNORED = (ROOT / ".gitignore").read_text().split()
OFFLINE = re.compile(r"NewConnectionError|NameResolutionError|Temporary failure in name resolution|ConnectTimeout")
# Read before a test moves HOME: pip's cache is the user's own, as it is for scripts/test. PYTHONPATH and the like go.
USER_SETTINGS = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def copy_source(target: Path) -> None:
    """Copy what belongs to the source, as .gitignore has it."""
    by_name = shutil.ignore_patterns(".git", *(line.rstrip("/") for line in IGNORED))
    by_path = {ROOT / line.rstrip("/") for line in IGNORED}

    def ignored(directory: str, names: list[str]) -> set[str]:
        return by_name(directory, names) | {name for name in names if Path(directory, name) in by_path}

    shutil.copytree(ROOT, target, ignore=ignored)


def run_build_stage(directory: Path) -> None:
    """Run the Dockerfile's build stage with `directory` as its root; skip where the package index is not reachable."""
    base_image = directory / "python"
    venv.create(base_image, with_pip=True)
    variables = {**USER_SETTINGS, "PATH": f"{base_image / 'bin'}:{USER_SETTINGS['PATH']}", "EXTRAS": ""}
    for command in arguments_of("build", "RUN"):
        done = subprocess.run(
            ["sh", "-c", re.sub(r"(?<![\w.])/(source|dist|opt)\b", rf"{directory}/\1", command)],
            cwd=directory,
            env=variables,
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )
        output = done.stdout + done.stderr
        if done.returncode and OFFLINE.search(output):
            pytest.skip("the package index is not reachable")
        assert done.returncode == 0, output


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
    added = {
        name.replace(old, new, 1) for name in tree for old, new in ADDED.items() if f"{name}/".startswith(f"{old}/")
    }
    assert in_wheel == {name for name in tree if name.split("/")[0] in PACKAGES} | added


@pytest.mark.timeout(1200)
def test_a_release_runs_in_an_empty_environment(tmp_path: Path) -> None:
    copy_source(tmp_path / "source")
    run_build_stage(tmp_path)
    dist = tmp_path / "dist"
    sdist, wheel = dist / f"srearena-{VERSION}.tar.gz", dist / f"srearena-{VERSION}-py3-none-any.whl"
    assert files_of(dist) == {sdist.name, wheel.name}
    check_contents(tmp_path / "source", sdist, wheel)

    programs = tmp_path / "opt" / "srearena" / "bin"
    home = tmp_path / "home"
    home.mkdir()
    variables = {
        "PATH": str(programs),
        "HOME": str(home),
        "SREARENA_STATE_DIR": str(tmp_path / "state"),
        "SREARENA_RESULTS": str(tmp_path / "results"),
    }

    def output_of(*command: str) -> str:
        done = subprocess.run(
            [programs / command[0], *command[1:]],
            cwd=home,
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
    assert "1 trials: 1 pass" in output_of(
        "srearena", "run", "--agent", "rules", "--seed", "0", "--fixed", "scale_pod_zero_social_net"
    )
    for command in ("itbench-eval", "zero", "sre-tools", "itbench-leaderboard"):
        assert "sage: " in output_of(command, "--help")
    assert output_of("python", "-m", "zero", "--help").startswith("Usage: ")
