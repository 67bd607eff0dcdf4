"""What the documents show is run as a reader would: shell blocks of a page in one fresh shell, each Python block alone.

The reader has a clone with its virtual environment, a home folder, and no variables of ours. A block that cannot be run
as it stands says so, and why, in a comment before it: `<!-- not run: reason -->`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"(<!-- not run: .+? -->\n)?```(bash|python)\n(.*?)```", re.DOTALL)
# What the README installs into is what the tests run in.
INSTALLATION = "python3 -m venv .venv && .venv/bin/pip install --quiet . && "
README = ROOT / "README.md"


def blocks(page: Path, language: str) -> Iterator[str]:
    for skipped, kind, text in BLOCK.findall(page.read_text()):
        if kind == language and not skipped:
            yield text.replace(INSTALLATION, "")


def make_clone(place: Path) -> Path:
    """A clone as a reader has it: files of the repository, its own results, and the environment in `.venv`."""
    place.mkdir()
    for path in ROOT.iterdir():
        if not path.name.startswith((".", "data")):
            (place / path.name).symlink_to(path)
    (place / ".venv").symlink_to(sys.prefix)
    return place


def fresh_environment(home: Path, *, activated: bool) -> dict[str, str]:
    """The variables of a new shell; `activated` after `source .venv/bin/activate`, or what the README has for it."""
    home.mkdir(exist_ok=True)
    programs = [str(Path(sys.executable).parent)] if activated else []
    path = [one for one in os.environ["PATH"].split(os.pathsep) if one not in programs and ".venv" not in one]
    return {"HOME": str(home), "LANG": "C.UTF-8", "PATH": os.pathsep.join([*programs, *path]), "TERM": "xterm"}


# The README runs five problems: a minute on a quiet machine, many on a busy one.
@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", [page for page in PAGES if any(blocks(page, "bash"))], ids=lambda page: page.name)
def test_commands_work_as_shown(page: Path, tmp_path: Path) -> None:
    script = "\n".join(blocks(page, "bash"))
    if "kubectl" in script and shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    # The README itself sets PATH; who reads another page has the environment activated.
    environment = fresh_environment(tmp_path / "home", activated=page != README)
    try:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-x", "-c", script],
            cwd=make_clone(tmp_path / "SREArena"),
            env=environment,
            capture_output=True,
            text=True,
            timeout=540,
            check=False,
        )
    finally:
        down = [sys.executable, "-m", "srearena", "cluster", "down", "--all"]
        subprocess.run(down, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize(
    ("page", "code"),
    [
        pytest.param(page, code, id=f"{page.name}-{n}")
        for page in PAGES
        for n, code in enumerate(blocks(page, "python"))
    ],
)
def test_python_works_as_shown(page: Path, code: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=make_clone(tmp_path / "SREArena"),
        env=fresh_environment(tmp_path / "home", activated=True),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
