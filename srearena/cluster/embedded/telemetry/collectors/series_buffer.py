"""A buffer of series that are written together, in pages so that a change of one object does not affect the others.

A collector puts a section into its buffer for each object (a pod, a Service, a container): the labels once, the values
whenever they change. `write` then appends one row per page. Only a page whose set of series changed gets a new block;
sections that change their series often end up on the same page. Removed series are marked stale, as Prometheus does
when a scrape no longer contains them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence

import numpy as np

from srearena.cluster.embedded.telemetry.metrics.blocks import Block, Floats
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore

Labels = Mapping[str, str]
PAGE_SERIES = 256
"""Series per page, about. Chosen: few enough to rebuild, many enough to append at once."""


class _Section:
    __slots__ = ("labels", "page", "start", "values")

    page: _Page

    def __init__(self, labels: Sequence[Labels], values: Sequence[float]) -> None:
        self.labels = labels
        self.values = values
        self.start = 0


class _Page:
    __slots__ = ("block", "changed", "count", "row", "sections")

    def __init__(self) -> None:
        self.sections: dict[Hashable, _Section] = {}
        self.block: Block | None = None
        self.row: Floats = np.empty(0)
        self.count = 0
        self.changed = True
        """Whether the set of series differs from the block's."""


class SeriesBuffer:
    def __init__(self, store: MetricStore, constant: Labels | None = None) -> None:
        self._store = store
        self._constant = dict(constant or {})
        """Labels of the target, added to every series."""
        self._sections: dict[Hashable, _Section] = {}
        self._pages: list[_Page] = []
        """The last page is open: new sections, and those whose series changed, go there."""
        self._changed = False
        """Whether the set of series of any page changed since the last row."""

    def __contains__(self, key: Hashable) -> bool:
        return key in self._sections

    def __len__(self) -> int:
        """Return the number of series."""
        return sum(page.count for page in self._pages)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._sections)

    def put(self, key: Hashable, labels: Sequence[Labels], values: Sequence[float]) -> None:
        """Add a section, or replace the one with that key."""
        section = self._sections.get(key)
        if section is not None:
            if section.labels == labels:
                self.set(key, values)
                return
            self._remove(key, section)
        self._sections[key] = section = _Section(labels, values)
        self._insert(key, section)

    def set(self, key: Hashable, values: Sequence[float]) -> None:
        """Set the values of an existing section, in the order of its labels."""
        section = self._sections[key]
        section.values = values
        page = section.page
        if not page.changed:
            start = section.start
            if len(values) == 1:
                page.row[start] = values[0]
            else:
                page.row[start : start + len(values)] = values

    def drop(self, key: Hashable) -> None:
        """Remove a section, if it exists."""
        section = self._sections.pop(key, None)
        if section is not None:
            self._remove(key, section)

    def write(self, now: float) -> int:
        """Append one sample of every series; return how many."""
        if self._changed:
            self._changed = False
            self._compact()
            for page in self._pages:
                if page.changed:
                    self._rebuild(page, now)
        written = 0
        for page in self._pages:
            if page.block is not None:
                page.block.append(now, page.row)
                written += page.count
        return written

    def end(self, now: float) -> None:
        """Mark every series stale and empty the buffer."""
        for page in self._pages:
            if page.block is not None:
                page.block.end(now)
        self._pages, self._sections = [], {}

    def _insert(self, key: Hashable, section: _Section) -> None:
        if not self._pages or self._pages[-1].count >= PAGE_SERIES:
            self._pages.append(_Page())
        page = section.page = self._pages[-1]
        page.sections[key] = section
        page.count += len(section.labels)
        page.changed = self._changed = True

    def _remove(self, key: Hashable, section: _Section) -> None:
        page = section.page
        del page.sections[key]
        page.count -= len(section.labels)
        page.changed = self._changed = True

    def _compact(self) -> None:
        """Move the sections of nearly empty pages to the open one."""
        for page in self._pages[:-1]:
            if page.changed and 0 < page.count < PAGE_SERIES // 4:
                for key, section in list(page.sections.items()):
                    self._remove(key, section)
                    self._insert(key, section)
        if any(not page.count and page.block is None for page in self._pages):
            self._pages = [page for page in self._pages if page.count or page.block is not None]

    def _rebuild(self, page: _Page, now: float) -> None:
        if page.block is not None:
            page.block.end(now)
            page.block = None
        page.changed = False
        labels: list[Labels] = []
        values: list[float] = []
        for section in page.sections.values():
            section.start = len(labels)
            labels.extend(section.labels)
            values.extend(section.values)
        page.row = np.array(values, dtype=np.float64)
        if labels:
            constant = self._constant
            page.block = self._store.block([{**constant, **series} for series in labels])
