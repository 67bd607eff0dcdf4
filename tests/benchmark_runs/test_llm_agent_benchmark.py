"""The benchmark of the LLM agent keeps working: a few steps on one wire."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "llm_agent.py"


def test_steps_can_be_measured() -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--steps", "4", "--characters", "500", "--wire", "messages", "--json"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert (figures["wire"], figures["steps"]) == ("messages", 4)
    assert 0 < figures["median"] <= figures["first"]
