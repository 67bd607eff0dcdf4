"""Durations as distributions: a mean and a variance stand for a Weibull distribution.

A Weibull distribution with shape 1 is the exponential one, which is exactly the sojourn time of an M/M/1 queue; larger
shapes are narrower. Its tail and its quantiles have closed forms, so a timeout, a histogram and a sample cost a few
array operations each.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# From heavy-tailed to nearly constant; the steps are small enough for linear interpolation between them.
_SHAPES = np.concatenate([np.linspace(0.3, 3.0, 55), np.linspace(3.25, 20.0, 68)])
_SMALLEST = 1e-12


def _gamma(values: Array) -> Array:
    """The gamma function for arguments between 1 and 5 (Lanczos)."""
    coefficients = (
        76.18009172947146,
        -86.50532032941677,
        24.01409824083091,
        -1.231739572450155,
        1.208650973866179e-3,
        -5.395239384953e-6,
    )
    shifted = values + 5.5 - 1
    series = np.full_like(values, 1.000000000190015)
    for number, coefficient in enumerate(coefficients):
        series += coefficient / (values + number)
    result: Array = np.exp((values - 0.5) * np.log(shifted) - shifted) * 2.5066282746310005 * series
    return result


_MEANS = _gamma(1 + 1 / _SHAPES)
_VARIATIONS = np.sqrt(_gamma(1 + 2 / _SHAPES) / _MEANS**2 - 1)


def shapes_and_scales(means: Any, variances: Any) -> tuple[Array, Array]:
    """Return shape and scale of the distributions with these moments, within the range of `_SHAPES`."""
    means = np.maximum(np.asarray(means, dtype=np.float64), _SMALLEST)
    variation = np.sqrt(np.maximum(variances, 0.0)) / means
    # The table falls with the shape; np.interp needs rising values.
    shapes: Array = np.interp(variation, _VARIATIONS[::-1], _SHAPES[::-1])
    scales: Array = means / np.interp(shapes, _SHAPES, _MEANS)
    return shapes, scales


def tail_share(limits: Any, shapes: Array, scales: Array) -> Array:
    """Return the share of durations that exceed a limit."""
    result: Array = np.exp(-((np.maximum(limits, _SMALLEST) / scales) ** shapes))
    return result


_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(8)
_POINTS, _WEIGHTS = (_NODES + 1) / 2, _NODE_WEIGHTS / 2


def moments_within(limits: Array, shapes: Array, scales: Array) -> tuple[Array, Array, Array]:
    """Return the share of durations that exceed a limit, and mean and variance of those that do not."""
    late = tail_share(limits, shapes, scales)
    # E[min(X, limit)] and E[min(X, limit)**2] are integrals of the tail, by Gauss-Legendre quadrature.
    tails = tail_share(limits[:, None] * _POINTS, shapes[:, None], scales[:, None])
    first = limits * (tails @ _WEIGHTS)
    second = 2 * limits**2 * (tails @ (_WEIGHTS * _POINTS))
    in_time = np.maximum(1 - late, _SMALLEST)
    means = np.clip((first - limits * late) / in_time, 0.0, limits)
    squares = np.clip((second - limits**2 * late) / in_time, 0.0, limits**2)
    return late, means, np.maximum(squares - means**2, 0.0)


def shares_within(bounds: Array, shapes: Array, scales: Array) -> Array:
    """Return per distribution (rows) the share of durations within each bound (columns)."""
    ratios = np.log(bounds)[None, :] - np.log(scales)[:, None]
    result: Array = -np.expm1(-np.exp(np.minimum(shapes[:, None] * ratios, 50.0)))
    return result


def sample_duration(mean: float, variance: float, chance: float) -> float:
    """Return the duration at a uniform random number in (0, 1)."""
    if mean <= 0:
        return 0.0
    # Walks sample thousands of times a second: parameters are cached in steps of half a per cent of variation.
    power, factor = _sampling_parameters(round(max(variance, 0.0) ** 0.5 / mean * 200))
    return mean * factor * math.pow(-math.log(max(chance, 1e-9)), power)


@cache
def _sampling_parameters(variation: int) -> tuple[float, float]:
    shape = float(np.interp(variation / 200, _VARIATIONS[::-1], _SHAPES[::-1]))
    return 1 / shape, 1 / float(np.interp(shape, _SHAPES, _MEANS))
