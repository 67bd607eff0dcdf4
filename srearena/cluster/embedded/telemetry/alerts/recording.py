"""Results of recording rules, stored as series."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from srearena.cluster.embedded.telemetry.metrics.blocks import NAN_SAMPLE, Block, Integers
from srearena.cluster.embedded.telemetry.metrics.labels import NAME, Labels, labels_of
from srearena.cluster.embedded.telemetry.metrics.promql.errors import QueryError
from srearena.cluster.embedded.telemetry.metrics.promql.values import Vector
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore

SAME_LABELS = "vector contains metrics with the same labelset after applying rule labels"


class Recording:
    """One block per series: a series that is not in the result at an instant goes stale there."""

    def __init__(self, store: MetricStore, name: str) -> None:
        self.store = store
        self.name = name
        self._blocks: dict[Labels, Block] = {}

    def write(self, vector: Vector, times: Integers, labels: Mapping[str, str]) -> None:
        series = [labels_of({**dict(each), **labels, NAME: self.name}) for each in vector.series]
        if len(set(series)) < len(series):
            raise QueryError(SAME_LABELS)
        moments = (times / 1000).tolist()
        for key, values, present in zip(series, vector.values, vector.present, strict=True):
            block = self._blocks.get(key)
            if block is None:
                block = self._blocks[key] = self.store.block([dict(key)])
            cells = np.where(present, np.where(np.isnan(values), NAN_SAMPLE, values), np.nan).tolist()
            for at, cell in zip(moments, cells, strict=True):
                block.append(at, (cell,))
        for key in [key for key in self._blocks if key not in set(series)]:
            self._blocks.pop(key).end(moments[0])
