"""The program of an agent's process: JSON lines on the pipes that were its standard input and output.

A request is `{"do": NAME, ...}`; its reply has `result` or `error`, and the `usage` so far. Entries for the trial's
record come between replies, as `{"note": ...}`. Whatever the agent prints goes to standard error.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import inspect
import json
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import IO, Any

from srearena.conductor.agents import make_agent
from srearena.errors import SreArenaError

_PR_SET_PDEATHSIG = 1


class _Program:
    """One agent and its end of the pipes."""

    def __init__(self, requests: IO[str], replies: IO[str]) -> None:
        self._requests = requests
        self._replies = replies
        self._agent: Any = None

    async def run(self) -> None:
        handlers: dict[str, Callable[..., Awaitable[Any]]] = {
            "create": self._create,
            "preflight": self._preflight,
            "begin": self._begin,
            "get_action": self._get_action,
            "aclose": self._aclose,
        }
        while line := await asyncio.to_thread(self._requests.readline):
            request: dict[str, Any] = json.loads(line)
            name = request.pop("do")
            try:
                reply: dict[str, Any] = {"result": await handlers[name](**request)}
            except Exception as problem:  # whatever an agent raises is reported, and counts against the agent
                named = isinstance(problem, SreArenaError)
                if named:
                    print(f"{type(problem).__name__}: {problem}", file=sys.stderr)
                else:
                    traceback.print_exc()
                reply = {"error": str(problem), "type": type(problem).__name__, "expected": named}
            self._send({**reply, "usage": self._usage()})

    def _send(self, message: dict[str, Any]) -> None:
        self._replies.write(json.dumps(message, default=str) + "\n")
        self._replies.flush()

    def _usage(self) -> Any:
        report = getattr(self._agent, "usage", None)
        try:
            used = report() if callable(report) else None
        except Exception:  # an agent that cannot count its tokens still acts
            traceback.print_exc()
            return None
        return dict(used) if isinstance(used, Mapping) else None

    def _note(self, what: str, **facts: Any) -> None:
        self._send({"note": what, "facts": facts, "usage": self._usage()})

    async def _create(self, agent: str, options: dict[str, Any], paths: list[str]) -> None:
        sys.path.extend(path for path in paths if path not in sys.path)
        self._agent = make_agent(agent, options)
        if callable(getattr(self._agent, "keep_record", None)):
            self._agent.keep_record(self._note)

    async def _preflight(self) -> None:
        if callable(getattr(self._agent, "preflight", None)):
            await _awaited(self._agent.preflight())

    async def _begin(
        self, description: str, instructions: str, actions: dict[str, str], kubeconfig: str | None
    ) -> None:
        if callable(getattr(self._agent, "init_context", None)):
            await _awaited(self._agent.init_context(description, instructions, actions))
        if kubeconfig is not None and callable(getattr(self._agent, "connect", None)):
            path = Path(tempfile.mkdtemp(prefix="cluster-")) / "kubeconfig"
            path.touch(mode=0o600)
            path.write_text(kubeconfig, encoding="utf-8")
            await _awaited(self._agent.connect(path))

    async def _get_action(self, state: str) -> Any:
        action: object = await self._agent.get_action(state)
        if not isinstance(action, str):
            raise TypeError(f"the agent's action is a {type(action).__name__}, not a text")
        return action

    async def _aclose(self) -> None:
        if callable(getattr(self._agent, "aclose", None)):
            await _awaited(self._agent.aclose())


async def _awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def _die_with_parent() -> None:
    """Have the kernel kill this process when the harness dies: an unattended agent would go on spending money."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def main() -> None:
    _die_with_parent()
    requests = os.fdopen(os.dup(0), encoding="utf-8")
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    asyncio.run(_Program(requests, replies).run())


if __name__ == "__main__":
    main()
