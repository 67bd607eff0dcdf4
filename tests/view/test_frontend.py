"""The front end's sources: types, unit tests, and that the built files in the package are theirs."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

from srearena.view.export import ASSETS
from tests.surroundings import DOWNLOADS, ROOT, real_environment

SOURCE = ROOT / "frontend"
SITE = ROOT / "website"


@pytest.fixture(scope="module")
def frontend(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources with the packages of the lock file, which are kept between runs."""
    npm = shutil.which("npm")
    lock = (SOURCE / "package-lock.json").read_bytes()
    place = DOWNLOADS / f"frontend-{hashlib.sha256(lock).hexdigest()[:12]}"
    if npm and not (place / "complete").is_file():
        place.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copyfile(SOURCE / name, place / name)
        quick = ("--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=0", "--fetch-timeout=60000")
        command = [npm, "ci", *quick]
        done = subprocess.run(command, cwd=place, capture_output=True, timeout=240, check=False, env=real_environment())
        if done.returncode == 0:
            (place / "complete").touch()
    if not npm or not (place / "complete").is_file():
        pytest.skip("the packages of the front end are neither here nor to be had from npm")
    copy = tmp_path_factory.mktemp("frontend") / "frontend"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("node_modules"))
    (copy / "node_modules").symlink_to(place / "node_modules")
    return copy


def run(frontend: Path, *command: str) -> None:
    done = subprocess.run(
        command, cwd=frontend, capture_output=True, text=True, timeout=240, check=False, env=real_environment()
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_types_are_right(frontend: Path) -> None:
    run(frontend, "node_modules/.bin/tsc", "--noEmit")


def test_the_unit_tests_pass(frontend: Path) -> None:
    run(frontend, "node", "test.mjs")


def test_the_built_files_are_those_of_the_sources(frontend: Path, tmp_path: Path) -> None:
    run(frontend, "node", "build.mjs", str(tmp_path))
    packaged = {"view": ASSETS, "site/assets": SITE / "assets"}
    for folder, kept in packaged.items():
        assert sorted(path.name for path in (tmp_path / folder).iterdir()) == sorted(
            path.name for path in kept.iterdir()
        )
    pairs = [(tmp_path / folder / path.name, path) for folder, kept in packaged.items() for path in kept.iterdir()]
    for built, path in [*pairs, (tmp_path / "site" / "index.html", SITE / "index.html")]:
        assert built.read_bytes() == path.read_bytes(), f"{path} is not what frontend/ gives: run `npm run build` there"
