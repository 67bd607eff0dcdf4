"""Fixtures of Zero's tests: a small recorded incident, real coding CLIs, and agents of a few lines."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from srearena import bubblewrap
from tests.snapshots import samples
from tests.surroundings import DOWNLOADS, real_environment

PACKAGES = {
    "codex": "@openai/codex",
    "claude": "@anthropic-ai/claude-code",
    "gemini": "@google/gemini-cli",
    "opencode": "opencode-ai",
}
INSTALL_TIMEOUT = 240


@dataclass(frozen=True)
class Finished:
    code: int
    stdout: str
    stderr: str


Zero = Callable[..., Finished]


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    """A recorded incident with its answer key."""
    return samples.write_raw(tmp_path / "data" / "Scenario-7")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return tmp_path / "work"


@pytest.fixture
def zero(workspace: Path) -> Zero:
    """Run the command as a user does; `after` are the arguments after `--`."""

    def run(*options: str, after: tuple[str, ...] = (), timeout: float = 120, **variables: str) -> Finished:
        command = [sys.executable, "-m", "zero", "-w", str(workspace), *options, "--", *after]
        environment = {**os.environ, **variables}
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=timeout, env=environment, check=False, cwd="/"
        )
        return Finished(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def agent(tmp_path: Path) -> Callable[[str], str]:
    """An agent of a few lines of Python: gives the template for `--command`."""

    def write(body: str) -> str:
        place = tmp_path / "agents"
        place.mkdir(exist_ok=True)
        script = place / f"agent{sum(1 for _ in place.iterdir())}.py"
        script.write_text("import json, os, sys, pathlib\n" + textwrap.dedent(body))
        return f"{sys.executable} {script} {{attempt}} {{output_file}} {{query}}"

    return write


@pytest.fixture
def needs_sandbox() -> None:
    reason = bubblewrap.unavailable_reason()
    if reason:
        pytest.skip(reason)


def _installed(name: str, *, fetch: bool) -> str | None:
    """The CLI on the path, or one installed by npm into a cache of the tests."""
    on_path = shutil.which(name)
    if on_path:
        return on_path
    place = DOWNLOADS / name
    program = place / "node_modules" / ".bin" / name
    npm = shutil.which("npm")
    if fetch and npm and not program.exists():
        place.mkdir(parents=True, exist_ok=True)
        quick = ("--no-audit", "--no-fund", "--fetch-retries=0", "--fetch-timeout=60000")
        with (place / "lock").open("w") as lock:  # tests may run in several processes
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                command = [npm, "install", "--prefix", str(place), *quick, PACKAGES[name]]
                env = real_environment()
                subprocess.run(
                    command, capture_output=True, timeout=INSTALL_TIMEOUT, check=not program.exists(), env=env
                )
            except (OSError, subprocess.SubprocessError):
                return None
    if not program.exists():
        return None
    try:
        subprocess.run([program, "--version"], capture_output=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return str(program)


@pytest.fixture(scope="session")
def coding_cli(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """The executable of a real coding CLI; the test is skipped where there is none."""
    found: dict[str, str | None] = {}

    def find(name: str) -> str:
        if name not in found:
            # After one failure of npm there is no network: do not wait for the next.
            found[name] = _installed(name, fetch=None not in found.values())
        program = found[name]
        if program is None:
            pytest.skip(f"{name} is neither installed nor to be had from npm here")
        return program

    return find
