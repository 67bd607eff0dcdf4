"""Sums with compensation of rounding errors (Kahan and Neumaier), as the real server computes them.

numpy's sums are accurate enough as long as nothing cancels out; only where numbers of both signs do, or where a sum
overflows, are the values added one by one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from srearena.cluster.embedded.telemetry.metrics.blocks import Flags, Floats

_CANCELLED = 1e3
"""Ratio of the sum of magnitudes to the sum from which on digits were lost."""


def compensated(values: Iterable[float]) -> float:
    """Return the sum of some numbers."""
    total = correction = 0.0
    for value in values:
        total, correction = _increased(value, total, correction)
    return total if math.isinf(total) else total + correction


def mean(values: list[float]) -> float:
    """Return the average of some numbers, also where their sum overflows."""
    total, correction, average = values[0], 0.0, 0.0
    incremental = False
    for count, value in enumerate(values[1:], 2):
        if not incremental:
            larger, carried = _increased(value, total, correction)
            if not math.isinf(larger):
                total, correction = larger, carried
                continue
            incremental, average, correction = True, total / (count - 1), correction / (count - 1)
        share = (count - 1) / count
        average, correction = _increased(value / count, share * average, share * correction)
    return average + correction if incremental else total / len(values) + correction / len(values)


def _increased(value: float, total: float, correction: float) -> tuple[float, float]:
    larger = total + value
    if math.isinf(larger):
        return larger, 0.0
    if abs(total) >= abs(value):
        return larger, correction + ((total - larger) + value)
    return larger, correction + ((value - larger) + total)


def suspicious(values: Floats) -> bool:
    """Return whether sums of some of these values may have lost digits or overflowed."""
    return bool(values.min(initial=0.0) < 0 or not np.isfinite(values).all() or np.abs(values).max(initial=0.0) > 1e290)


def inaccurate(totals: Floats, magnitudes: Floats) -> Flags:
    """Return which sums have to be computed again, given the sums of the absolute values."""
    lost: Flags = magnitudes > _CANCELLED * np.abs(totals)
    return lost | ~np.isfinite(totals)
