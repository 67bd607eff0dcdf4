"""Running programs of this machine: one way to do it, with one kind of error.

Never through a shell, unless the caller starts one: words are words.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from srearena.service.errors import CommandFailed, ToolMissing


@dataclass(frozen=True, slots=True)
class Shell:
    """Where programs run, and with what in their environment."""

    directory: Path | None = None
    environment: Mapping[str, str] | None = None

    def run(
        self, program: str, *arguments: str, stdin: str | None = None, timeout: float = 300.0, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run to the end; CommandFailed with what it said where it fails, ToolMissing where it is not there."""
        try:
            done = subprocess.run(
                [program, *arguments],
                input=stdin,
                capture_output=True,
                text=True,
                timeout=timeout,
                check=False,
                cwd=self.directory,
                env={**os.environ, **(self.environment or {})},
            )
        except FileNotFoundError as problem:
            raise ToolMissing(f"{program} is not installed on this machine") from problem
        except subprocess.TimeoutExpired as problem:
            raise CommandFailed(f"{program} did not end within {timeout:g} s", 124) from problem
        if check and done.returncode:
            said = (done.stderr or done.stdout).strip() or f"it ended with status {done.returncode}"
            raise CommandFailed(f"{' '.join((program, *arguments))}: {said}", done.returncode, done.stdout, done.stderr)
        return done


def found_tool(name: str, advice: str) -> str:
    """The path of a program; ToolMissing with advice where it is not installed."""
    path = shutil.which(name)
    if path is None:
        raise ToolMissing(f"{name} is not installed: {advice}")
    return path
