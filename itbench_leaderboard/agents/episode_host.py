"""Serve an episode and its tools on the loopback interface, like `srearena serve`, for an agent started elsewhere.

It runs in its own thread. After the last submission, or when it is stopped, the tools are closed first and then the
system is graded: nothing that the agent does afterwards affects the grade.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from secrets import token_urlsafe
from threading import Thread
from typing import Any

from srearena.conductor.episode.addresses import addresses
from srearena.conductor.episode.episode import Episode
from srearena.conductor.errors import EnvironmentFailure
from srearena.conductor.serving.http_api import EpisodeApp
from srearena.conductor.serving.json_app import serve
from srearena.conductor.serving.mcp_server import ToolServer
from srearena.utils.status import Outcome

_START_SECONDS = 120.0  # chosen: the tool server starts in seconds; a loaded machine needs more


class EpisodeHost:
    """The thread that serves an episode."""

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
        """Start serving; returns the address of the tool server."""
        self._thread.start()
        offered = self._offer.result(_START_SECONDS)
        if "url" not in offered:
            raise EnvironmentFailure(f"there is no tool server: {offered.get('error', 'it does not say why')}")
        return str(offered["url"])

    def remaining_work(self) -> list[str]:
        """What the agent still has to do, as messages to it."""
        if not self._episode.within_limits():
            return []
        return [f"{self._episode.question} (with the tool submit)"]

    def graded(self, outcome: Outcome, reason: str) -> None:
        """End the episode with this outcome, unless it has already ended, and wait for the grading."""
        self._episode.end(outcome, reason)
        self._stop_and_join()
        if self._failure is not None:
            raise self._failure

    def abandon(self) -> None:
        """End without grading; does nothing after `graded`."""
        self._abandoned = True
        if self._thread.is_alive():
            self._stop_and_join()

    def _stop_and_join(self) -> None:
        if self._loop is not None and self._stop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as failure:  # re-raised in the waiting thread
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
            # The tools call this server, so they start after it.
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
            for starting_task in starting:
                starting_task.cancel()
            await tools.stop()
        if not self._abandoned:
            await asyncio.to_thread(episode.grade)
