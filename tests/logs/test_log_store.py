"""The log store: order, windows, and what it does in a flood."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from srearena.cluster.embedded.clock import Clock
from srearena.cluster.embedded.telemetry.logs.logql.engine import find_lines
from srearena.cluster.embedded.telemetry.logs.logql.parser import parse
from srearena.cluster.embedded.telemetry.logs.logql.syntax import LogQuery
from srearena.cluster.embedded.telemetry.logs.loki_api import LokiApi
from srearena.cluster.embedded.telemetry.logs.store import LogStore, nanos

NOW = 1_800_000_000.0
LABELS = {"app": "a"}


def query(text: str) -> LogQuery:
    found = parse(text)
    assert isinstance(found, LogQuery)
    return found


@given(st.lists(st.tuples(st.floats(0, 100), st.binary(max_size=5)), max_size=50).map(lambda e: sorted(e)))
def test_instants_strictly_increase_and_every_window_is_right(entries: list[tuple[float, bytes]]) -> None:
    store = LogStore()
    stream = store.stream(LABELS)
    for offset, line in entries:
        stream.append(NOW + offset, line)
    assert all(later > earlier for earlier, later in zip(stream.times, stream.times[1:], strict=False))
    low, high = stream.window(nanos(NOW + 20), nanos(NOW + 60))
    assert list(stream.times[low:high]) == [t for t in stream.times if nanos(NOW + 20) <= t < nanos(NOW + 60)]
    assert stream.bytes == sum(len(line) for _, line in entries)


@given(st.lists(st.sampled_from([b"error one", b"fine", b"error two", b""]), max_size=40), st.integers(1, 50))
def test_forward_and_backward_are_the_same_lines(lines: list[bytes], limit: int) -> None:
    store = LogStore()
    for number, line in enumerate(lines):
        store.stream({"app": "a", "pod": str(number % 3)}).append(NOW + number, line)
    errors = query('{app="a"} |= "error"')

    def found(limit: int, *, backward: bool) -> list[int]:
        entries = find_lines(store, errors, 0, 2**62, limit, backward=backward)
        return sorted(moment for one in entries for moment, _ in one.lines)

    expected = [nanos(NOW + number) for number, line in enumerate(lines) if b"error" in line]
    assert found(1000, backward=True) == found(1000, backward=False) == expected
    assert found(limit, backward=False) == expected[:limit]
    assert found(limit, backward=True) == expected[-limit:]


def test_a_flood_costs_its_own_stream_its_oldest_lines_and_is_said() -> None:
    store = LogStore(max_stream_bytes=100_000)
    store.stream({"app": "quiet"}).append(NOW, b"still here")
    flood = store.stream({"app": "loud"})
    for number in range(2000):
        flood.append(NOW + number / 1000, b"x" * 100 + b" %d" % number)
    store.make_room(NOW + 2)
    assert flood.weight <= 100_000
    assert flood.lines[-1].endswith(b" 1999")
    assert store.dropped_lines == flood.dropped_lines == 2000 - len(flood.lines) > 0
    assert store.dropped_bytes == flood.dropped_bytes
    notices = find_lines(store, query('{job="loki"} | logfmt | level="warn"'), 0, 2**62, 10, backward=True)
    assert notices[0].labels["stream"] == '{app="loud"}'
    assert notices[0].labels["lines"] == str(flood.dropped_lines)
    assert LokiApi(store, Clock(NOW + 3)).handle("GET", "/loki/api/v1/labels", {})[0] == 200
    assert store.stream({"app": "quiet"}).lines == [b"still here"]


def test_many_streams_together_stay_within_the_whole() -> None:
    store = LogStore(max_bytes=200_000, max_stream_bytes=100_000)
    for number in range(50):
        stream = store.stream({"pod": f"p{number}"})
        for second in range(100):
            stream.append(NOW + second, b"y" * 50)
        store.make_room(NOW + 100)
    assert store.weight <= 200_000 + 50 * 1000
    assert store.dropped_lines > 0


def test_old_lines_expire_quietly() -> None:
    store = LogStore(max_age=60)
    stream = store.stream(LABELS)
    for number in range(100):
        stream.append(NOW + number, b"line")
    store.make_room(NOW + 100)
    assert len(stream.lines) == 60
    assert store.dropped_lines == 0
    store.make_room(NOW + 1000)
    assert list(store.streams()) == []
