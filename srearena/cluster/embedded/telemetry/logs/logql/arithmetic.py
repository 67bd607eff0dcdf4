"""LogQL's binary operators on numbers and on arrays of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]

COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": np.equal,
    "!=": np.not_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "<": np.less,
    "<=": np.less_equal,
}


def _divided(left: Any, right: Any) -> Any:
    """Unlike in PromQL, nothing is infinite: division by zero is not a number."""
    return np.where(np.equal(right, 0), np.nan, np.divide(left, right))


def _remainder(left: Any, right: Any) -> Any:
    return np.where(np.equal(right, 0), np.nan, np.fmod(left, right))


ARITHMETIC: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": _divided,
    "%": _remainder,
    "^": np.power,
}


def fold(operator: str, left: float, right: float) -> float:
    """Two literals made one; a comparison gives 1 or 0."""
    with np.errstate(all="ignore"):
        if operator in COMPARISONS:
            return float(COMPARISONS[operator](left, right))
        return float(ARITHMETIC[operator](np.float64(left), np.float64(right)))
