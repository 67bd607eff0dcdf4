"""Cron schedules as CronJob reads them: five fields, names, steps, ranges, `@hourly` and its like, `@every`, zones.

A schedule answers one question, when it is due next after a moment, in seconds since the epoch. It holds no state
and asks no clock. As in the library that the real controller uses, a wall-clock time that a zone skips in spring is
not due that day, one that it repeats in autumn is due twice, and a date that does not come within five years never
comes. Parse errors carry that library's words, since they end up in the API's answers.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from enum import Enum
from functools import lru_cache
from typing import Final, Protocol
from zoneinfo import ZoneInfo

from srearena.cluster.embedded.durations import DurationError, parse_duration
from srearena.cluster.embedded.go_text import quoted

_MONTHS: Final = {
    "jan": 1,
    "feb": 2,
    "mar": 3,
    "apr": 4,
    "may": 5,
    "jun": 6,
    "jul": 7,
    "aug": 8,
    "sep": 9,
    "oct": 10,
    "nov": 11,
    "dec": 12,
}
_WEEKDAYS: Final = {"sun": 0, "mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5, "sat": 6}
_DESCRIPTORS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY: Final = "@every "
_HORIZON_YEARS: Final = 5
_MANY: Final = 100
_MAX_LENGTH: Final = 4096
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
_ZONE_NAME: Final = re.compile(r"[A-Za-z0-9_+-]+(?:/[A-Za-z0-9_+-]+)*", re.ASCII)


class CronError(ValueError):
    """The text is no schedule."""


class Schedule(Protocol):
    """Anything that is due at moments in time."""

    def next_after(self, moment: float) -> float | None:
        """The first moment it is due strictly after `moment`; None if that never comes."""
        ...


@dataclass(slots=True, frozen=True)
class Every:
    """A fixed delay after whatever came before."""

    seconds: int

    def next_after(self, moment: float) -> float | None:
        return float(moment // 1 + self.seconds)


@dataclass(slots=True, frozen=True)
class Bounds:
    low: int
    high: int
    names: dict[str, int]


@dataclass(slots=True, frozen=True)
class Field:
    """The values one field admits, and whether it was a star: a star in either day field leaves the other to decide."""

    values: frozenset[int]
    star: bool


_MINUTE: Final = Bounds(0, 59, {})
_HOUR: Final = Bounds(0, 23, {})
_DAY: Final = Bounds(1, 31, {})
_MONTH: Final = Bounds(1, 12, _MONTHS)
_WEEKDAY: Final = Bounds(0, 6, _WEEKDAYS)
_BOUNDS: Final = (_MINUTE, _HOUR, _DAY, _MONTH, _WEEKDAY)


@dataclass(slots=True, frozen=True)
class Fields:
    """The five fields, in a zone."""

    minute: Field
    hour: Field
    day: Field
    month: Field
    weekday: Field
    zone: tzinfo

    @property
    def never(self) -> bool:
        """Whether a field admits nothing at all, as a lone comma does."""
        return not all(f.values for f in (self.minute, self.hour, self.day, self.month, self.weekday))

    def next_after(self, moment: float) -> float | None:
        if self.never:
            return None
        here = (moment // 60 + 1) * 60
        last_year = self._local(here).year + _HORIZON_YEARS
        while True:
            local = self._local(here)
            if local.year > last_year:
                return None
            if local.month not in self.month.values:
                here = self._midnight(local.replace(day=1) + timedelta(days=32), day=1)
            elif not self._day_matches(local):
                here = max(self._midnight(local + timedelta(days=1)), here + 60)
            elif local.hour not in self.hour.values:
                here += 3600 - local.minute * 60
            elif local.minute not in self.minute.values:
                here += 60
            else:
                return here

    def _day_matches(self, local: datetime) -> bool:
        by_day = local.day in self.day.values
        by_weekday = local.isoweekday() % 7 in self.weekday.values
        if self.day.star or self.weekday.star:
            return by_day and by_weekday
        return by_day or by_weekday

    def _local(self, moment: float) -> datetime:
        return datetime.fromtimestamp(moment, self.zone)

    def _midnight(self, local: datetime, day: int | None = None) -> float:
        return datetime(local.year, local.month, day or local.day, tzinfo=self.zone).timestamp() // 60 * 60


def zone_named(name: str) -> tzinfo:
    """The time zone of that name; CronError where there is none."""
    if name in ("", "UTC"):
        return UTC
    if _ZONE_NAME.fullmatch(name) and name.lower() != "local":
        # A missing zone is a KeyError, the name of a folder of zones an OSError.
        with suppress(KeyError, OSError, ValueError):
            return ZoneInfo(name)
    raise CronError(f"unknown time zone {name}")


@lru_cache(maxsize=1024)
def parse(text: str, time_zone: str | None = None) -> Schedule:
    """The schedule a text describes; `time_zone` is the CronJob's own, used where the text names none."""
    if not text:
        raise CronError("empty spec string")
    if len(text) > _MAX_LENGTH:
        raise CronError("schedule is too long")
    zone = zone_named(time_zone) if time_zone else UTC
    if has_zone(text):
        head, space, rest = text.partition(" ")
        name = head.partition("=")[2]
        try:
            zone = zone_named(name)
        except CronError as error:
            raise CronError(f"provided bad location {name}: {error}") from None
        text = rest.strip() if space else ""
    if text.startswith("@"):
        return _described(text, zone)
    return _fields(text, zone)


