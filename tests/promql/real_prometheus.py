"""The real Prometheus, started on an empty directory and fed through its remote-write receiver.

The protocol is a snappy-compressed protobuf message; both are small enough to be written out here, uncompressed.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from tests.promql.samples import Sample, SampleSeries

BINARY = os.environ.get("PROMETHEUS") or shutil.which("prometheus")
FEATURES = "promql-experimental-functions,promql-binop-fill-modifiers"
"""What the embedded server has besides the defaults of version 3."""
_STALE = struct.pack("<Q", 0x7FF0000000000002)
_BATCH = 1800_000
_REMOTE_WRITE = {
    "content-type": "application/x-protobuf",
    "content-encoding": "snappy",
    "x-prometheus-remote-write-version": "0.1.0",
}


@cache
def version() -> int:
    """Return the major version of the installed Prometheus."""
    assert BINARY is not None
    shown = subprocess.run([BINARY, "--version"], capture_output=True, text=True, check=True)
    found = re.search(r"version (\d+)\.", shown.stdout + shown.stderr)
    assert found is not None, shown
    return int(found[1])


class RealPrometheus:
    def __init__(self, address: str, pid: int) -> None:
        self.address = address
        self.pid = pid

    def ask(self, path: str, **parameters: str) -> dict[str, Any]:
        url = f"{self.address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                found: dict[str, Any] = json.load(answer)
        except urllib.error.HTTPError as error:
            found = json.load(error)
        return found

    def write(self, series: list[SampleSeries]) -> None:
        """Send samples in order of time, as the receiver requires."""
        times = [at for one in series for at, _ in one.samples]
        for begin in range(min(times), max(times) + 1, _BATCH):
            message = b""
            for one in series:
                samples = [sample for sample in one.samples if begin <= sample[0] < begin + _BATCH]
                if samples:
                    message += _field(1, _series(one.labels, samples))
            request = urllib.request.Request(f"{self.address}/api/v1/write", _snappy(message), _REMOTE_WRITE)
            urllib.request.urlopen(request, timeout=30).close()


@contextlib.contextmanager
def running(directory: Path) -> Iterator[RealPrometheus]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    config = directory / "prometheus.yml"
    config.write_text("global: {evaluation_interval: 1m}\n")
    assert BINARY is not None
    process = subprocess.Popen(
        [
            BINARY,
            f"--config.file={config}",
            f"--storage.tsdb.path={directory / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--web.enable-remote-write-receiver",
            "--storage.tsdb.retention.time=100y",
            *([f"--enable-feature={FEATURES}"] if version() > 2 else []),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        address = f"http://127.0.0.1:{port}"
        for _ in range(300):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{address}/-/ready", timeout=5).close()
                break
            time.sleep(0.1)
        yield RealPrometheus(address, process.pid)
    finally:
        process.terminate()
        process.wait(timeout=30)


def _varint(number: int) -> bytes:
    written = b""
    while number > 0x7F:
        written += bytes((number & 0x7F | 0x80,))
        number >>= 7
    return written + bytes((number,))


def _field(number: int, payload: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(payload)) + payload


def _series(labels: dict[str, str], samples: list[Sample]) -> bytes:
    pairs = b"".join(
        _field(1, _field(1, name.encode()) + _field(2, value.encode())) for name, value in sorted(labels.items())
    )
    return pairs + b"".join(_field(2, _sample(*sample)) for sample in samples)


def _sample(at: int, value: float | None) -> bytes:
    return b"\x09" + (_STALE if value is None else struct.pack("<d", value)) + b"\x10" + _varint(at)


def _snappy(payload: bytes) -> bytes:
    """Snappy's block format with literals only."""
    written = _varint(len(payload))
    for begin in range(0, len(payload), 60000):
        piece = payload[begin : begin + 60000]
        written += bytes((61 << 2,)) + struct.pack("<H", len(piece) - 1) + piece
    return written
