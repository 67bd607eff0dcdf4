"""The installation that the original documents describe: `uv venv`, `uv sync`, the extra `dev`, the formatters."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.test_lock import OFFLINE, ROOT, SETTINGS

_NOT_COPIED = shutil.ignore_patterns(
    ".git", ".venv*", ".*_cache", ".hypothesis", "__pycache__", "node_modules", "tests"
)


def test_the_documents_installation_works(tmp_path: Path) -> None:
    uv = shutil.which("uv", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])))
    if uv is None:
        pytest.skip("uv is not installed")
    place = tmp_path / "SREArena"
    shutil.copytree(ROOT, place, ignore=_NOT_COPIED, symlinks=True)
    clean = {name: value for name, value in SETTINGS.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME")}
    for line in (
        f"uv venv -p {sys.executable}",
        "uv sync",
        "uv run srearena --version",
        "uv sync --extra dev",
        "uv run black zero",
        "uv run isort zero",
    ):
        words = [uv, "--no-config", *line.split()[1:]]
        done = subprocess.run(words, cwd=place, env=clean, capture_output=True, text=True, timeout=600, check=False)
        if done.returncode and OFFLINE.search(done.stderr):
            pytest.skip("the package index is not reachable")
        assert done.returncode == 0, f"{line}: {done.stderr}"
