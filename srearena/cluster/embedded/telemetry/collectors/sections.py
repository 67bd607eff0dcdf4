"""Series of counters, gauges and histograms in a buffer, each written only when it changed.

A target of a control-plane program has some hundred series of which few move between two scrapes. Every instrument is a
section of its own, so that the others cost nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from srearena.cluster.embedded.instruments import Histogram, bucket_labels
from srearena.cluster.embedded.telemetry.collectors.series_buffer import SeriesBuffer

Labels = Mapping[str, str]


class Sections:
    def __init__(self, buffer: SeriesBuffer) -> None:
        self.buffer = buffer
        self.fresh = True
        """Whether nothing was written yet, so that what did not change must be written, too."""
        self._written: dict[Hashable, object] = {}

    def reset(self, now: float) -> None:
        """End every series: the program ended, or another one took its place."""
        if self._written:
            self._written.clear()
            self.buffer.end(now)
        self.fresh = True

    def number(self, name: str, labels: Labels, value: float) -> None:
        """Write one series."""
        key = (name, *labels.values())
        before = self._written.get(key)
        if before == value:
            return
        self._written[key] = value
        if before is None:
            self.buffer.put(key, [{"__name__": name, **labels}], (value,))
        else:
            self.buffer.set(key, (value,))

    def numbers(self, key: str, rows: Sequence[Labels], values: Sequence[float]) -> None:
        """Write several series that move together; `rows` are their labels, with names."""
        if self._written.get(key) == len(rows):
            self.buffer.set(key, values)
        else:
            self._written[key] = len(rows)
            self.buffer.put(key, rows, values)

    def histogram(self, name: str, labels: Labels, histogram: Histogram) -> None:
        key = (name, *labels.values())
        before = self._written.get(key)
        if before == histogram.count:
            return
        self._written[key] = histogram.count
        if before is None:
            self.buffer.put(key, histogram_rows(name, labels, histogram.bounds), histogram.values())
        else:
            self.buffer.set(key, histogram.values())


def histogram_rows(name: str, labels: Labels, bounds: Sequence[float]) -> list[Labels]:
    """Return the labels of a histogram's series, in the order of `Histogram.values`."""
    rows: list[Labels] = [{"__name__": f"{name}_bucket", **labels, "le": bound} for bound in bucket_labels(bounds)]
    return [*rows, {"__name__": f"{name}_sum", **labels}, {"__name__": f"{name}_count", **labels}]
