"""The MCP server over an episode: a process of its own, which has only the address and the token of the episode.

The server is in a higher layer, so its module is found in the entry-point group `srearena.mcp_servers`, entry `live`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import tempfile
from importlib.metadata import entry_points
from typing import Any

from srearena.interpreters import python_module

ENTRY_POINTS = "srearena.mcp_servers"


class ToolServer:
    """The child process that serves the tools."""

    def __init__(self, mode: str, token: str) -> None:
        self._mode = mode
        self._token = token
        self._process: asyncio.subprocess.Process | None = None
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the process runs

    async def start(self, url: str) -> dict[str, Any]:
        """Start the server and return its address and client configurations; the reason under `error` if it fails."""
        if self._mode == "none":
            return {}
        servers = entry_points(group=ENTRY_POINTS, name="live")
        if not servers:
            return {"error": f"no MCP server is installed (entry-point group {ENTRY_POINTS})"}
        module = next(iter(servers)).value
        self._process = await asyncio.create_subprocess_exec(
            *python_module(module, "--http", "--until-eof", "--mode", self._mode),
            env={**os.environ, "SREARENA_URL": url, "SREARENA_TOKEN": self._token},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=self._stderr,
            limit=1 << 20,
        )
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            await self._process.wait()
            self._stderr.seek(0)
            lines = self._stderr.read().decode("utf-8", "replace").strip().splitlines()
            return {"error": lines[-1].removeprefix("Error: ") if lines else "it ended at once"}
        announcement: dict[str, Any] = json.loads(line)
        return announcement

    async def stop(self) -> None:
        if self._process is None:
            self._stderr.close()
            return
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        try:
            await asyncio.wait_for(self._process.wait(), 10)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        self._stderr.close()
