"""Volume of logs in bytes by label, which Grafana and logcli query before they read lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from srearena.cluster.embedded.telemetry.logs.store import LogStream
from srearena.cluster.embedded.telemetry.metrics.matchers import Matcher

Volume = tuple[dict[str, str], int]
_Group = tuple[tuple[str, str], ...]


def volumes(
    streams: Iterable[LogStream],
    matchers: Sequence[Matcher],
    targets: Sequence[str],
    start: int,
    end: int,
    limit: int,
) -> list[Volume]:
    """Return the largest volumes within [start, end), grouped by `targets`, or else by the labels of the selector."""
    found: Counter[_Group] = Counter()
    for labels, stream in _grouped(streams, matchers, targets):
        low, high = stream.window(start, end)
        if high > low:
            found[labels] += sum(map(len, stream.lines[low:high]))
    ordered = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    return [(dict(labels), size) for labels, size in ordered[:limit]]


def volumes_over_time(
    streams: Iterable[LogStream], matchers: Sequence[Matcher], targets: Sequence[str], steps: range, limit: int
) -> list[tuple[dict[str, str], list[tuple[int, int]]]]:
    """Return the volumes of the largest groups in each step, which begins at the moment given."""
    found: dict[_Group, Counter[int]] = {}
    for labels, stream in _grouped(streams, matchers, targets):
        for moment in steps:
            low, high = stream.window(moment, moment + steps.step)
            if high > low:
                found.setdefault(labels, Counter())[moment] += sum(map(len, stream.lines[low:high]))
    ordered = sorted(found.items(), key=lambda item: (-item[1].total(), item[0]))
    return [(dict(labels), sorted(sizes.items())) for labels, sizes in ordered[:limit]]


def _grouped(
    streams: Iterable[LogStream], matchers: Sequence[Matcher], targets: Sequence[str]
) -> Iterator[tuple[_Group, LogStream]]:
    names = list(targets) or list(dict.fromkeys(matcher.name for matcher in matchers))
    for stream in streams:
        yield tuple((name, stream.labels[name]) for name in names if name in stream.labels), stream
