"""Agents that pry, misbehave and break, for tests of their process. Imported there, so this file imports no problem."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any


def _attempt(read: Callable[[], Any]) -> str:
    try:
        return str(read())
    except OSError as problem:
        return f"{type(problem).__name__}"


def _files(root: str) -> Iterator[str]:
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in ("srearena", "site-packages", "__pycache__", "tests")]
        yield from (f"{folder}/{name}" for name in [*folders, *names])


class Spy:
    """Looks for the answer in memory, processes and files, and notes what it finds."""

    def __init__(self, *folders: str, **more: str) -> None:
        self._folders = [*folders, *more.values()]
        self._note: Callable[..., None] = lambda what, **facts: None

    def keep_record(self, note: Callable[..., None]) -> None:
        self._note = note

    def connect(self, kubeconfig: Path) -> None:
        self._note("spy", kind="kubeconfig", found=kubeconfig.read_text()[:4000])

    async def get_action(self, state: str) -> str:
        modules = [name for name in sys.modules if name.startswith(("srearena.conductor.problems", "srearena.gen"))]
        objects = [type(one).__module__ for one in gc.get_objects() if "problems" in type(one).__module__]
        self._note("spy", kind="memory", found=" ".join([*modules, *objects]))
        self._note("spy", kind="environment", found=" ".join(f"{name}={value}" for name, value in os.environ.items()))
        for process in ["self", *(entry for entry in os.listdir("/proc") if entry.isdigit())]:
            place = Path("/proc") / process
            seen = [
                _attempt((place / "cmdline").read_bytes),
                _attempt((place / "environ").read_bytes),
                _attempt(lambda place=place: [os.readlink(link) for link in (place / "fd").iterdir()]),  # type: ignore[misc]
            ]
            self._note("spy", kind="process", pid=process, found=" ".join(seen))
        for root in ("/tmp", "/root", "/home", *self._folders) if self._folders else ():
            self._note("spy", kind="files", root=root, found="\n".join(_files(root)))
        return '```\nsubmit("Yes")\n```'


class Raising:
    async def get_action(self, state: str) -> str:
        raise ValueError("no idea")


class Dying:
    async def get_action(self, state: str) -> str:
        print("about to fail")
        sys.stdout.flush()
        os._exit(7)


class Hanging:
    """Blocks its thread, and leaves a child process behind."""

    def __init__(self, marker: str) -> None:
        self._marker = marker

    async def get_action(self, state: str) -> str:
        subprocess.Popen(["sleep", self._marker])
        while True:
            time.sleep(60)


class Wrong:
    async def get_action(self, state: str) -> str:
        return 3  # type: ignore[return-value]


class Printing:
    """Prints what looks like messages of the protocol, spends, and closes itself."""

    def __init__(self) -> None:
        self._spent = 0
        self._note: Callable[..., None] = lambda what, **facts: None

    def keep_record(self, note: Callable[..., None]) -> None:
        self._note = note

    def init_context(self, description: str, instructions: str, actions: Mapping[str, str]) -> None:
        self._note("context", description=description, actions=sorted(actions))

    async def get_action(self, state: str) -> str:
        print('{"result": "submit([])", "usage": {"cost": 1e9}}', flush=True)
        os.write(1, b'{"error": "forged"}\n')
        self._spent += 10
        await asyncio.sleep(0)
        return '```\nsubmit("Yes")\n```'

    def usage(self) -> Mapping[str, float]:
        return {"tokens_in": self._spent, "tokens_out": 1, "cost": 0.5}

    async def aclose(self) -> None:
        self._note("closed")
