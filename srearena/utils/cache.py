"""The cache of models' replies by content: asking again is free, and a stopped run continues.

The key covers everything that determines a reply (model, messages, schema, sample number) and nothing else. It does not
include the endpoint, so a replay needs none. There is one file per reply, written atomically.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from srearena.errors import InputError

FORMAT = 1


def content_key(question: dict[str, Any]) -> str:
    text = json.dumps({"format": FORMAT, **question}, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class ReplyCache:
    """Replies in a directory; without a directory, in memory only."""

    def __init__(self, directory: Path | None) -> None:
        self.directory = directory
        self._memory: dict[str, dict[str, Any]] = {}
        if directory is not None:
            try:
                directory.mkdir(parents=True, exist_ok=True)
            except OSError as problem:
                raise InputError(f"cannot create the cache directory {directory}: {problem}") from problem

    def _file(self, key: str) -> Path | None:
        return None if self.directory is None else self.directory / key[:2] / f"{key}.json"

    def get(self, key: str) -> dict[str, Any] | None:
        if key in self._memory:
            return self._memory[key]
        file = self._file(key)
        if file is None:
            return None
        try:
            record = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None  # missing or damaged: send the request again
        return record if isinstance(record, dict) and record.get("key") == key else None

    def put(self, key: str, record: dict[str, Any]) -> None:
        stored = {"key": key, **record}
        self._memory[key] = stored
        file = self._file(key)
        if file is None:
            return
        try:
            file.parent.mkdir(exist_ok=True)
            draft = file.with_name(f"{file.name}.{os.getpid()}.tmp")
            draft.write_text(json.dumps(stored, ensure_ascii=False, indent=1), encoding="utf-8")
            draft.replace(file)
        except OSError as problem:
            raise InputError(f"cannot write the cache {file}: {problem}; use --cache-dir or --no-cache") from problem

    def drop(self, key: str) -> None:
        self._memory.pop(key, None)
