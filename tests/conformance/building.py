"""Programs of others, compiled from their published Go modules, once, into a cache."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from srearena.errors import SreArenaError


class NotBuilt(SreArenaError):
    """A program cannot be compiled."""


def compiled(suite: Path, cache: Path, program: str, package: str, *, command: Sequence[str], flags: str = "") -> Path:
    """The program in the cache; compiled with the module files of `suite` where it is missing."""
    found = cache / program
    if found.exists():
        return found
    if shutil.which("go") is None:
        raise NotBuilt("go is not installed: programs are compiled from their published modules")
    source = cache / "suite"
    shutil.copytree(suite, source, dirs_exist_ok=True)
    unfinished = found.with_suffix(".unfinished")
    words = ["go", *command, "-ldflags", f"-s -w {flags}".strip(), "-o", str(unfinished), package]
    environment = {**os.environ, "GOFLAGS": "-mod=mod -buildvcs=false"}
    if subprocess.run(words, cwd=source, env=environment).returncode:
        raise NotBuilt(f"{package} could not be compiled; see above")
    unfinished.rename(found)
    return found


def module_folder(cache: Path, module: str) -> Path:
    """Where Go keeps the files of a module that was downloaded."""
    words = ["go", "list", "-m", "-f", "{{.Dir}}", module]
    environment = {**os.environ, "GOFLAGS": "-mod=mod"}
    found = subprocess.run(words, cwd=cache / "suite", env=environment, capture_output=True, text=True)
    if found.returncode:
        raise NotBuilt(found.stderr.strip())
    return Path(found.stdout.strip())
