"""Schedules are due when cron says, in the zone they name, and are refused in the real parser's words."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srearena.cluster.embedded.registry import cron
from srearena.cluster.embedded.registry.cron import CronError, Due, Fields, Missed


def at(text: str, zone: str = "UTC") -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


@pytest.mark.parametrize(
    ("schedule", "after", "due"),
    [
        ("* * * * *", "2025-01-01T00:00:00", "2025-01-01T00:01:00"),
        ("*/5 * * * *", "2025-01-01T00:04:59", "2025-01-01T00:05:00"),
        ("*/5 * * * *", "2025-01-01T00:05:00", "2025-01-01T00:10:00"),
        ("3-59/15 * * * *", "2025-01-01T00:04:00", "2025-01-01T00:18:00"),
        ("30 6-16/4 * * 1-5", "2025-01-03T14:30:00", "2025-01-06T06:30:00"),
        ("0 0 1 1 *", "2025-01-01T00:00:00", "2026-01-01T00:00:00"),
        ("0 0 29 2 *", "2025-01-01T00:00:00", "2028-02-29T00:00:00"),
        ("0 9 * JAN,jul MON-FRI", "2025-02-01T00:00:00", "2025-07-01T09:00:00"),
        ("0 0 13 * FRI", "2025-01-01T00:00:00", "2025-01-03T00:00:00"),
        ("0 0 */2 * FRI", "2025-01-01T00:00:00", "2025-01-03T00:00:00"),
        ("0 0 * * ?", "2025-01-01T00:00:00", "2025-01-02T00:00:00"),
        ("5/20 * * * *", "2025-01-01T00:06:00", "2025-01-01T00:25:00"),
        ("@hourly", "2025-01-01T00:59:59", "2025-01-01T01:00:00"),
        ("@daily", "2025-01-01T00:00:01", "2025-01-02T00:00:00"),
        ("@weekly", "2025-01-01T00:00:00", "2025-01-05T00:00:00"),
        ("@monthly", "2025-12-31T23:59:59", "2026-01-01T00:00:00"),
        ("@annually", "2025-01-01T00:00:00", "2026-01-01T00:00:00"),
        ("@every 90m", "2025-01-01T00:00:00", "2025-01-01T01:30:00"),
    ],
)
def test_a_schedule_is_due_next(schedule: str, after: str, due: str) -> None:
    assert cron.parse(schedule).next_after(at(after)) == at(due)


def test_a_day_that_never_comes_is_never_due() -> None:
    for schedule in ("0 0 31 2 *", "0 0 30 2 *", ", * * * *"):
        assert cron.parse(schedule).next_after(0.0) is None
        assert cron.most_recent(cron.parse(schedule), 0.0, 1e9) == Due(None, Missed.NONE)


@pytest.mark.parametrize("schedule", ["TZ=America/New_York 0 8 * * *", "CRON_TZ=America/New_York 0 8 * * *"])
def test_a_zone_in_the_text_or_beside_it_moves_the_wall_clock(schedule: str) -> None:
    due = at("2025-01-02T08:00:00", "America/New_York")
    assert cron.parse(schedule).next_after(at("2025-01-02T00:00:00")) == due
    assert cron.parse("0 8 * * *", "America/New_York").next_after(at("2025-01-02T00:00:00")) == due


def test_a_skipped_hour_is_not_due_and_a_repeated_one_is_due_twice() -> None:
    schedule = cron.parse("30 1 * * *", "Europe/London")
    # Clocks go from 01:00 to 02:00 on 30 March 2025, and from 02:00 back to 01:00 on 26 October.
    spring = schedule.next_after(at("2025-03-29T12:00:00"))
    assert spring == at("2025-03-31T01:30:00", "Europe/London")
    autumn = schedule.next_after(at("2025-10-25T12:00:00"))
    assert autumn is not None
    assert schedule.next_after(autumn) == autumn + 3600


@pytest.mark.parametrize(
    ("schedule", "complaint"),
    [
        ("", "empty spec string"),
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
        ("0 * * * * *", "expected exactly 5 fields, found 6: [0 * * * * *]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("* * * * 7", "end of range (7) above maximum (6): 7"),
        ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("x * * * *", 'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax'),
        ("*/-1 * * * *", "negative number (-1) not allowed: -1"),
        ("@fortnightly", "unrecognized descriptor: @fortnightly"),
        ("@every soon", 'failed to parse duration @every soon: time: invalid duration "soon"'),
        ("TZ=Mars/Olympus 0 * * * *", "provided bad location Mars/Olympus: unknown time zone Mars/Olympus"),
        ("TZ=America 0 * * * *", "provided bad location America: unknown time zone America"),
        ("TZ=UTC", "expected exactly 5 fields, found 0: []"),
    ],
)
def test_a_wrong_schedule_is_refused(schedule: str, complaint: str) -> None:
    with pytest.raises(CronError) as caught:
        cron.parse(schedule)
    assert str(caught.value) == complaint


def test_an_unknown_time_zone_is_refused() -> None:
    for name in ("Nowhere/None", "../etc/passwd", "Local"):
        with pytest.raises(CronError, match="unknown time zone"):
            cron.parse("0 * * * *", name)


def test_the_most_recent_start_and_how_many_were_missed() -> None:
    schedule = cron.parse("*/10 * * * *")
    start = at("2025-01-01T00:00:00")
    assert cron.most_recent(schedule, start, start + 599) == Due(None, Missed.NONE)
    assert cron.most_recent(schedule, start, start + 600) == Due(start + 600, Missed.NONE)
    assert cron.most_recent(schedule, start, start + 1900) == Due(start + 1800, Missed.FEW)
    assert cron.most_recent(schedule, start, start + 600 * 101) == Due(start + 600 * 101, Missed.MANY)


fields = st.tuples(
    st.sampled_from(["*", "0", "59", "*/7", "10-40/3", "1,2,30"]),
    st.sampled_from(["*", "0", "23", "*/5", "9-17", "3,15"]),
    st.sampled_from(["*", "1", "31", "*/3", "10-20"]),
    st.sampled_from(["*", "2", "jan-mar", "*/4", "12"]),
    st.sampled_from(["*", "0", "MON", "1-5", "6"]),
).map(" ".join)
moments = st.integers(0, 4 * 10**9).map(float)
zones = st.sampled_from(["UTC", "Europe/Berlin", "America/Sao_Paulo", "Asia/Kolkata", "Australia/Lord_Howe"])


def last_before(schedule: Fields, moment: float) -> float | None:
    """Return the last moment the schedule was due at or before `moment`, found by going back; None after five years."""
    if schedule.never:
        return None
    here = moment // 60 * 60
    first_year = schedule._local(here).year - 5
    while True:
        local = schedule._local(here)
        if local.year < first_year:
            return None
        if local.month not in schedule.month.values:
            here = schedule._midnight(local, day=1) - 60
        elif not schedule._day_matches(local):
            here = min(schedule._midnight(local), here) - 60
        elif local.hour not in schedule.hour.values:
            here -= (local.minute + 1) * 60
        elif local.minute not in schedule.minute.values:
            here -= 60
        else:
            return here


@given(fields, moments, zones)
def test_what_is_due_next_is_later_matches_and_is_the_first(schedule: str, moment: float, zone: str) -> None:
    parsed = cron.parse(schedule, zone)
    assert isinstance(parsed, Fields)
    due = parsed.next_after(moment)
    if due is None:
        assert schedule.split()[2] == "31" and schedule.split()[4] == "*"
        return
    local = datetime.fromtimestamp(due, ZoneInfo(zone))
    assert due > moment and due % 60 == 0
    assert local.minute in parsed.minute.values
    assert local.hour in parsed.hour.values
    assert local.month in parsed.month.values
    assert last_before(parsed, due) == due
    before = last_before(parsed, due - 1)
    assert before is None or before <= moment


@given(moments)
def test_every_minute_is_the_next_whole_minute(moment: float) -> None:
    assert cron.parse("* * * * *").next_after(moment) == moment // 60 * 60 + 60


@given(st.text(alphabet="0123456789*/,-?@ JANmon=TZ", max_size=30))
def test_any_text_is_a_schedule_or_a_cron_error(text: str) -> None:
    try:
        due = cron.parse(text).next_after(datetime(2025, 1, 1, tzinfo=UTC).timestamp())
    except CronError as error:
        assert str(error)
    else:
        assert due is None or due > 0
