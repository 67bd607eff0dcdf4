"""Without the extra `tools` other parts work, and commands that need it print one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.snapshots import samples


@pytest.mark.parametrize(
    ("blocked", "module", "words", "says"),
    [
        ("duckdb", "srearena", ["snapshot", "info", "Scenario-7"], "needs DuckDB"),
        ("duckdb", "sre_tools.shell", ["alert_summary", "--snapshot", "Scenario-7"], "needs DuckDB"),
        (
            "mcp_types",
            "sre_tools.offline_incident_analysis",
            ["--snapshot", "Scenario-7"],
            "the server needs mcp_types",
        ),
    ],
)
def test_a_missing_library_is_one_line(tmp_path: Path, blocked: str, module: str, words: list[str], says: str) -> None:
    samples.write_raw(tmp_path / "Scenario-7")
    code = (
        f"import runpy, sys; sys.modules[{blocked!r}] = None; sys.argv[1:] = {words!r}; "
        f"runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert answer.returncode == 1
    assert answer.stderr.startswith("Error: ") and answer.stderr.count("\n") == 1, answer.stderr
    assert says in answer.stderr and "srearena[tools]" in answer.stderr
