"""What a collector is to the pipeline that drives it: a scrape job, and the targets it has at the moment.

A collector reads state and appends samples; it never changes the cluster, and it never makes a number up. The
pipeline calls `scrape` for each at every interval of virtual time and asks for `targets` when somebody wants to know.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

Health = Literal["up", "down", "unknown"]


@dataclass(slots=True)
class Target:
    """One scraped endpoint, as `/api/v1/targets` shows it. The collector keeps it up to date."""

    labels: Mapping[str, str]
    """After relabelling: `job` and `instance` at least."""
    url: str
    discovered: Mapping[str, str] = field(default_factory=dict)
    """Before relabelling: `__address__` and its kin."""
    health: Health = "unknown"
    error: str = ""
    scraped_at: float = 0.0
    """Virtual seconds since the epoch; 0 before the first scrape."""
    seconds: float = 0.0
    """How long the last scrape took, in virtual time."""
    samples: int = 0
    """How many samples the last scrape gave."""

    @property
    def known(self) -> bool:
        """Whether it has been scraped at all."""
        return self.health != "unknown"

    @property
    def job(self) -> str:
        return self.labels["job"]

    @property
    def instance(self) -> str:
        return self.labels["instance"]


class Collector(Protocol):
    """A scrape job."""

    job: str

    def scrape(self, now: float) -> None:
        """Append one sample per series at `now`."""

    def targets(self) -> Sequence[Target]:
        """What is scraped at present, in a stable order."""
