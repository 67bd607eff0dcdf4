"""A snapshot of a running environment, whose logs, spans and samples are fetched when a question first needs them.

Questions name tables, and metric questions also objects; the snapshot has its source fetch these before it reads the
files. Most questions are about alerts, events and objects alone, while nearly all of the data are samples of metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Protocol

from sre_tools.errors import ToolError
from srearena.observer.errors import ObserverError
from srearena.observer.recording.telemetry import MeasuredObject
from srearena.service.errors import ServiceError
from srearena.snapshots import Snapshot
from srearena.snapshots.cache import CachedTable


class LiveSource(Protocol):
    """Writes data of an environment to the files of a snapshot."""

    observed_since: datetime
    """The begin of the time that the data are about."""

    def fetch_table(self, name: str) -> bool:
        """Fetch a table, of metrics the samples of all objects; returns whether files may have changed."""

    def fetch_metrics_of(self, objects: Collection[MeasuredObject]) -> bool:
        """Fetch the samples of these objects; returns whether files may have changed."""

    def measured_objects(self) -> Collection[MeasuredObject]:
        """The objects that have samples, fetched or not."""

    def metric_times(self) -> tuple[datetime, datetime] | None:
        """The first and the last time of samples, fetched or not."""


class LiveSnapshot(Snapshot):
    """Reads what its source has fetched; has it fetch what is missing."""

    def __init__(self, directory: Path, cache_directory: Path, source: LiveSource) -> None:
        super().__init__(directory, cache_directory)
        self._source = source

    @property
    def observed_since(self) -> datetime | None:
        return self._source.observed_since

    def table(self, name: str) -> CachedTable | None:
        self._fetch(lambda: self._source.fetch_table(name))
        return super().table(name)

    def measured_objects(self) -> list[tuple[str, str]]:
        with _reported():
            return sorted(self._source.measured_objects())

    def metric_times(self) -> tuple[datetime, datetime] | None:
        with _reported():
            return self._source.metric_times()

    def series_of(self, objects: Collection[tuple[str, str]]) -> str:
        self._fetch(lambda: self._source.fetch_metrics_of(objects))
        return super().series_of(objects)

    def _fetch(self, fetch: Callable[[], bool]) -> None:
        with _reported():
            if fetch():
                self.rescan()


@contextmanager
def _reported() -> Iterator[None]:
    try:
        yield
    except (ObserverError, ServiceError) as problem:
        raise ToolError(f"the environment cannot be read any more: {problem}") from problem
