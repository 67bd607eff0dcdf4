"""Binary operators between numbers, and between a vector and a number."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from srearena.cluster.embedded.telemetry.metrics.blocks import Flags, Floats
from srearena.cluster.embedded.telemetry.metrics.promql.values import Scalar, Vector

ARITHMETIC: dict[str, Callable[[Floats, Floats], Floats]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "%": np.fmod,
    "^": np.power,
    "atan2": np.arctan2,
}
COMPARISON: dict[str, Callable[[Floats, Floats], Flags]] = {
    "==": np.equal,
    "!=": np.not_equal,
    ">": np.greater,
    "<": np.less,
    ">=": np.greater_equal,
    "<=": np.less_equal,
}
TRIMS = frozenset(("</", ">/"))
"""Operators on native histograms."""


def keeps_name(operator: str, version: int) -> bool:
    """Return whether the result has the metric's name; that of atan2 had it in version 2."""
    return operator in COMPARISON or (operator == "atan2" and version == 2)


SETS = frozenset(("and", "or", "unless"))


def between_scalars(operator: str, left: Scalar, right: Scalar) -> Scalar:
    with np.errstate(all="ignore"):
        if operator in COMPARISON:
            return Scalar(COMPARISON[operator](left.values, right.values).astype(np.float64))
        return Scalar(ARITHMETIC[operator](left.values, right.values))


def with_scalar(
    operator: str, vector: Vector, scalar: Scalar, scalar_first: bool, return_bool: bool, version: int
) -> Vector:
    """Apply an operator to a vector and a number; a comparison keeps the vector's values on either side."""
    numbers = np.broadcast_to(scalar.values, vector.values.shape)
    left, right = (numbers, vector.values) if scalar_first else (vector.values, numbers)
    with np.errstate(all="ignore"):
        if operator in ARITHMETIC:
            result = Vector(vector.series, ARITHMETIC[operator](left, right), vector.present)
            return result if keeps_name(operator, version) else result.nameless().unified()
        verdict = COMPARISON[operator](left, right)
    if return_bool:
        return Vector(vector.series, verdict.astype(np.float64), vector.present).nameless().unified()
    return Vector(vector.series, vector.values, vector.present & verdict).pruned()
