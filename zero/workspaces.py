"""The agent's workspace: its lock, the files Zero writes, and the archive of earlier runs.

Zero writes here from outside the sandbox, after an agent could create anything. So Zero never follows a link, opens a
pipe or writes into a directory that an agent created in place of a file.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from zero.adapters.base import Adapter, Plan
from zero.errors import RequestError
from zero.evidence import remove
from zero.request import Request

TRACES = "traces"
PRIVATE = ".zero"  # for Zero only: lock, files of earlier runs
EVIDENCE_COPIES = "evidence"


def make_workspace(request: Request) -> Path:
    """Create the directory of a request."""
    directory = request.workspace.expanduser().resolve()
    if directory.exists() and not directory.is_dir():
        raise RequestError(
            f"{directory} is not a directory: --workspace needs a directory, which is created if missing"
        )
    directory.mkdir(parents=True, exist_ok=True)
    (directory / PRIVATE).mkdir(exist_ok=True)
    return directory


@contextmanager
def locked(workspace: Path) -> Iterator[None]:
    """Lock a workspace, so that it has one run at a time."""
    with (workspace / PRIVATE / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as problem:
            raise RequestError(f"another run uses {workspace}: give each run its own --workspace") from problem
        yield


def write_files(adapter: Adapter, plan: Plan) -> None:
    """Write the prompt and the CLI's configuration for an attempt."""
    names = dict.fromkeys(("AGENTS.md", adapter.instructions_file))
    texts = {**adapter.files(plan), **{name: plan.instructions for name in names if plan.instructions}}
    for name, text in texts.items():
        write_file(plan.workspace, name, text)


def write_file(workspace: Path, name: str, text: str) -> None:
    """Write a file, and replace whatever an agent created at its path: a link, a pipe, a directory."""
    path = workspace / name
    for place in (*reversed([each for each in path.parents if each.is_relative_to(workspace)][:-1]), path):
        if place.is_symlink() or (place.exists() and place.is_dir() == (place == path)):
            remove(place)
        if place != path:
            place.mkdir(exist_ok=True)
    descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=".zero-")
    os.close(descriptor)
    Path(draft).write_text(text, encoding="utf-8")
    Path(draft).chmod(0o644)
    Path(draft).replace(path)


def make_repository(workspace: Path) -> None:
    """Create a git repository, so that no CLI takes a parent directory for the project."""
    if not (workspace / ".git").exists() and shutil.which("git"):
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(["git", "init", "-q"], cwd=workspace, capture_output=True, timeout=20, check=False)


def archive_traces(workspace: Path) -> None:
    """Move the record of an earlier run to the private directory."""
    traces = workspace / TRACES
    if traces.is_dir() and any(traces.iterdir()):
        folder = workspace / PRIVATE / "earlier"
        folder.mkdir(parents=True, exist_ok=True)
        traces.rename(folder / f"traces-{sum(1 for _ in folder.iterdir()) + 1}")
    traces.mkdir(exist_ok=True)
