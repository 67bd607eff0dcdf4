"""The table of packages in docs/architecture.md is what the script makes of the code and the contracts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_table_of_packages_is_up_to_date() -> None:
    script = [sys.executable, str(ROOT / "scripts" / "architecture-table"), "--check"]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
