"""The benchmark keeps working: its smallest case, with tiny sizes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "cluster.py"


def test_an_idle_cluster_can_be_measured() -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--only", "idle", "--size", "3", "--json"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    figures = {figure["what"]: figure for figure in json.loads(done.stdout)["figures"]}
    assert {figure["case"] for figure in figures.values()} == {"idle"}
    assert figures["a virtual hour, CPU"]["value"] > 0
    assert figures["a virtual hour, wall"]["size"] == 3


def test_a_case_that_does_not_exist_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--only", "nothing"], capture_output=True, text=True, timeout=60
    )

    assert done.returncode == 2
    assert "invalid choice: 'nothing'" in done.stderr
