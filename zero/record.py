"""The logs of a run: every attempt's own, and all of them in one file.

Lines are kept as they came. What is shown on a terminal is made harmless first: control characters in what an agent
prints are the agent's, not ours.
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

_SHOWN = 400
MAX_BYTES = 8_000_000  # of an answer that is worth keeping


def harmless(text: str) -> str:
    """A line that a terminal only prints."""
    return "".join(c if c.isprintable() or c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in text[:_SHOWN])


def write_json(path: Path, document: Any) -> None:
    """Whole or not at all."""
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
    def opened(cls, traces: Path, show: Callable[[str], None] | None) -> Iterator[Record]:
        with (traces / "stdout.log").open("a", encoding="utf-8", errors="backslashreplace") as log:
            yield cls(traces, log, show)

    def place(self, number: int) -> Path:
        return self.traces / "attempts" / str(number)

    @contextmanager
    def attempt(self, number: int) -> Iterator[Callable[[str, str], None]]:
        place = self.place(number)
        place.mkdir(parents=True, exist_ok=True)
        with (
            (place / "stdout.log").open("w", encoding="utf-8", errors="backslashreplace") as stdout,
            (place / "stderr.log").open("w", encoding="utf-8", errors="backslashreplace") as stderr,
        ):
            files = {"stdout": stdout, "stderr": stderr}

            def log(stream: str, line: str) -> None:
                for file in (files[stream], self._all):
                    file.write(line + "\n")
                    file.flush()
                if self._show is not None:
                    self._show(harmless(line))

            yield log

    def keep_answer(self, number: int, output: Path) -> None:
        plain = output.is_file() and not output.is_symlink() and output.parent.resolve() == output.parent
        if plain and output.stat().st_size <= MAX_BYTES:
            shutil.copyfile(output, self.place(number) / output.name)
