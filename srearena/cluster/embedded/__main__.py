"""The process of an embedded cluster: `python -m srearena.cluster.embedded`, started by `srearena.cluster`.

Reads one JSON line with its options, answers one JSON line when the API is up (or why it is not), and serves until
it is stopped or, until a control request detaches it, until its parent process ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import yaml

from srearena.cluster.embedded.control import serve_control
from srearena.cluster.embedded.hosting import Host, collect_rarely
from srearena.cluster.embedded.options import ClusterOptions


async def serve(host: Host, directory: Path, stop: asyncio.Event) -> None:
    await host.start()
    kubeconfig = directory / "kubeconfig"
    kubeconfig.touch(mode=0o600)
    kubeconfig.write_text(yaml.safe_dump(host.kubeconfig()))
    control = await serve_control(directory / "control", lambda request: _control(host, request))
    print(json.dumps({"url": host.server.url}), flush=True)
    await stop.wait()
    control.close()
    await host.stop()


async def _control(host: Host, request: dict[str, Any]) -> Any:
    if request != {"operation": "detach"}:
        return await host.control(request)
    asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
    return {}


async def _main() -> int:
    request = json.loads(sys.stdin.readline())
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    collect_rarely(50_000)
    try:
        host = Host(ClusterOptions(**request["options"]))
        gc.freeze()
        _follow_parent(loop, stop)
        await serve(host, Path(request["directory"]), stop)
    except OSError as problem:
        print(json.dumps({"error": str(problem)}), flush=True)
        return 1
    return 0


def _follow_parent(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    """Stop at the end of standard input, which stays open as long as the parent process runs."""

    def on_input() -> None:
        if not os.read(sys.stdin.fileno(), 1):
            loop.remove_reader(sys.stdin.fileno())
            stop.set()

    with contextlib.suppress(OSError, ValueError, PermissionError):
        loop.add_reader(sys.stdin.fileno(), on_input)


if __name__ == "__main__":
    sys.exit(asyncio.run(_main()))
