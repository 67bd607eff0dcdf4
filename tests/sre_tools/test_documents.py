"""The documents: their commands and code run, their tools and flags exist."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from sre_tools.offline_incident_analysis import all_tools
from tests.snapshots import samples

DOCS = Path(__file__).parents[2] / "docs"
TEXTS = {name: (DOCS / name).read_text(encoding="utf-8") for name in ("snapshots.md", "sre-tools.md")}
MODULES = {"srearena": "srearena", "sre-tools": "sre_tools.shell"}
COMMANDS = [line for text in TEXTS.values() for line in re.findall(r"^\$ (.+)$", text, re.MULTILINE)]
CODE = [code for text in TEXTS.values() for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL)]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    samples.write_raw(tmp_path / "Scenario-7")
    monkeypatch.setenv("SREARENA_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
def test_the_commands_run(place: Path, command: str) -> None:
    program, *rest = shlex.split(command)
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": root}
    answer = subprocess.run(
        [sys.executable, "-m", MODULES[program], *rest],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=place,
        env=environment,
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout


@pytest.mark.parametrize("code", CODE)
def test_the_examples_run(place: Path, code: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(code, "docs", "exec"), {})
    assert capsys.readouterr().out


def test_the_table_lists_exactly_the_tools() -> None:
    assert set(re.findall(r"^\| `(\w+)` \|", TEXTS["sre-tools.md"], re.MULTILINE)) == set(all_tools())


def test_every_flag_of_the_server_exists() -> None:
    module = "sre_tools.offline_incident_analysis"
    shown = subprocess.run([sys.executable, "-m", module, "--help"], capture_output=True, text=True, timeout=60).stdout
    for flag in ("--snapshot", "--http", "--host", "--port", "--output-dir"):
        assert flag in shown and flag in TEXTS["sre-tools.md"]
