"""Ray clusters on this machine, of several nodes, for tests of what runs on them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


def ray_environment(folder: Path) -> dict[str, str]:
    """Variables of a cluster's nodes, and of what connects to it."""
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_worker_niceness": "0",  # 15 by default: on a busy machine its workers would get no turn
        "SREARENA_CACHE": str(folder / "cache"),
    }


@contextmanager
def ray_nodes(environment: dict[str, str], *nodes: dict[str, Any]) -> Iterator[tuple[str, Callable[[], None]]]:
    """The address of a cluster of these nodes, and a way to lose the last of them."""
    process = subprocess.Popen(
        [sys.executable, "-P", str(ROOT / "tests" / "ray_nodes.py"), json.dumps(nodes)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    )
    assert process.stdin is not None and process.stdout is not None
    commands = process.stdin

    def lose() -> None:
        commands.write("\n")
        commands.flush()

    try:
        address = process.stdout.readline().strip()
        if not address:
            pytest.skip("a Ray node did not start within Ray's own 30 seconds: this machine is too busy")
        yield address, lose
    finally:
        commands.close()
        process.wait()
        process.stdout.close()
