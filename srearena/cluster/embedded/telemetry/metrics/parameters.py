"""The parameters of Prometheus' HTTP API: times, durations, selectors."""

from __future__ import annotations

import math
import re

from srearena.cluster.embedded.durations import TimeError, parse_time
from srearena.cluster.embedded.go_text import quoted
from srearena.cluster.embedded.telemetry.metrics.matchers import Matcher
from srearena.cluster.embedded.telemetry.metrics.promql.errors import BadQuery, QueryError
from srearena.cluster.embedded.telemetry.metrics.promql.nodes import Selector
from srearena.cluster.embedded.telemetry.metrics.promql.parsing import parse_selector
from srearena.cluster.embedded.telemetry.query_api import Params, first

_DURATION = re.compile(r"(?:(\d+)y)?(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?(?:(\d+)ms)?", re.ASCII)
_UNITS = (365 * 86_400_000, 7 * 86_400_000, 86_400_000, 3_600_000, 60_000, 1000, 1)
_LATEST = 2**53


def duration_ms(text: str) -> int | None:
    """A Prometheus duration such as 1h30m, in milliseconds."""
    found = _DURATION.fullmatch(text)
    if text == "0":
        return 0
    if not text or found is None:
        return None
    return sum(int(amount) * unit for amount, unit in zip(found.groups(), _UNITS, strict=True) if amount)


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


def selectors(params: Params, required: bool) -> list[Selector]:
    texts = params.get("match[]", ())
    if required and not texts:
        raise BadQuery("no match[] parameter provided")
    try:
        return [parse_selector(text) for text in texts]
    except QueryError as error:
        raise invalid("match[]", str(error)) from None


def alternatives(chosen: list[Selector]) -> list[tuple[Matcher, ...]]:
    return [matchers for selector in chosen for matchers in selector.alternatives]


def invalid(name: str, reason: str) -> BadQuery:
    return BadQuery(f"invalid parameter {quoted(name)}: {reason}")
