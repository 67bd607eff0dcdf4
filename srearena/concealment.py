"""Command lines that name a problem are kept out of the process list.

Whoever runs on the same machine can read the words a process was started with, an agent too. Commands that say which
problem is played hand their words to themselves through a pipe and start again without them. What a shell keeps in its
history, or shows of itself, is not ours to hide.
"""

from __future__ import annotations

import json
import os
import sys

_FLAG = "--words-from="
_COMMANDS = frozenset(("run", "serve", "record"))
_LONGEST = 32_768


def arguments(words: list[str]) -> list[str]:
    """The words of this command line. Does not return where they must be hidden first: the process starts again."""
    if len(words) == 1 and words[0].startswith(_FLAG):
        return _received(int(words[0].removeprefix(_FLAG)))
    if not _COMMANDS & set(words) or os.environ.get("SREARENA_SHOW_ARGUMENTS") or os.name != "posix":
        return words
    message = json.dumps(words).encode()
    if len(message) > _LONGEST:
        return words
    reading, writing = os.pipe()
    os.write(writing, message)
    os.close(writing)
    os.set_inheritable(reading, True)
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "srearena", f"{_FLAG}{reading}"])
    raise AssertionError("unreachable")


def _received(descriptor: int) -> list[str]:
    with os.fdopen(descriptor, "rb") as pipe:
        words: list[str] = json.loads(pipe.read())
    return words
