"""Static files as web servers serve them: index files, redirects to directories, content types."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from functools import lru_cache

from srearena.cluster.embedded.node.process import Process
from srearena.cluster.embedded.node.sockets import HttpResponse
from srearena.cluster.embedded.node.streams import os_error

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


@dataclass(frozen=True, slots=True)
class Found:
    """What a request's path led to below a root."""

    response: HttpResponse | None
    path: str
    error: OSError | None = None
    """Why there is no response: the file is missing, or may not be read."""


def find(process: Process, root: str, path: str, index: tuple[str, ...] = ("index.html",)) -> Found:
    """The file for a path; a directory without a slash is redirected, one with a slash shows its index."""
    full = _below(root, path)
    files = process.files
    if index and path.endswith("/"):
        # The usual case first: where the index can be read, all else is as it should be.
        first = posixpath.join(full, index[0])
        try:
            body = files.read_bytes(first)
        except OSError:
            body = b""
        if body:
            return _found(first, body)
    if files.is_dir(full):
        if not path.endswith("/"):
            return Found(HttpResponse(301, headers={"Location": f"{path}/"}), full)
        for name in index:
            if files.is_file(posixpath.join(full, name)):
                full = posixpath.join(full, name)
                break
        else:
            return Found(None, full, os_error(1))
    try:
        body = files.read_bytes(full)
    except OSError as error:
        return Found(None, full, error)
    return _found(full, body)


def _found(path: str, body: bytes) -> Found:
    return Found(HttpResponse(200, body, {"Content-Type": content_type(path)}), path)


@lru_cache(maxsize=1024)
def _below(root: str, path: str) -> str:
    clean = posixpath.normpath("/" + path).lstrip("/")
    return posixpath.join(root, clean) if clean and clean != "." else root
