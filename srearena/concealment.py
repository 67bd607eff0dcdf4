"""Hiding of command lines that name a problem from the process list.

Every process on the same machine can read the arguments of others, an agent's too. Commands whose arguments reveal the
problem pass them to themselves through a pipe and restart without them. Shell history is out of scope.
"""

from __future__ import annotations

import json
import os
import sys

from srearena.interpreters import python_module

_FLAG = "--words-from="
_COMMANDS = frozenset(("run", "serve", "record"))
_LONGEST = 32_768
"""Bytes: half of the capacity of a pipe on Linux, so that the write below never blocks."""


def arguments(argv: list[str]) -> list[str]:
    """The arguments of this command line. Where they must be hidden, the process restarts instead of returning."""
    if len(argv) == 1 and argv[0].startswith(_FLAG):
        return _read_arguments(int(argv[0].removeprefix(_FLAG)))
    if not _COMMANDS & set(argv) or os.environ.get("SREARENA_SHOW_ARGUMENTS") or os.name != "posix":
        return argv
    message = json.dumps(argv).encode()
    if len(message) > _LONGEST:
        return argv
    reading, writing = os.pipe()
    os.write(writing, message)
    os.close(writing)
    os.set_inheritable(reading, True)
    sys.stdout.flush()
    os.execv(sys.executable, python_module("srearena", f"{_FLAG}{reading}"))
    raise AssertionError("unreachable")


def _read_arguments(descriptor: int) -> list[str]:
    with os.fdopen(descriptor, "rb") as pipe:
        argv: list[str] = json.loads(pipe.read())
    return argv
