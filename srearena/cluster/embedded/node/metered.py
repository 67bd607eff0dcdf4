"""Programs that count what they do, as their exporters show it.

What listens on a port may offer such numbers through `Listener.server`; Prometheus finds them there. The numbers are
those of the program's own state, never made for the occasion.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, runtime_checkable

Sample = tuple[str, Mapping[str, str], float]
"""Name, labels, value."""


@runtime_checkable
class Metered(Protocol):
    def metrics(self) -> Iterable[Sample]:
        """Every series of the program, in a stable order."""
