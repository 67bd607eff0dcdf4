"""Wait for what is about to be true: a file that comes, a process that goes."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path


def _soon(what: str, condition: Callable[[], bool], seconds: float = 30) -> None:
    for _ in range(int(seconds * 20)):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError(what)


def alive(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def comes(path: Path, seconds: float = 30) -> None:
    _soon(f"{path} never came", path.exists, seconds)


def goes(pid: int) -> None:
    _soon(f"process {pid} lives on", lambda: not alive(pid))