def has_zone(text: str) -> bool:
    """Whether the schedule's own text names a zone, which the API refuses on new objects."""
    return text.startswith(("TZ=", "CRON_TZ="))


def _described(text: str, zone: tzinfo) -> Schedule:
    if text in _DESCRIPTORS:
        return _fields(_DESCRIPTORS[text], zone)
    if text.startswith(_EVERY):
        span = text[len(_EVERY) :]
        try:
            return Every(max(1, int(parse_duration(span))))
        except DurationError as error:
            raise CronError(f"failed to parse duration {text}: {error}") from None
    raise CronError(f"unrecognized descriptor: {text}")


def _fields(text: str, zone: tzinfo) -> Fields:
    parts = text.split()
    if len(parts) != len(_BOUNDS):
        raise CronError(f"expected exactly {len(_BOUNDS)} fields, found {len(parts)}: [{' '.join(parts)}]")
    minute, hour, day, month, weekday = map(_field, parts, _BOUNDS)
    return Fields(minute, hour, day, month, weekday, zone)


def _field(text: str, bounds: Bounds) -> Field:
    ranges = [_range(part, bounds) for part in text.split(",") if part]
    return Field(frozenset(value for values, _ in ranges for value in values), any(star for _, star in ranges))


def _range(text: str, bounds: Bounds) -> tuple[range, bool]:
    span, *steps = text.split("/")
    first, *others = span.split("-")
    star = first in ("*", "?")
    if star:
        low, high = bounds.low, bounds.high
    else:
        low = high = _number_or_name(first, bounds)
        if len(others) > 1:
            raise CronError(f"too many hyphens: {text}")
        if others:
            high = _number_or_name(others[0], bounds)
    step = 1
    if len(steps) > 1:
        raise CronError(f"too many slashes: {text}")
    if steps:
        step = _number(steps[0])
        if not others:
            high = bounds.high
        star = star and step <= 1
    if low < bounds.low:
        raise CronError(f"beginning of range ({low}) below minimum ({bounds.low}): {text}")
    if high > bounds.high:
        raise CronError(f"end of range ({high}) above maximum ({bounds.high}): {text}")
    if low > high:
        raise CronError(f"beginning of range ({low}) beyond end of range ({high}): {text}")
    if step == 0:
        raise CronError(f"step of range should be a positive number: {text}")
    return range(low, high + 1, step), star


def _number_or_name(text: str, bounds: Bounds) -> int:
    named = bounds.names.get(text.lower())
    return _number(text) if named is None else named


def _number(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        problem = "value out of range" if re.fullmatch(r"[+-]?[0-9]+", text, re.ASCII) else "invalid syntax"
        raise CronError(f"failed to parse int from {text}: strconv.Atoi: parsing {quoted(text)}: {problem}")
    number = int(text)
    if number < 0:
        raise CronError(f"negative number ({number}) not allowed: {text}")
    return number


class Missed(Enum):
    """How many starts lie between the earliest and now, beyond the one that is due."""

    NONE = "none"
    FEW = "few"
    MANY = "many"


@dataclass(slots=True, frozen=True)
class Due:
    """What a CronJob has to catch up with: the most recent moment it was due, if any, and how many it missed."""

    moment: float | None
    missed: Missed


def most_recent(schedule: Schedule, earliest: float, now: float) -> Due:
    """The most recent moment after `earliest` and up to `now` at which the schedule was due.

    The number of missed starts is estimated from the first interval, as the real controller estimates it: it walks
    only the last stretch, so an hour and a year of absence cost the same.
    """
    first = schedule.next_after(earliest)
    if first is None or now < first:
        return Due(None, Missed.NONE)
    second = schedule.next_after(first)
    if second is None or now < second:
        return Due(first, Missed.NONE)
    interval = max(1, round(second - first))
    missed = int(now - first) // interval + 1
    latest: float | None = None
    start = max(earliest, first + (missed - 2) * interval)
    candidate = schedule.next_after(start)
    while candidate is not None and candidate <= now:
        latest, candidate = candidate, schedule.next_after(candidate)
    return Due(latest, Missed.MANY if missed > _MANY else Missed.FEW)
