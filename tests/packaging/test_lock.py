"""uv.lock belongs to pyproject.toml and names the public package index only."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PUBLIC_HOSTS = {"pypi.org", "files.pythonhosted.org"}
OFFLINE = re.compile(r"dns error|error sending request|tcp connect error|Network connectivity is disabled")
# Read before a test moves HOME: uv's cache is the user's own, as pip's is for scripts/test.
SETTINGS = {name: value for name, value in os.environ.items() if not name.startswith("UV_") or name == "UV_CACHE_DIR"}


def test_the_lock_names_no_private_index() -> None:
    hosts = set(re.findall(r"https?://([^/\"]+)", (ROOT / "uv.lock").read_text()))
    assert hosts == PUBLIC_HOSTS


def test_the_lock_is_up_to_date(tmp_path: Path) -> None:
    uv = shutil.which("uv", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])))
    if uv is None:
        pytest.skip("uv is not installed")
    for name in ("pyproject.toml", "uv.lock"):
        shutil.copy(ROOT / name, tmp_path)
    done = subprocess.run(
        [uv, "--no-config", "lock", "--check"],
        cwd=tmp_path,
        env=SETTINGS,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    if done.returncode and OFFLINE.search(done.stderr):
        pytest.skip("the package index is not reachable")
    assert done.returncode == 0, f"run `uv lock`: {done.stderr}"
