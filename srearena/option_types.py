"""Types of values on the command line: numbers with the bounds that their meaning has.

A number out of bounds is refused when the command line is read, before anything is started.
"""

from __future__ import annotations

import math
from typing import Any

import click


class FiniteNumber(click.FloatRange):
    """A number within bounds; `nan` and `inf`, which Python's `float` reads, are none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


COUNT = click.IntRange(min=1)
WHOLE = click.IntRange(min=0)
SEED = click.IntRange(min=0)
PORT = click.IntRange(min=0, max=65535)
"""0 stands for any free port."""
AMOUNT = FiniteNumber(min=0)
"""Seconds, factors or US dollars."""
POSITIVE = FiniteNumber(min=0, min_open=True)
