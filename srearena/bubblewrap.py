"""Bubblewrap: whether it works on this machine, and the mounts that every sandbox of ours has.

A sandbox starts empty. System programs and settings are read-only, `/tmp` is private, and `/proc` shows only the
processes inside; what else is visible is added by the caller.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

SYSTEM_DIRECTORIES = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
SYSTEM_FILES = (
    *("/etc/alternatives", "/etc/ca-certificates", "/etc/group", "/etc/hosts", "/etc/ld.so.cache", "/etc/ld.so.conf"),
    *(
        "/etc/ld.so.conf.d",
        "/etc/localtime",
        "/etc/nsswitch.conf",
        "/etc/passwd",
        "/etc/pki",
        "/etc/ssl",
        "/etc/timezone",
    ),
)
_PROBE = (
    "--unshare-all",
    "--unshare-user",
    "--cap-drop",
    "ALL",
    "--ro-bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--proc",
    "/proc",
)


def unavailable_reason() -> str | None:
    """Why bubblewrap cannot be used on this machine; None if it can."""
    program = shutil.which("bwrap")
    if program is None:
        return "bubblewrap is not installed (Debian: apt install bubblewrap)"
    try:
        completed = subprocess.run([program, *_PROBE, "true"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired) as problem:
        return f"bubblewrap does not work on this machine: {problem}"
    if completed.returncode != 0:
        error = (completed.stderr.strip().splitlines() or ["no error message"])[-1]
        return f"bubblewrap does not work on this machine: {error}"
    return None


def system_mounts() -> Iterator[str]:
    """Arguments for an empty root with the system's programs."""
    yield from ("--tmpfs", "/tmp", "--tmpfs", "/run", "--dir", "/var/tmp", "--proc", "/proc", "--dev", "/dev")
    for place in SYSTEM_DIRECTORIES:
        path = Path(place)
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), place)
        elif path.exists():
            yield from ("--ro-bind", place, place)
    for place in SYSTEM_FILES:
        if Path(place).exists():
            yield from ("--ro-bind", place, place)


def read_only(paths: Iterable[Path]) -> Iterator[str]:
    """Arguments that show paths at their own place; what lies in /usr is there already."""
    for path in paths:
        if not path.is_relative_to("/usr"):
            yield from ("--ro-bind", str(path), str(path))


def interpreter_paths() -> list[Path]:
    """The installation of this Python, and its virtual environment."""
    return [Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve().parents[1]]


def outermost(paths: Iterable[Path]) -> list[Path]:
    """The existing paths that do not lie inside another one."""
    existing = sorted({path for path in paths if path.exists()}, key=lambda path: len(path.parts))
    kept: list[Path] = []
    for path in existing:
        if not any(path.is_relative_to(other) for other in kept):
            kept.append(path)
    return kept
