"""The documentation builds as a site without a warning, is complete, and loads nothing from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOADED = re.compile(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=[\"']?((?:https?:)?//[^\"' >]+)")


def build(target: Path) -> None:
    # A proxy that refuses connections: whatever would be fetched fails.
    offline = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", target],
        cwd=ROOT,
        env={**os.environ, **offline, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.timeout(300)
def test_the_site_is_complete_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    site = tmp_path / "site"
    build(site)
    for page in (ROOT / "docs").glob("*.md"):
        assert (site / ("." if page.stem == "index" else page.stem) / "index.html").exists(), page.name
    commands = (site / "reference" / "commands" / "index.html").read_text()
    for heading in ("srearena-run", "srearena-cluster-advance", "zero", "itbench-eval-compare", "sre-tools"):
        assert f'id="{heading}"' in commands
    interface = (site / "reference" / "python" / "index.html").read_text()
    for name in (
        "srearena.conductor.Conductor.register_agent",
        "srearena.conductor.problems.base.Problem.inject_fault",
    ):
        assert f'id="{name}"' in interface
    for page in site.rglob("*.html"):
        assert not LOADED.findall(page.read_text()), page
