"""Parsing wrk2's output: one result per round.

The format is that of `wrk -L`: a latency distribution, a detailed spectrum, and a summary that lists errors only where
there are any.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_ROUND = re.compile(r"^Running wrk2 on round #(\d+)", re.MULTILINE)
_PERCENTILE = re.compile(r"^\s*(\d+\.\d+)%\s+([\d.]+)(us|ms|s|m|h)\s*$", re.MULTILINE)
_SPECTRUM = re.compile(r"^\s*([\d.]+)\s+([01]\.\d+)\s+(\d+)\s+(?:[\d.]+|inf)\s*$", re.MULTILINE)
_SUMMARY = re.compile(r"^\s*(\d+) requests in ([\d.]+)(us|ms|s|m|h), ([\d.]+)([KMGT]?B) read", re.MULTILINE)
_SOCKETS = re.compile(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)")
_STATUS = re.compile(r"Non-2xx or 3xx responses: (\d+)")
_RATE = re.compile(r"^Requests/sec:\s+([\d.]+)", re.MULTILINE)
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_BYTES = {"B": 1, "KB": 1024, "MB": 1024**2, "GB": 1024**3, "TB": 1024**4}


@dataclass(frozen=True, slots=True)
class Round:
    """One finished run of wrk."""

    number: int
    requests: int
    """Responses of any status."""
    seconds: float
    bytes: float
    throughput: float
    """Responses per second."""
    percentiles: Mapping[float, float]
    """Percent (50, 99.9) to seconds."""
    errors: Mapping[str, int]
    """By class: `status` (not 2xx or 3xx), `connect`, `read`, `write`, `timeout`; only those that occurred."""

    @property
    def success_ratio(self) -> float:
        """Successful responses as a share of all finished requests."""
        lost = sum(count for kind, count in self.errors.items() if kind != "status")
        finished = self.requests + lost
        return (self.requests - self.errors.get("status", 0)) / finished if finished else 0.0

    def percentile(self, percent: float) -> float:
        """The latency in seconds at a percentile: the next one that wrk printed."""
        candidates = sorted(p for p in self.percentiles if p >= percent)
        return self.percentiles[candidates[0]] if candidates else max(self.percentiles.values(), default=0.0)


@dataclass(frozen=True, slots=True)
class WrkResult:
    """All rounds of a load so far."""

    rounds: tuple[Round, ...]

    @property
    def last(self) -> Round:
        return self.rounds[-1]

    @property
    def requests(self) -> int:
        return sum(part.requests for part in self.rounds)

    @property
    def throughput(self) -> float:
        seconds = sum(part.seconds for part in self.rounds)
        return self.requests / seconds if seconds else 0.0

    @property
    def errors(self) -> dict[str, int]:
        total: dict[str, int] = {}
        for part in self.rounds:
            for kind, count in part.errors.items():
                total[kind] = total.get(kind, 0) + count
        return total


def read_log(text: str) -> WrkResult | None:
    """Parse the finished rounds in a log; None where there are none."""
    rounds = tuple(result for number, part in _parts(text) if (result := _round(number, part)) is not None)
    return WrkResult(rounds) if rounds else None


def _parts(text: str) -> Iterable[tuple[int, str]]:
    starts = list(_ROUND.finditer(text))
    if not starts:
        return [(1, text)]
    ends = [match.start() for match in starts[1:]] + [len(text)]
    return [(int(match[1]), text[match.end() : end]) for match, end in zip(starts, ends, strict=True)]


def _round(number: int, text: str) -> Round | None:
    summary, rate = _SUMMARY.search(text), _RATE.search(text)
    if summary is None or rate is None:
        return None
    percentiles = {float(m[2]) * 100: float(m[1]) * 1e-3 for m in _SPECTRUM.finditer(text)}
    percentiles.update({float(m[1]): float(m[2]) * _SECONDS[m[3]] for m in _PERCENTILE.finditer(text)})
    return Round(
        number=number,
        requests=int(summary[1]),
        seconds=float(summary[2]) * _SECONDS[summary[3]],
        bytes=float(summary[4]) * _BYTES[summary[5]],
        throughput=float(rate[1]),
        percentiles=percentiles,
        errors=_errors(text),
    )


def _errors(text: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    sockets, status = _SOCKETS.search(text), _STATUS.search(text)
    if sockets is not None:
        counts.update(zip(("connect", "read", "write", "timeout"), map(int, sockets.groups()), strict=True))
    if status is not None:
        counts["status"] = int(status[1])
    return {kind: count for kind, count in counts.items() if count}
