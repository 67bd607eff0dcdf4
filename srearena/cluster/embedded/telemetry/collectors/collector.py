"""The interface between collectors and the pipeline: a scrape job and its present targets.

A collector reads state and appends samples; it never changes the cluster, and it never invents a number. The pipeline
calls `scrape` of each at every interval of virtual time, and `targets` when the API lists them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

SLOW_INTERVAL = 30.0
"""Seconds between scrapes of the programs of Kubernetes itself, as kube-prometheus sets it; of others it is 15."""
Health = Literal["up", "down", "unknown"]


@dataclass(slots=True)
class Target:
    """One scraped endpoint, as `/api/v1/targets` shows it. The collector keeps it up to date."""

    labels: Mapping[str, str]
    """After relabelling: `job` and `instance` at least."""
    url: str
    discovered: Mapping[str, str] = field(default_factory=dict)
    """Before relabelling: `__address__` and similar."""
    health: Health = "unknown"
    error: str = ""
    scraped_at: float = 0.0
    """Virtual seconds since the epoch; 0 before the first scrape."""
    seconds: float = 0.0
    """Duration of the last scrape, in virtual seconds."""
    samples: int = 0
    """Samples of the last scrape."""

    @property
    def is_scraped(self) -> bool:
        """Whether it has been scraped at all."""
        return self.health != "unknown"

    @property
    def job(self) -> str:
        return self.labels["job"]

    @property
    def instance(self) -> str:
        return self.labels["instance"]


class Pace:
    """Selects one of the pipeline's rounds in each interval."""

    __slots__ = ("_interval", "_last")

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._last = -1.0

    def is_due(self, now: float) -> bool:
        if not self._interval:
            return True
        number = now // self._interval
        if number == self._last:
            return False
        self._last = number
        return True


class Collector(Protocol):
    """A scrape job."""

    job: str

    def scrape(self, now: float) -> None:
        """Append one sample per series at `now`."""

    def targets(self) -> Sequence[Target]:
        """Return the present targets, in a stable order."""
