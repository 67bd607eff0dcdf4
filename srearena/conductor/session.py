"""`Session`: what happened in a trial, written down as it happens, so that a crash loses nothing.

One JSON object per line. While the agent works the file has a name that says nothing; what names the problem is written
after the last submission.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import IO, Any

_LONGEST_TEXT = 200_000


class Session:
    """The record of one trial. Without a folder it is kept in memory only."""

    def __init__(self, folder: Path | None = None) -> None:
        self.session_id = token_hex(8)
        self.history: list[dict[str, Any]] = []
        self.path: Path | None = None
        self._file: IO[str] | None = None
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            self.path = folder / f"{self.session_id}.jsonl"
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            self._file = os.fdopen(descriptor, "w", encoding="utf-8")

    def note(self, what: str, **facts: Any) -> None:
        """Append one entry; it is on disk when this returns."""
        entry = {"at": datetime.now(UTC).isoformat(), "what": what, **{k: _kept(v) for k, v in facts.items()}}
        self.history.append(entry)
        if self._file is not None:
            self._file.write(json.dumps(entry, default=str) + "\n")
            self._file.flush()

    def moved(self, path: Path) -> None:
        """Give the finished record its final place."""
        self.close()
        if self.path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self.path.replace(path)
            self.path = path

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _kept(value: Any) -> Any:
    """Any value, with text cut to a bound and made fit for JSON."""
    if isinstance(value, str):
        text = value.encode("utf-8", "replace").decode()
        return text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + f"... ({len(text)} characters)"
    if isinstance(value, int | float | bool) or value is None:
        return value
    written = json.dumps(value, default=str)
    if len(written) > _LONGEST_TEXT:
        return written[:_LONGEST_TEXT] + f"... ({len(written)} characters)"
    return json.loads(written)


def read_session(path: Path) -> Iterator[dict[str, Any]]:
    """The entries of a record; a last line cut off by a crash is left out."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            try:
                yield json.loads(line)
            except ValueError:
                return
