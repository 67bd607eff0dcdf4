"""An episode of the small shop behind its HTTP server, like `srearena serve` runs it."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from srearena.conductor.episode.episode import Episode
from srearena.conductor.episode.limits import Limits
from srearena.conductor.problems.scheduling import ScalePodZero
from srearena.conductor.serving.http_api import EpisodeApp
from srearena.conductor.serving.json_app import serve
from srearena.coroutines import close_loop
from tests.arena.episodes import prepared_episode, shop_problem

TOKEN = "not-a-real-token-4711"


@dataclass
class Served:
    episode: Episode
    url: str

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "SREARENA_URL": self.url, "SREARENA_TOKEN": TOKEN}

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "sre_tools.live", *words]


@contextmanager
def served_episode(stages: tuple[str, ...] = ("detection", "localization", "mitigation")) -> Iterator[Served]:
    """Serve an episode in which the store is scaled to zero."""
    with prepared_episode(shop_problem(ScalePodZero, "store"), stages=stages, limits=Limits(steps=None)) as episode:
        telemetry = episode.cluster.telemetry
        task = {
            "description": episode.description,
            "kubeconfig": str(episode.kubeconfig),
            "prometheus": telemetry.prometheus,
            "loki": telemetry.loki,
            "jaeger": telemetry.jaeger,
            "telemetry_token": telemetry.token,
        }
        port: list[int] = []
        up = threading.Event()
        loop = asyncio.new_event_loop()
        stop = asyncio.Event()

        def ready(at: int) -> None:
            port.append(at)
            up.set()

        app = EpisodeApp(episode, TOKEN, task, lambda: None)
        thread = threading.Thread(target=lambda: loop.run_until_complete(serve(app, 0, ready, stop)), daemon=True)
        thread.start()
        assert up.wait(30)
        try:
            yield Served(episode, f"http://127.0.0.1:{port[0]}")
        finally:
            loop.call_soon_threadsafe(stop.set)
            thread.join(10)
            close_loop(loop)
