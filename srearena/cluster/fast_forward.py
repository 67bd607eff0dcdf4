"""Fast-forwarding an embedded cluster by its control requests, over a socket or in the same process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from srearena.cluster.base import FastForward

_CLIENT_TIMEOUT = 120.0
"""Real seconds. Chosen: a simulated stretch takes a fraction of a second, so this is reached only on a stalled host."""


@contextmanager
def fast_forwarding(request: Callable[[dict[str, Any]], Any], limit: float) -> Iterator[FastForward]:
    """Fast-forward a cluster while the context lasts; `request` sends one control request to it."""
    begun = request({"operation": "fast-forward", "limit": limit})
    skip = FastForward(_CLIENT_TIMEOUT)
    try:
        yield skip
    finally:
        ended = request({"operation": "end-fast-forward", "number": begun["number"]})
        skip.skipped_seconds = ended["skipped"] - begun["skipped"]
        skip.waited_seconds = ended["waited"] - begun["waited"]
