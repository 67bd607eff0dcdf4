"""Values as plugins' options write them."""

from __future__ import annotations

from srearena.cluster.embedded.durations import DurationError, parse_duration
from srearena.cluster.embedded.network.dns.caddyfile import CorefileError


def duration(text: str) -> float:
    """Seconds of a Go duration; the error is Go's."""
    try:
        return parse_duration(text)
    except DurationError as error:
        raise CorefileError(str(error)) from None
