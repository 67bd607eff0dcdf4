"""The harness's end of an agent's process. What arrives from there is data of an adversary: bounded, and never run.

The process is started before the problem is loaded, so that its start costs no time, and killed with its group at the
end of the trial or at a time limit.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import yaml

from srearena.closeable import Closeable
from srearena.conductor.agent_process import isolation as isolations
from srearena.conductor.errors import ArenaError
from srearena.dotenv import environment

_LONGEST_MESSAGE = 16 * 1024 * 1024
"""Characters; far above the longest action that can be meant."""
_LARGEST_NOTES = 64 * 1024 * 1024
"""Characters of all entries that an agent adds to the record of a trial."""
_LARGEST_LOG = 1024 * 1024
"""Bytes of the agent's output that are kept: the last ones."""
_STOP_SECONDS = 5.0


class AgentFailed(Exception):
    """The agent raised an exception, or its process ended."""


class AgentProcess(Closeable):
    """An agent in its own process, with the methods that the conductor calls."""

    def __init__(
        self,
        agent: str,
        options: Mapping[str, Any] | None = None,
        *,
        isolation: str = isolations.AUTO,
        echo: IO[str] | None = None,
    ) -> None:
        """Start the process of an agent: a registered name, or `module:Class`. `echo` gets the agent's output live."""
        self._started = isolations.launch(agent, options or {}, environment(), isolation)
        self.isolation = self._started.isolation
        self._process = self._started.process
        self._log = bytearray()
        self._echo = echo
        self._usage: dict[str, float] = {}
        self._notes_left = _LARGEST_NOTES
        self._note: Callable[..., None] = lambda what, **facts: None
        self._lock = threading.Lock()
        self._ready = False
        self._closed = False
        self._reader = threading.Thread(target=self._read_output, daemon=True)
        self._reader.start()
        with contextlib.suppress(AgentFailed):  # reported by `check`
            self._send("create", agent=agent, options=dict(options or {}), paths=isolations.search_paths(agent))

    @property
    def log(self) -> str:
        """The end of what the agent has printed."""
        return self._log.decode("utf-8", "replace")

    # Interface of the conductor

    def check(self) -> None:
        """Wait until the agent is created; ArenaError where that fails."""
        if self._ready:
            return
        try:
            self._reply()
        except AgentFailed as problem:
            self.close()
            raise ArenaError(str(problem)) from problem
        self._ready = True

    def keep_record(self, note: Callable[..., None]) -> None:
        self._note = note

    async def begin(
        self, description: str, instructions: str, actions: Mapping[str, str], kubeconfig: Path | None
    ) -> None:
        """Pass on what the agent gets before the first question."""
        text = portable_kubeconfig(kubeconfig) if kubeconfig is not None else None
        await self._request(
            "begin", description=description, instructions=instructions, actions=dict(actions), kubeconfig=text
        )

    async def get_action(self, state: str) -> str:
        action = await self._request("get_action", state=state)
        if not isinstance(action, str):
            raise AgentFailed(f"the agent's action is a {type(action).__name__}, not a text")
        return action

    async def preflight(self) -> None:
        """Let the agent check what it needs (an endpoint, a program); AgentFailed where that is missing."""
        await self._request("preflight")

    def usage(self) -> Mapping[str, float]:
        return self._usage

    async def aclose(self) -> None:
        """Let the agent release what it holds, and end its process."""
        if not self._closed:
            with contextlib.suppress(AgentFailed, TimeoutError):
                await asyncio.wait_for(self._request("aclose"), _STOP_SECONDS)
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """Kill the process and its group; calling it again does nothing."""
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join(_STOP_SECONDS)
        with self._lock:  # a thread that waits for a reply has got the end of the pipe by now
            for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()
        for folder in self._started.folders:
            shutil.rmtree(folder, ignore_errors=True)

    # The pipes

    async def _request(self, name: str, **content: Any) -> Any:
        try:
            return await asyncio.to_thread(self._ask, name, content)
        except asyncio.CancelledError:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            raise

    def _ask(self, name: str, content: dict[str, Any]) -> Any:
        self.check()
        with self._lock:
            self._send(name, **content)
            return self._reply()

    def _send(self, name: str, **content: Any) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"do": name, **content}).encode() + b"\n")
            self._process.stdin.flush()
        except (OSError, ValueError):
            raise AgentFailed(self._ending()) from None

    def _reply(self) -> Any:
        assert self._process.stdout is not None
        while True:
            try:
                line = self._process.stdout.readline(_LONGEST_MESSAGE)
            except (OSError, ValueError):
                line = b""
            if not line:
                raise AgentFailed(self._ending())
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                message = None
            if not isinstance(message, dict):
                raise AgentFailed(f"its process does not follow the protocol: {line[:200]!r}")
            self._count(message.get("usage"))
            if "note" in message:
                self._record(message, len(line))
            elif "error" in message:
                named = "" if message.get("expected") else f"{message.get('type')}: "
                raise AgentFailed(f"{named}{message['error']}")
            else:
                return message.get("result")

    def _record(self, message: dict[str, Any], size: int) -> None:
        facts = message.get("facts")
        self._notes_left -= size
        if self._notes_left > 0 and isinstance(facts, dict):
            self._note(
                str(message["note"]), **{key: value for key, value in facts.items() if key not in ("at", "what")}
            )

    def _count(self, used: object) -> None:
        """Tokens and cost never decrease, whatever the agent reports."""
        if isinstance(used, dict):
            for key in ("tokens_in", "tokens_out", "cost"):
                value = used.get(key)
                if isinstance(value, int | float) and not isinstance(value, bool):
                    self._usage[key] = max(self._usage.get(key, 0), value)

    def _ending(self) -> str:
        """How the process ended, with the last line that it printed."""
        try:
            status = self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            return "its process closed the connection"
        self._reader.join(_STOP_SECONDS)
        how = f"status {status}" if status >= 0 else signal.Signals(-status).name
        last = self.log.strip().splitlines()[-1:] or ["it printed nothing"]
        return f"its process ended with {how}: {last[0][:500]}"

    def _read_output(self) -> None:
        assert self._process.stderr is not None
        with contextlib.suppress(OSError, ValueError):
            while data := os.read(self._process.stderr.fileno(), 65536):
                self._log += data
                del self._log[:-_LARGEST_LOG]
                if self._echo is not None:
                    self._echo.write(data.decode("utf-8", "replace"))
                    self._echo.flush()


def portable_kubeconfig(path: Path) -> str:
    """A kubeconfig whose certificate is inside, because its folder does not exist where the agent runs."""
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    for entry in document.get("clusters") or ():
        authority = entry["cluster"].pop("certificate-authority", None)
        if authority:
            data = (path.parent / authority).read_bytes()
            entry["cluster"]["certificate-authority-data"] = base64.b64encode(data).decode()
    return str(yaml.safe_dump(document))
