"""Running local programs, with one kind of error for all of them.

Arguments are passed as they are, never through a shell, unless the caller starts one.
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
    """The working directory and extra environment variables of programs."""

    directory: Path | None = None
    environment: Mapping[str, str] | None = None

    def run(
        self, program: str, *arguments: str, stdin: str | None = None, timeout: float = 300.0, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run a program to its end; CommandFailed with its output where it fails, ToolMissing where it is missing."""
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
            text = (done.stderr or done.stdout).strip() or f"it ended with status {done.returncode}"
            raise CommandFailed(f"{' '.join((program, *arguments))}: {text}", done.returncode, done.stdout, done.stderr)
        return done


def require_tool(name: str, advice: str) -> str:
    """Return the path of a program; ToolMissing with advice where it is not installed."""
    path = shutil.which(name)
    if path is None:
        raise ToolMissing(f"{name} is not installed: {advice}")
    return path
