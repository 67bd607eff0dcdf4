"""The agent's directory: who owns it, what is written into it, what an earlier run left.

Zero writes here from outside the sandbox, after an agent could do here what it liked. So nothing of the agent's making
is ever followed: not a link, not a pipe, not a directory in place of a file.
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
PRIVATE = ".zero"  # the harness's own: locks, what earlier runs left
COPIES = "evidence"


def make_workspace(request: Request) -> Path:
    place = request.workspace.expanduser().resolve()
    if place.exists() and not place.is_dir():
        raise RequestError(f"{place} is not a directory: --workspace takes one, which is made if need be")
    place.mkdir(parents=True, exist_ok=True)
    (place / PRIVATE).mkdir(exist_ok=True)
    return place


@contextmanager
def owned(workspace: Path) -> Iterator[None]:
    """One run at a time in a workspace."""
    with (workspace / PRIVATE / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as problem:
            raise RequestError(f"another run is at work in {workspace}: give each its own --workspace") from problem
        yield


def write_files(adapter: Adapter, plan: Plan) -> None:
    """The prompt and the CLI's configuration, as they must be at the start of an attempt."""
    names = dict.fromkeys(("AGENTS.md", adapter.instructions_file))
    texts = {**adapter.files(plan), **{name: plan.instructions for name in names if plan.instructions}}
    for name, text in texts.items():
        put(plan.workspace, name, text)


def put(workspace: Path, name: str, text: str) -> None:
    """Write a file of ours, whatever an agent has put in its place: a link out of its room, a pipe, a directory."""
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
    """A repository of its own, so that no CLI takes a directory above for the project."""
    if not (workspace / ".git").exists() and shutil.which("git"):
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(["git", "init", "-q"], cwd=workspace, capture_output=True, timeout=20, check=False)


def archive(workspace: Path) -> None:
    """What an earlier run recorded goes out of the way, and stays."""
    traces = workspace / TRACES
    if traces.is_dir() and any(traces.iterdir()):
        shelf = workspace / PRIVATE / "earlier"
        shelf.mkdir(parents=True, exist_ok=True)
        traces.rename(shelf / f"traces-{sum(1 for _ in shelf.iterdir()) + 1}")
    traces.mkdir(exist_ok=True)
