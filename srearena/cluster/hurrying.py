"""How a hurry is asked of an embedded cluster, whichever line leads to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from srearena.cluster.base import Hurry

_REAL_PATIENCE = 120.0
"""Real seconds for a stretch of simulation that is over in a moment, unless the machine is very busy."""


@contextmanager
def hurry_by(ask: Callable[[dict[str, Any]], Any], limit: float) -> Iterator[Hurry]:
    """`ask` sends one control request to the cluster."""
    begun = ask({"operation": "hurry", "limit": limit})
    hurry = Hurry(_REAL_PATIENCE)
    try:
        yield hurry
    finally:
        ended = ask({"operation": "ease", "number": begun["number"]})
        hurry.flown, hurry.waited = ended["flown"] - begun["flown"], ended["waited"] - begun["waited"]
