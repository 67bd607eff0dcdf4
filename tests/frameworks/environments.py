"""Python interpreters in which an extra is installed: this one, or one that scripts/install-everything has made."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from subprocess import PIPE, STDOUT, CompletedProcess, run

import pytest

from tests.docs.test_documents import BLOCK, ROOT

MOST_LINES = 40


def python_with(extra: str, module: str) -> str:
    """The interpreter with an extra whose package is `module`; a skip where there is none."""
    if find_spec(module) is not None:
        return sys.executable
    python = Path(os.environ.get("SREARENA_TEST_FRAMEWORKS", "/nonexistent"), extra, "bin", "python")
    if not python.is_file():
        pytest.skip(f"the extra {extra} is not installed")
    return str(python)


def environment_variables(**more: str) -> dict[str, str]:
    """Those of this process, with the code under test."""
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


def example_of(page: str) -> str:
    """The one example in Python on a page."""
    (code,) = [text for _, kind, text in BLOCK.findall(Path(ROOT, "docs", page).read_text()) if kind == "python"]
    assert len(code.splitlines()) < MOST_LINES
    return str(code)


def run_code(python: str, code: str, folder: Path, **variables: str) -> CompletedProcess[str]:
    """Run code in a folder with one of these interpreters; it must succeed."""
    done = run(
        [python, "-c", code],
        cwd=folder,
        env=environment_variables(**variables),
        stdout=PIPE,
        stderr=STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done
