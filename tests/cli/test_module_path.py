"""Python files in the working directory are never imported by our programs, however they are started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_NAMES = (
    *("yaml", "uvicorn", "json", "sitecustomize", "usercustomize", "click", "orjson", "httpx", "websockets", "numpy"),
    *("random", "socket", "subprocess", "tempfile", "asyncio", "multiprocessing", "argparse", "typing", "dataclasses"),
    *("duckdb", "mcp", "pydantic", "re2", "msgspec", "urllib3", "ssl", "logging", "secrets", "hashlib", "inspect"),
)
_MARKER = """
import os
with open({marker!r}, "a") as file:
    file.write(__name__ + "\\n")
os._exit(99)
"""
_SCRIPTS = Path(sys.executable).parent


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A working directory with a file for every name that our programs import."""
    folder = tmp_path / "work"
    folder.mkdir()
    for name in _NAMES:
        (folder / f"{name}.py").write_text(_MARKER.format(marker=str(tmp_path / "marker")))
    return folder


def _run(folder: Path, *command: str, input: str = "") -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "SREARENA_RESULTS": str(folder.parent / "results")}
    variables.pop("PYTHONSAFEPATH", None)
    done = subprocess.run(
        command, cwd=folder, env=variables, input=input, capture_output=True, text=True, check=False, timeout=200
    )
    assert not (folder.parent / "marker").exists(), (folder.parent / "marker").read_text() + done.stderr
    return done


@pytest.mark.parametrize("script", ["srearena", "zero", "sre-tools", "itbench-eval", "itbench-leaderboard"])
def test_console_scripts(folder: Path, script: str) -> None:
    assert _run(folder, str(_SCRIPTS / script), "--help").returncode == 0


@pytest.mark.parametrize(
    "module",
    [
        *("srearena", "zero", "sre_tools.live", "sre_tools.offline_incident_analysis", "itbench_evaluations"),
        *("itbench_leaderboard",),
    ],
)
def test_modules_run_as_programs(folder: Path, module: str) -> None:
    assert _run(folder, sys.executable, "-m", module, "--help").returncode == 0


@pytest.mark.timeout(300)
def test_the_processes_of_a_run(folder: Path) -> None:
    words = ("run", "noop_hotel_reservation", "--stages", "detection", "--seed", "1")
    done = _run(folder, sys.executable, "-m", "srearena", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 pass" in done.stdout


@pytest.mark.timeout(300)
def test_the_processes_of_a_served_episode(folder: Path) -> None:
    done = _run(folder, str(_SCRIPTS / "srearena"), "serve", "noop_hotel_reservation", "--max-seconds", "1", "--json")
    assert '"outcome": "timeout"' in done.stdout, done.stdout + done.stderr


def test_the_server_of_forked_processes(folder: Path) -> None:
    program = folder.parent / "program.py"
    program.write_text(
        "from srearena.conductor.trials.processes import in_processes\n"
        "if __name__ == '__main__':\n"
        "    print(list(in_processes(abs, [-1], 1)))\n"
    )
    done = _run(folder, sys.executable, str(program))
    assert done.stdout.strip() == "[1]", done.stderr
