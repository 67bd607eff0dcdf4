"""The objects that a run creates on a shared cluster. Kubernetes does not record who created an object.

One line per object, on disk before its creator gets the response. Objects are identified by UID, so an object that
another user creates under the same name does not match. Objects in namespaces of the run are deleted with these
namespaces and are not recorded.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any


class Journal:
    def __init__(self, path: Path, namespaces: Collection[str]) -> None:
        self._path = path
        self._namespaces = frozenset(namespaces)
        self._lock = threading.Lock()

    def record(self, obj: Mapping[str, Any]) -> None:
        metadata = obj.get("metadata") or {}
        if not metadata.get("uid") or metadata.get("namespace") in self._namespaces:
            return
        line = {"uid": metadata["uid"], "kind": obj.get("kind", ""), "name": metadata.get("name", "")}
        with self._lock:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write(json.dumps(line) + "\n")
                file.flush()
                os.fsync(file.fileno())

    def uids(self) -> frozenset[str]:
        try:
            lines = self._path.read_text().splitlines()
        except FileNotFoundError:
            return frozenset()
        return frozenset(uid for uid in map(_uid, lines) if uid)


def _uid(line: str) -> str:
    try:
        return str(json.loads(line)["uid"])
    except (ValueError, KeyError, TypeError):
        return ""  # truncated: the process was killed while writing it, before the creator got a response
