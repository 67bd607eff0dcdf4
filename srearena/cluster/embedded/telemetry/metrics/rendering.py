"""Values, times and results in the JSON of Prometheus' responses.

Results are assembled as bytes: a response may have a million points, each of two short texts.
"""

from __future__ import annotations

import math
from decimal import Decimal
from functools import lru_cache

import numpy as np
import orjson

from srearena.cluster.embedded.telemetry.metrics.blocks import Flags, Floats, Integers
from srearena.cluster.embedded.telemetry.metrics.labels import Labels


def go_float(value: float) -> str:
    """Return Go's shortest form without an exponent, as in labels and messages."""
    text = repr(value)
    if text.endswith(".0"):
        return text[:-2]
    if "n" in text:
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    return format(Decimal(text), "f") if "e" in text else text


def json_float(value: float) -> str:
    """Return a sample's value in a response: with an exponent only where it is very small or large."""
    text = repr(value)
    if text.endswith(".0"):
        return text[:-2]
    if "e" not in text:
        return text if "n" not in text else go_float(value)
    if 1e-6 <= abs(value) < 1e21:
        return format(Decimal(text), "f")
    mantissa, _, exponent = text.partition("e")
    return f"{mantissa}e{exponent[0]}{exponent[1:]:0>2}"


def time_text(milliseconds: int) -> str:
    """Return a time in seconds, without a fraction where it has none."""
    whole, rest = divmod(milliseconds, 1000)
    return f"{whole}.{rest:03d}" if rest else str(whole)


def point(milliseconds: int, value: str) -> str:
    return f'[{time_text(milliseconds)},"{value}"]'


@lru_cache(maxsize=16_384)
def metric_json(labels: Labels) -> str:
    return orjson.dumps(dict(labels)).decode()


def series_json(labels: Labels, points: str, many: bool) -> str:
    return f'{{"metric":{metric_json(labels)},"{"values" if many else "value"}":{points}}}'


def points_json(prefixes: list[str], values: Floats) -> str:
    """Return the points of one series; a prefix is `[time,"`, built once for all series that share their times."""
    points = [f'{prefix}{text}"]' for prefix, text in zip(prefixes, _texts(values), strict=True)]
    return "[" + ",".join(points) + "]"


def _texts(values: Floats) -> list[str]:
    """Return `json_float` of each value, through orjson (the fastest) where no number needs an exponent or a word."""
    if not len(values):
        return []
    listed = orjson.dumps(np.ascontiguousarray(values), option=orjson.OPT_SERIALIZE_NUMPY).decode()
    if "e" in listed or "n" in listed:
        return [json_float(value) for value in values.tolist()]
    return f"{listed[1:-1]},".replace(".0,", ",")[:-1].split(",")


def time_prefixes(times: Integers) -> list[str]:
    return [f'[{time_text(time)},"' for time in times.tolist()]


def rows_json(series: list[Labels], times: Integers, values: Floats, present: Flags, limit: int = 0) -> list[str]:
    """Each series with its points, in label order; at most `limit`, if that is given."""
    prefixes = time_prefixes(times)
    complete: Flags = np.asarray(present.all(axis=1))
    written = []
    for row in sorted(range(len(series)), key=series.__getitem__)[: limit or None]:
        if complete[row]:
            points = points_json(prefixes, values[row])
        else:
            where = np.flatnonzero(present[row])
            points = points_json([prefixes[step] for step in where], values[row, where])
        written.append(series_json(series[row], points, many=True))
    return written
