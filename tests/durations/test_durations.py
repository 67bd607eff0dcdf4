"""Timestamps, ages and Go durations read and write as Kubernetes components read and write them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srearena.cluster.embedded import durations

MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 365 * 86400


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-2.5, "<invalid>"),
        (-1.5, "0s"),
        (0, "0s"),
        (5.9, "5s"),
        (119, "119s"),
        (2 * MINUTE, "2m"),
        (2 * MINUTE + 3, "2m3s"),
        (9 * MINUTE + 59, "9m59s"),
        (10 * MINUTE + 59, "10m"),
        (179 * MINUTE, "179m"),
        (3 * HOUR, "3h"),
        (4 * HOUR + 5 * MINUTE, "4h5m"),
        (8 * HOUR + 59 * MINUTE, "8h"),
        (47 * HOUR, "47h"),
        (2 * DAY, "2d"),
        (3 * DAY + 4 * HOUR, "3d4h"),
        (7 * DAY + 23 * HOUR, "7d23h"),
        (8 * DAY + 23 * HOUR, "8d"),
        (729 * DAY, "729d"),
        (2 * YEAR, "2y"),
        (2 * YEAR + 10 * DAY, "2y10d"),
        (8 * YEAR + 10 * DAY, "8y"),
    ],
)
def test_an_age_shows_two_or_three_figures(seconds: float, shown: str) -> None:
    assert durations.human_duration(seconds) == shown


def test_an_age_without_a_timestamp_is_unknown() -> None:
    assert durations.age(None, 0.0) == durations.age("", 0.0) == durations.age("soon", 0.0) == "<unknown>"
    assert durations.age("1970-01-01T00:00:10Z", 25.0) == "15s"


def test_a_moment_is_written_in_utc_with_whole_seconds_or_micros() -> None:
    assert durations.format_time(1735787045.987) == "2025-01-02T03:04:05Z"
    assert durations.format_micro_time(1735787045.25) == "2025-01-02T03:04:05.250000Z"
    assert durations.format_time(0) == "1970-01-01T00:00:00Z"
    assert durations.format_micro_time(0.9999999) == "1970-01-01T00:00:01.000000Z"


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2025-01-02T03:04:05Z", 1735787045.0),
        ("2025-01-02T03:04:05.250000Z", 1735787045.25),
        ("2025-01-02T05:04:05+02:00", 1735787045.0),
        ("2025-01-01T21:34:05-05:30", 1735787045.0),
        ("1969-12-31T23:59:59Z", -1.0),
    ],
)
def test_a_timestamp_is_read_in_any_zone(text: str, moment: float) -> None:
    assert durations.parse_time(text) == moment


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("soon", 'parsing time "soon" as "2006-01-02T15:04:05Z07:00": cannot parse "soon" as "2006"'),
        ("2025-1-02", 'parsing time "2025-1-02" as "2006-01-02T15:04:05Z07:00": cannot parse "1-02" as "01"'),
        (
            "2025-01-02 03:04:05Z",
            'parsing time "2025-01-02 03:04:05Z" as "2006-01-02T15:04:05Z07:00": cannot parse " 03:04:05Z" as "T"',
        ),
        ("2025-13-02T03:04:05Z", 'parsing time "2025-13-02T03:04:05Z": month out of range'),
        ("2025-02-30T03:04:05Z", 'parsing time "2025-02-30T03:04:05Z": day out of range'),
        ("2025-01-02T03:04:05Zx", 'parsing time "2025-01-02T03:04:05Zx": extra text: "x"'),
    ],
)
def test_a_wrong_timestamp_is_refused_in_go_words(text: str, complaint: str) -> None:
    with pytest.raises(durations.TimeError) as caught:
        durations.parse_time(text)
    assert str(caught.value) == complaint


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (10, "10s"),
        (90, "1m30s"),
        (3600, "1h0m0s"),
        (0.5, "500ms"),
        (1.5, "1.5s"),
        (0.0001, "100µs"),
        (1e-9, "1ns"),
        (-90, "-1m30s"),
        (61.25, "1m1.25s"),
        (30 * 3600, "30h0m0s"),
    ],
)
def test_a_span_is_written_as_go_prints_it(seconds: float, text: str) -> None:
    assert durations.format_duration(seconds) == text
    assert durations.parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", 'time: invalid duration ""'),
        ("-", 'time: invalid duration "-"'),
        (".s", 'time: invalid duration ".s"'),
        ("10", 'time: missing unit in duration "10"'),
        ("1h30", 'time: missing unit in duration "1h30"'),
        ("10parsecs", 'time: unknown unit "parsecs" in duration "10parsecs"'),
        ("9999999999h", 'time: invalid duration "9999999999h"'),
        ("9" * 9999 + "s", f'time: invalid duration "{"9" * 9999}s"'),
    ],
)
def test_a_wrong_duration_is_refused_in_go_words(text: str, complaint: str) -> None:
    with pytest.raises(durations.DurationError) as caught:
        durations.parse_duration(text)
    assert str(caught.value) == complaint


@given(st.integers(-(10**9), 10**10))
def test_whole_seconds_survive_writing_and_reading(moment: int) -> None:
    assert durations.parse_time(durations.format_time(moment)) == moment
    assert durations.parse_time(durations.format_micro_time(moment)) == moment


@given(st.integers(-(10**12), 10**12))
def test_spans_survive_writing_and_reading(micros: int) -> None:
    seconds = micros / 10**6
    assert durations.parse_duration(durations.format_duration(seconds)) == pytest.approx(seconds, abs=1e-9)


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    for parse, error in (
        (durations.parse_time, durations.TimeError),
        (durations.parse_duration, durations.DurationError),
    ):
        try:
            assert isinstance(parse(text), float)
        except error:
            assert text not in {"0s", "1970-01-01T00:00:00Z"}


@given(st.integers(0, 10 * YEAR))
def test_an_age_is_rounded_down_by_an_eighth_at_most(seconds: int) -> None:
    sizes = {"s": 1, "m": MINUTE, "h": HOUR, "d": DAY, "y": YEAR}
    parts = re.findall(r"(\d+)([smhdy])", durations.human_duration(seconds))
    shown = sum(int(number) * sizes[unit] for number, unit in parts)
    assert shown <= seconds <= shown * 1.125 + MINUTE
