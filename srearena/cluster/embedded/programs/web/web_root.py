"""Static files as web servers serve them: index files, redirects to directories, content types."""

from __future__ import annotations

import posixpath
from functools import lru_cache
from typing import NamedTuple

from srearena.cluster.embedded.machine.files.file_view import Glance
from srearena.cluster.embedded.machine.files.streams import os_error
from srearena.cluster.embedded.machine.networking.sockets import HttpResponse
from srearena.cluster.embedded.machine.processes.process import Process

MAX_SERVED = 64
"""Answers a server remembers."""
CONTENT_TYPES = {
    ".html": "text/html",
    ".htm": "text/html",
    ".css": "text/css",
    ".js": "application/javascript",
    ".json": "application/json",
    ".txt": "text/plain",
    ".xml": "text/xml",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".gif": "image/gif",
    ".svg": "image/svg+xml",
    ".ico": "image/x-icon",
}


@lru_cache(maxsize=1024)
def content_type(path: str, default: str = "application/octet-stream") -> str:
    return CONTENT_TYPES.get(posixpath.splitext(path)[1].lower(), default)


class Found(NamedTuple):
    """What a request's path led to below a root."""

    response: HttpResponse | None
    path: str
    error: OSError | None = None
    """Why there is no response: the file is missing, or may not be read."""
    glance: Glance | None = None
    """Where the response is that file and nothing else could be: what tells whether it still is."""


class Webroot:
    """Files as one server process serves them; what it served before and is still so, it need not look for."""

    __slots__ = ("_process", "_served")

    def __init__(self, process: Process) -> None:
        self._process = process
        self._served: dict[tuple[str, str, tuple[str, ...]], tuple[str, Glance]] = {}

    def find(self, root: str, path: str, index: tuple[str, ...] = ("index.html",)) -> Found:
        """The file for a path; a directory without a slash is redirected, one with a slash shows its index."""
        served = self._served.get((root, path, index))
        if served is not None and served[1].current():
            return _found(served[0], served[1].content, served[1])
        clean = posixpath.normpath("/" + path).lstrip("/")
        full = posixpath.join(root, clean) if clean and clean != "." else root
        files = self._process.files
        only_choice = True
        if files.is_dir(full):
            if not path.endswith("/"):
                return Found(HttpResponse(301, headers={"Location": f"{path}/"}), full)
            for name in index:
                if files.is_file(posixpath.join(full, name)):
                    full = posixpath.join(full, name)
                    only_choice = name == index[0]
                    break
            else:
                return Found(None, full, os_error(1))
        try:
            body = files.read_bytes(full)
        except OSError as error:
            return Found(None, full, error)
        glance = files.glance(full) if only_choice else None
        if glance is not None:
            if len(self._served) >= MAX_SERVED:
                self._served.clear()
            self._served[root, path, index] = (full, glance)
        return _found(full, body, glance)


def _found(path: str, body: bytes, glance: Glance | None) -> Found:
    return Found(HttpResponse(200, body, {"Content-Type": content_type(path)}), path, glance=glance)
