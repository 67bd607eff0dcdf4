"""Log lines by stream, as Loki keeps them: a set of labels, and lines in the order of their instants.

Within a stream instants strictly increase (two lines of one instant are a nanosecond apart), so that reading page by
page misses nothing. Lines are the container runtime's own bytes, shared and not copied. The store is bounded per
stream, in all and in age; what had to go is counted, and a line in the stream `{job="loki"}` says so.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping

from srearena.cluster.embedded.durations import format_micro_time

MAX_STREAM_BYTES = 8 * 1024 * 1024
MAX_BYTES = 64 * 1024 * 1024
MAX_AGE = 24 * 3600.0
_OVERHEAD = 64
"""What keeping a line costs beside its bytes."""
OWN_LABELS = {"job": "loki", "app": "loki", "container": "loki", "service_name": "loki"}

Labels = Mapping[str, str]


def nanos(moment: float) -> int:
    """A moment as Loki counts; a double holds no more than its microseconds."""
    return round(moment * 1e6) * 1000


class LogStream:
    __slots__ = ("bytes", "dropped_bytes", "dropped_lines", "labels", "lines", "times")

    def __init__(self, labels: Labels) -> None:
        self.labels = dict(sorted(labels.items()))
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
        """The indexes of the lines from `start` up to, not including, `end`."""
        return bisect_left(self.times, start), bisect_left(self.times, end)

    def forget(self, count: int) -> None:
        """Let the oldest lines go."""
        freed = sum(map(len, self.lines[:count]))
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
    ) -> None:
        self.max_bytes = max_bytes
        self.max_stream_bytes = max_stream_bytes
        self.max_age = max_age
        self.dropped_lines = 0
        """Let go for want of room; what only grew old is not counted."""
        self.dropped_bytes = 0
        self._expired = 0
        self.before_reading: Callable[[], object] = lambda: None
        """The shipper's chance to bring what was written since its last round."""
        self._streams: dict[tuple[tuple[str, str], ...], LogStream] = {}

    def stream(self, labels: Labels) -> LogStream:
        """The stream with exactly these labels."""
        key = tuple(sorted(labels.items()))
        found = self._streams.get(key)
        if found is None:
            found = self._streams[key] = LogStream(labels)
        return found

    def streams(self) -> Iterable[LogStream]:
        """All that hold lines, in the order in which they began."""
        self.before_reading()
        return [stream for stream in self._streams.values() if stream.lines]

    @property
    def stream_count(self) -> int:
        return len(self._streams)

    @property
    def received_lines(self) -> int:
        """All that ever came, kept or not."""
        return len(self) + self.dropped_lines + self._expired

    @property
    def weight(self) -> int:
        return sum(stream.weight for stream in self._streams.values())

    def __len__(self) -> int:
        return sum(len(stream.lines) for stream in self._streams.values())

    def make_room(self, now: float) -> None:
        """Let go of what is too old or too much; called after every round of the shipper."""
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
        said = (
            f"ts={format_micro_time(now)} level=warn component=store "
            f'msg="stream over its limit, oldest lines discarded" stream="{selector}" lines={count} bytes={freed}'
        )
        self.stream(OWN_LABELS).append(now, said.encode())


def label_text(labels: Labels) -> str:
    """Labels as Prometheus and Loki write them."""
    return "{" + ", ".join(f"{name}={_quoted(value)}" for name, value in sorted(labels.items())) + "}"


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def entries(stream: LogStream, start: int, end: int, *, backward: bool = False) -> Iterator[tuple[int, bytes]]:
    """The lines of a stream within [start, end), in either order."""
    low, high = stream.window(start, end)
    indexes = range(high - 1, low - 1, -1) if backward else range(low, high)
    for index in indexes:
        yield stream.times[index], stream.lines[index]
