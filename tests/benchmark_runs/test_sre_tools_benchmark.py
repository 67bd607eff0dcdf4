"""The benchmark of the tools keeps working, and its incident is what it claims to be."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "sre_tools.py"


def test_the_tools_can_be_measured(tmp_path: Path) -> None:
    words = [sys.executable, str(SCRIPT), "--scale", "0.01", "--keep", str(tmp_path), "--limit-mb", "2000", "--json"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    for size in ("small", "large"):
        assert len(figures[size]["tools"]) == 14
        assert figures[size]["agents_calls"] == 140
        assert figures[size]["first_touch_s"] > 0
    large = tmp_path / "Scenario-10"
    assert (large / "otel_traces_raw.tsv").read_text().count("\n") == 3001
    assert (large / "otel_logs_raw.tsv").read_text().count("\n") == 2001
