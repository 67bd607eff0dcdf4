"""What the soak of forked episodes counts is what leaks would be."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.episodes import Footprint

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are read from /proc")


def child() -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-c", "print(flush=True); input()"], stdin=-1, stdout=-1)
    assert process.stdout is not None
    process.stdout.readline()
    return process


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    with child() as started:
        yield started
        started.kill()


def test_processes_ports_files_and_descriptors_that_are_left_are_found(
    tmp_path: Path, process: subprocess.Popen[bytes]
) -> None:
    before = Footprint.measure(tmp_path)
    assert before.processes >= 1 and before.growth(before) == []  # earlier tests may have left a helper of a library
    with socket.create_server(("127.0.0.1", 0)):
        (tmp_path / "left").touch()
        with child() as other:
            grown = Footprint.measure(tmp_path).growth(before)
            other.kill()
    assert [line.partition(":")[0] for line in grown] == ["processes", "listening", "files", "descriptors"]


def test_memory_may_vary_but_not_grow(tmp_path: Path, process: subprocess.Popen[bytes]) -> None:
    before = replace(Footprint.measure(tmp_path), megabytes=100.0)
    assert replace(before, megabytes=119.0).growth(before) == []
    assert replace(before, megabytes=121.0).growth(before) == ["memory: 100 MB before, 121 MB now"]
