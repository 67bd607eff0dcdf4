"""Metrics of simulated programs, served directly or by a separate exporter.

The object in `Listener.server` may be `Metered` or `Exported`; the collectors find it there. Values are computed from
the program's own state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

Sample = tuple[str, Mapping[str, str], float]
"""Name, labels, value."""


@runtime_checkable
class Metered(Protocol):
    def metrics(self) -> Iterable[Sample]:
        """Every series of the program, in a stable order."""


@dataclass(frozen=True, slots=True)
class Exporter:
    """A separate exporter of a server: it runs beside the server and still answers when the server is down."""

    job: str
    alive: str
    """The series that says whether the server answers."""
    read: Callable[[Any], Iterable[Sample]]
    """The samples of a server, from the state the server itself works with."""


@runtime_checkable
class Exported(Protocol):
    """A server with a separate exporter."""

    @property
    def exporter(self) -> Exporter | None: ...
