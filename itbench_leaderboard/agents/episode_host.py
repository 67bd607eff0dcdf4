"""An episode with its tools on the loopback interface, as `srearena serve` offers it, for an agent that others run.

It lives in a thread of its own. With the last submission, or when it is told to end, the tools are taken away first and
the system is graded then: nothing that an agent does afterwards counts, for it or against it.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from secrets import token_urlsafe
from threading import Thread
from typing import Any

from srearena.conductor.episode.episode import Episode
from srearena.conductor.episode.outcome import Outcome
from srearena.conductor.errors import EnvironmentFailure
from srearena.conductor.serving.http_api import EpisodeApp, addresses, serve
from srearena.conductor.serving.mcp_server import ToolServer

_PATIENCE = 120.0


class EpisodeHost:
    def __init__(self, episode: Episode, mode: str) -> None:
        self.token = token_urlsafe(24)
        self._episode = episode
        self._mode = mode
        self._offer: Future[dict[str, Any]] = Future()
        self._stop: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._abandoned = False
        self._failure: BaseException | None = None
        self._thread = Thread(target=self._run, name="episode", daemon=True)

    def start(self) -> str:
        """The address of the tool server."""
        self._thread.start()
        offered = self._offer.result(_PATIENCE)
        if "url" not in offered:
            raise EnvironmentFailure(f"there is no tool server: {offered.get('error', 'it does not say why')}")
        return str(offered["url"])

    def wanting(self) -> list[str]:
        """What the agent still has to do, in words for it."""
        if not self._episode.within_limits():
            return []
        return [f"{self._episode.question} (with the tool submit)"]

    def graded(self, outcome: Outcome, reason: str) -> None:
        """End the episode so, unless it has ended by itself, and wait for the verdicts."""
        self._episode.end(outcome, reason)
        self._leave()
        if self._failure is not None:
            raise self._failure

    def abandon(self) -> None:
        """End without verdicts; also after `graded`, when it does nothing."""
        self._abandoned = True
        if self._thread.is_alive():
            self._leave()

    def _leave(self) -> None:
        if self._loop is not None and self._stop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as failure:  # told to whoever waits
            self._failure = failure
        finally:
            if not self._offer.done():
                self._offer.set_result({"error": str(self._failure or "the episode was over at once")})

    async def _serve(self) -> None:
        self._loop, stop = asyncio.get_running_loop(), asyncio.Event()
        self._stop = stop
        episode, tools = self._episode, ToolServer(self._mode, self.token)
        starting: list[asyncio.Task[None]] = []

        async def offer(url: str) -> None:
            try:
                self._offer.set_result(await tools.start(url))
            except OSError as problem:
                self._offer.set_result({"error": str(problem)})

        def ready(port: int) -> None:
            # The tools ask this very server about the episode, so they start while it runs.
            starting.append(asyncio.create_task(offer(f"http://127.0.0.1:{port}")))

        task = {
            "description": episode.description,
            "instructions": episode.instructions,
            "actions": episode.actions,
            **addresses(episode),
        }
        try:
            await serve(EpisodeApp(episode, self.token, task, stop.set), 0, ready, stop)
        finally:
            for each in starting:
                each.cancel()
            await tools.stop()
        if not self._abandoned:
            await asyncio.to_thread(episode.grade)
