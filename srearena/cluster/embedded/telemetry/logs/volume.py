"""Volume of logs in bytes by label, which Grafana and logcli query before they read lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from srearena.cluster.embedded.telemetry.logs.store import LogStream
from srearena.cluster.embedded.telemetry.metrics.matchers import Matcher

Volume = tuple[dict[str, str], int]


def volumes(
    streams: Iterable[LogStream],
    matchers: Sequence[Matcher],
    targets: Sequence[str],
    start: int,
    end: int,
    limit: int,
) -> list[Volume]:
    """Return the largest volumes within [start, end), grouped by `targets`, or else by the labels of the selector."""
    names = list(targets) or list(dict.fromkeys(matcher.name for matcher in matchers))
    found: Counter[tuple[tuple[str, str], ...]] = Counter()
    for stream in streams:
        low, high = stream.window(start, end)
        if high > low:
            labels = tuple((name, stream.labels[name]) for name in names if name in stream.labels)
            found[labels] += sum(map(len, stream.lines[low:high]))
    ordered = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    return [(dict(labels), size) for labels, size in ordered[:limit]]
