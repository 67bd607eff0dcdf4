"""The list of tools that is read without loading them."""

from __future__ import annotations

import subprocess
import sys
import tomllib

from sre_tools.offline_incident_analysis import all_tools
from sre_tools.shell import MANIFEST, run


def test_the_manifest_lists_the_tools_in_order() -> None:
    listed = tomllib.loads(MANIFEST.read_text())["tools"]
    expected = [{"name": tool.name, "title": tool.title, "module": tool.module} for tool in all_tools().values()]
    assert listed == expected
    assert [line.split()[0] for line in run(["--list"]).splitlines()] == [tool["name"] for tool in listed]


def test_a_list_loads_no_tool() -> None:
    loaded = "print([name for name in sys.modules if '.tools.' in name])"
    code = f"import sys; from sre_tools.shell import run; run(['--list']); {loaded}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
