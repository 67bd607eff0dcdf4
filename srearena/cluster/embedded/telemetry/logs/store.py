"""Log lines by stream, as in Loki: a set of labels, and lines in the order of their times.

Within a stream instants strictly increase (two lines of one instant are a nanosecond apart), so that reading page by
page misses nothing. Lines are the container runtime's own bytes, shared and not copied. The store is bounded per
stream, in all and in age; what had to go is counted, and a line in the stream `{job="loki"}` says so.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping

from srearena.cluster.embedded.durations import format_micro_time
from srearena.cluster.embedded.telemetry.logs.levels import LEVEL, LEVELS, level_of

MAX_STREAM_BYTES = 8 * 1024 * 1024
MAX_BYTES = 64 * 1024 * 1024
MAX_AGE = 24 * 3600.0
_OVERHEAD = 64
"""Memory of a stored line beside its bytes."""
OWN_LABELS = {"job": "loki", "app": "loki", "container": "loki", "service_name": "loki"}

Labels = Mapping[str, str]


def nanos(moment: float) -> int:
    """Return a time in nanoseconds; a double has only microsecond precision."""
    return round(moment * 1e6) * 1000


class LogStream:
    __slots__ = ("_by_level", "_levels", "bytes", "dropped_bytes", "dropped_lines", "labels", "lines", "times")

    def __init__(self, labels: Labels, detects_levels: bool = False) -> None:
        self.labels = dict(sorted(labels.items()))
        self._by_level = [{**self.labels, LEVEL: level} for level in LEVELS] if detects_levels else None
        self._levels = bytearray()
        """By line: 1 and more are places in `LEVELS`, 0 is not yet detected. May be shorter than `lines`."""
        self.times = array("q")
        self.lines: list[bytes] = []
        self.bytes = 0
        self.dropped_lines = 0
        self.dropped_bytes = 0

    def append(self, moment: float, line: bytes) -> None:
        when = nanos(moment)
        if self.times and when <= self.times[-1]:
            when = self.times[-1] + 1
        self.times.append(when)
        self.lines.append(line)
        self.bytes += len(line)

    @property
    def weight(self) -> int:
        return self.bytes + _OVERHEAD * len(self.lines)

    def window(self, start: int, end: int) -> tuple[int, int]:
        """Return the indexes of the lines within [start, end)."""
        return bisect_left(self.times, start), bisect_left(self.times, end)

    def labels_of(self, index: int) -> dict[str, str]:
        """Return the labels of a line: the stream's, and its level."""
        if self._by_level is None:
            return self.labels
        levels = self._levels
        if index >= len(levels):
            levels.extend(bytes(len(self.lines) - len(levels)))
        place = levels[index]
        if not place:
            place = levels[index] = LEVELS.index(level_of(self.lines[index])) + 1
        return self._by_level[place - 1]

    def forget(self, count: int) -> None:
        """Drop the oldest lines."""
        freed = sum(map(len, self.lines[:count]))
        del self._levels[:count]
        del self.times[:count]
        del self.lines[:count]
        self.bytes -= freed
        self.dropped_lines += count
        self.dropped_bytes += freed


class LogStore:
    def __init__(
        self,
        max_bytes: int = MAX_BYTES,
        max_stream_bytes: int = MAX_STREAM_BYTES,
        max_age: float = MAX_AGE,
        detects_levels: bool = False,
    ) -> None:
        self.max_bytes = max_bytes
        self.max_stream_bytes = max_stream_bytes
        self.max_age = max_age
        self._detects_levels = detects_levels
        self.dropped_lines = 0
        """Lines dropped beyond the limit of size; expired lines are not counted."""
        self.dropped_bytes = 0
        self._expired = 0
        self.before_reading: Callable[[], object] = lambda: None
        """Called before reading: the shipper adds the lines written since its last round."""
        self._streams: dict[tuple[tuple[str, str], ...], LogStream] = {}

    def stream(self, labels: Labels) -> LogStream:
        """Return the stream with exactly these labels."""
        key = tuple(sorted(labels.items()))
        found = self._streams.get(key)
        if found is None:
            found = self._streams[key] = LogStream(labels, self._detects_levels)
        return found

    def streams(self) -> Iterable[LogStream]:
        """Return the streams with lines, in the order of their creation."""
        self.before_reading()
        return [stream for stream in self._streams.values() if stream.lines]

    @property
    def stream_count(self) -> int:
        return len(self._streams)

    @property
    def received_lines(self) -> int:
        """Number of lines ever received."""
        return len(self) + self.dropped_lines + self._expired

    @property
    def weight(self) -> int:
        return sum(stream.weight for stream in self._streams.values())

    def __len__(self) -> int:
        return sum(len(stream.lines) for stream in self._streams.values())

    def make_room(self, now: float) -> None:
        """Drop expired lines and those beyond the limits; called after every round of the shipper."""
        self._expire(now)
        for stream in list(self._streams.values()):
            if stream.weight > self.max_stream_bytes:
                self._cut(stream, self.max_stream_bytes // 2, now)
        total = self.weight
        if total <= self.max_bytes:
            return
        for stream in sorted(self._streams.values(), key=lambda stream: -stream.weight):
            before = stream.weight
            self._cut(stream, before // 2, now)
            total -= before - stream.weight
            if total <= self.max_bytes * 3 // 4:
                return

    def _expire(self, now: float) -> None:
        oldest = nanos(now - self.max_age)
        for key, stream in list(self._streams.items()):
            if stream.times and stream.times[0] < oldest:
                count = bisect_left(stream.times, oldest)
                stream.forget(count)
                self._expired += count
                if not stream.lines:
                    del self._streams[key]

    def _cut(self, stream: LogStream, weight: int, now: float) -> None:
        count = excess = 0
        for line in stream.lines:
            if stream.weight - excess <= weight:
                break
            excess += len(line) + _OVERHEAD
            count += 1
        if not count:
            return
        before = stream.dropped_bytes
        stream.forget(count)
        freed = stream.dropped_bytes - before
        self.dropped_lines += count
        self.dropped_bytes += freed
        selector = label_text(stream.labels).replace('"', '\\"')
        message = (
            f"ts={format_micro_time(now)} level=warn component=store "
            f'msg="stream over its limit, oldest lines discarded" stream="{selector}" lines={count} bytes={freed}'
        )
        self.stream(OWN_LABELS).append(now, message.encode())


def label_text(labels: Labels) -> str:
    """Format labels as Prometheus and Loki do."""
    return "{" + ", ".join(f"{name}={_quoted(value)}" for name, value in sorted(labels.items())) + "}"


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def entries(stream: LogStream, start: int, end: int, *, backward: bool = False) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a stream within [start, end), in either order."""
    low, high = stream.window(start, end)
    indexes = range(high - 1, low - 1, -1) if backward else range(low, high)
    for index in indexes:
        yield stream.times[index], stream.lines[index]
