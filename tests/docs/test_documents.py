"""What the documents show is run: every shell block of a page in one shell, every Python block by itself.

A block that cannot be run as it stands says so, and why, in a comment before it: `<!-- not run: reason -->`.
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
ALREADY_SET_UP = "python3 -m venv .venv && .venv/bin/pip install --quiet . && .venv/bin/srearena"


def blocks(page: Path, language: str) -> Iterator[str]:
    for skipped, kind, text in BLOCK.findall(page.read_text()):
        if kind == language and not skipped:
            yield text.replace(ALREADY_SET_UP, "srearena")


# The README runs five problems: a minute on a quiet machine, many on a busy one.
@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", [page for page in PAGES if any(blocks(page, "bash"))], ids=lambda page: page.name)
def test_commands_work_as_shown(page: Path, tmp_path: Path) -> None:
    script = "\n".join(blocks(page, "bash"))
    if "kubectl" in script and shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "SREARENA_STATE_DIR": str(tmp_path / "state"),
        "SREARENA_RESULTS": str(tmp_path / "results"),
    }
    try:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-x", "-c", script],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=540,
            check=False,
        )
    finally:
        subprocess.run(["srearena", "cluster", "down", "--all"], env=environment, capture_output=True, check=False)
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
        cwd=ROOT,
        env={**os.environ, "HOME": str(tmp_path)},
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
