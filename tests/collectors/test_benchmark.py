"""The benchmark keeps working: its smallest case."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_scraping_a_small_application_can_be_measured() -> None:
    command = [sys.executable, "-m", "benchmarks.collectors", "4"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("4 pods of an application, ")
    assert "Cadvisor" in done.stdout and "KubeState" in done.stdout
