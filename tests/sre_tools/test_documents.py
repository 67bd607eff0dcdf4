"""The page of the tools lists them and the server's flags; `tests/docs` runs its commands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from sre_tools.offline_incident_analysis import all_tools

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "sre-tools.md").read_text(encoding="utf-8")


def test_the_table_lists_exactly_the_tools() -> None:
    assert set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)) == set(all_tools())


def test_every_flag_of_the_server_exists() -> None:
    module = "sre_tools.offline_incident_analysis"
    shown = subprocess.run([sys.executable, "-m", module, "--help"], capture_output=True, text=True, timeout=60).stdout
    for flag in ("--snapshot", "--http", "--host", "--port", "--output-dir"):
        assert flag in shown and flag in PAGE
