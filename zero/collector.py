"""OTLP collector on a loopback port: writes one line of JSON per request.

JSON bodies are stored as JSON, others as base64. It is an error if the requested port is in use.
"""

from __future__ import annotations

import base64
import json
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from zero.errors import RequestError
from zero.trajectory import wall_clock

MAX_BODY = 64 * 1024 * 1024  # bytes
Watcher = Callable[[dict[str, Any]], None]


def _data(body: bytes, kind: str) -> dict[str, Any]:
    if "json" in kind:
        try:
            return {"data": json.loads(body)}
        except ValueError:
            pass
    return {"data_base64": base64.b64encode(body).decode()}


def attributes(node: Any) -> Iterator[dict[str, Any]]:
    """The attributes of every log record and span in an OTLP document, as plain mappings."""
    if isinstance(node, list):
        for item in node:
            yield from attributes(item)
    elif isinstance(node, dict):
        listed = node.get("attributes")
        if isinstance(listed, list) and ("timeUnixNano" in node or "startTimeUnixNano" in node or "body" in node):
            yield {
                pair["key"]: next(iter(pair["value"].values()), None)
                for pair in listed
                if isinstance(pair, dict) and isinstance(pair.get("value"), dict) and "key" in pair
            }
        for key, value in node.items():
            if key != "attributes":
                yield from attributes(value)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = False


@contextmanager
def collect(file: Path, port: int = 0, watch: Watcher | None = None) -> Iterator[int]:
    """Collect into `file` until the block ends; yields the port. `watch` gets the attributes of each record."""
    file.parent.mkdir(parents=True, exist_ok=True)
    lock = threading.Lock()
    with file.open("a", encoding="utf-8") as lines:

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _reply(self, status: int, text: bytes = b"{}") -> None:
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def do_GET(self) -> None:
                self._reply(404)

            def _body(self) -> bytes | None:
                """The request body, also if chunked; None if it is too long or malformed."""
                try:
                    if "chunked" not in self.headers.get("transfer-encoding", ""):
                        length = int(self.headers.get("content-length") or 0)
                        return self.rfile.read(length) if 0 <= length <= MAX_BODY else None
                    body = b""
                    while size := int(self.rfile.readline(64).partition(b";")[0], 16):
                        if not 0 < size <= MAX_BODY - len(body):
                            return None
                        body += self.rfile.read(size)
                        self.rfile.readline(64)
                    while self.rfile.readline(65536).strip():
                        pass
                except ValueError:
                    return None
                return body

            def do_POST(self) -> None:
                body = self._body()
                if body is None:
                    self.close_connection = True
                    self._reply(413)
                    return
                length = len(body)
                if self.headers.get("content-encoding") == "gzip":
                    decoder = zlib.decompressobj(wbits=31)  # gzip
                    try:
                        body = decoder.decompress(body, MAX_BODY)
                    except zlib.error:
                        self._reply(400)
                        return
                    if not decoder.eof:  # the rest is missing, or too much
                        self._reply(413 if decoder.unconsumed_tail else 400)
                        return
                kind = self.headers.get("content-type", "")
                record: dict[str, Any] = {"timestamp": wall_clock().isoformat(), "path": self.path}
                record |= {"content_type": kind, "content_length": length, **_data(body, kind)}
                with lock:
                    lines.write(json.dumps(record) + "\n")
                    lines.flush()
                    if watch is not None:
                        for record_attributes in attributes(record.get("data")):
                            watch(record_attributes)
                self._reply(200)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        try:
            server = _Server(("127.0.0.1", port), Handler)
        except OSError as problem:
            raise RequestError(
                f"--otel-port {port} cannot be used ({problem.strerror}): leave it out for a free one"
            ) from problem
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield int(server.server_address[1])
        finally:
            server.shutdown()
            server.server_close()
            thread.join()
