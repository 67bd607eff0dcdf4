"""The parameters of Prometheus' HTTP API: times, durations, selectors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from srearena.cluster.embedded.durations import TimeError, parse_time
from srearena.cluster.embedded.go_text import quoted
from srearena.cluster.embedded.telemetry.metrics.matchers import Matcher
from srearena.cluster.embedded.telemetry.metrics.promql.durations import duration_ms
from srearena.cluster.embedded.telemetry.metrics.promql.errors import BadQuery
from srearena.cluster.embedded.telemetry.metrics.promql.nodes import Selector
from srearena.cluster.embedded.telemetry.metrics.promql.parsing import parse_selector
from srearena.cluster.embedded.telemetry.query_api import Params, first

_LATEST = 2**53


def moment(params: Params, name: str, default: int | None = None) -> int:
    """A time in milliseconds: Unix seconds or RFC 3339."""
    text = first(params, name)
    if not text and default is not None:
        return default
    found = _milliseconds(text)
    if found is None:
        prefix = "" if default is None else f"Invalid time value for '{name}': "
        raise invalid(name, f"{prefix}cannot parse {quoted(text)} to a valid timestamp")
    return found


def _milliseconds(text: str) -> int | None:
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = parse_time(text)
        except TimeError:
            return None
    return round(seconds * 1000) if abs(seconds * 1000) <= _LATEST else None


def step(params: Params) -> int:
    text = first(params, "step")
    try:
        seconds = float(text)
    except ValueError:
        found = duration_ms(text)
        if found is None:
            raise invalid("step", f"cannot parse {quoted(text)} to a valid duration") from None
        seconds = found / 1000
    if not math.isfinite(seconds) or abs(seconds) > 2**63 / 1e9:
        raise invalid("step", f"cannot parse {quoted(text)} to a valid duration. It overflows int64")
    if seconds <= 0:
        raise invalid("step", "zero or negative query resolution step widths are not accepted. Try a positive integer")
    return max(1, round(seconds * 1000))


def limit(params: Params) -> int:
    """How many results are wanted at most; 0 without a limit."""
    text = first(params, "limit")
    if not text:
        return 0
    if not text.lstrip("+-").isdecimal():
        raise invalid("limit", f"cannot parse {quoted(text)} to a valid limit")
    if int(text) < 0:
        raise invalid("limit", "limit must be non-negative")
    return int(text)


def selectors(params: Params, required: bool) -> list[Selector]:
    texts = params.get("match[]", ())
    if required and not texts:
        raise BadQuery("no match[] parameter provided")
    with named("match[]"):
        return [parse_selector(text) for text in texts]


def parse_target_selector(text: str) -> tuple[Matcher, ...]:
    """Parse the selector of targets, which may be missing."""
    with named("match_target"):
        return parse_selector(text).matchers if text else ()


@contextmanager
def named(name: str) -> Iterator[None]:
    """Name the parameter in errors of its value."""
    try:
        yield
    except BadQuery as error:
        raise invalid(name, str(error)) from None


def invalid(name: str, reason: str) -> BadQuery:
    return BadQuery(f"invalid parameter {quoted(name)}: {reason}")
