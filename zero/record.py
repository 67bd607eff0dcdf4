"""Logs of a run: one per attempt, and one of all attempts.

Lines are stored unchanged. Control characters are replaced before lines are shown on a terminal, since an agent could
use them to manipulate it.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

_MAX_SHOWN = 400  # characters of a line on the terminal
MAX_BYTES = 8_000_000  # of a stored answer


def printable(text: str) -> str:
    """A line without control characters."""
    return "".join(c if c.isprintable() or c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in text[:_MAX_SHOWN])


def write_json(path: Path, document: Any) -> None:
    """Write a JSON file atomically."""
    draft = path.with_name(f".{path.name}.draft")
    with draft.open("w", encoding="utf-8", errors="backslashreplace") as handle:
        json.dump(document, handle, indent=2, ensure_ascii=False)
        handle.write("\n")
        handle.flush()
        os.fsync(handle.fileno())
    draft.replace(path)


@dataclass
class Record:
    traces: Path
    _all: IO[str]
    _show: Callable[[str], None] | None

    @classmethod
    @contextmanager
    def open(cls, traces: Path, show: Callable[[str], None] | None) -> Iterator[Record]:
        with (traces / "stdout.log").open("a", encoding="utf-8", errors="backslashreplace") as log:
            yield cls(traces, log, show)

    def attempt_directory(self, number: int) -> Path:
        return self.traces / "attempts" / str(number)

    @contextmanager
    def attempt(self, number: int) -> Iterator[Callable[[str, str], None]]:
        directory = self.attempt_directory(number)
        directory.mkdir(parents=True, exist_ok=True)
        with (
            (directory / "stdout.log").open("w", encoding="utf-8", errors="backslashreplace") as stdout,
            (directory / "stderr.log").open("w", encoding="utf-8", errors="backslashreplace") as stderr,
        ):
            files = {"stdout": stdout, "stderr": stderr}

            def log(stream: str, line: str) -> None:
                for file in (files[stream], self._all):
                    file.write(line + "\n")
                    file.flush()
                if self._show is not None:
                    self._show(printable(line))

            yield log

    def save_answer(self, number: int, output: Path) -> None:
        plain = output.is_file() and not output.is_symlink() and output.parent.resolve() == output.parent
        if plain and output.stat().st_size <= MAX_BYTES:
            shutil.copyfile(output, self.attempt_directory(number) / output.name)
