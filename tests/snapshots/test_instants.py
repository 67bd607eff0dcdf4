"""Time formats: the same instant for every precision and zone; other text is no time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from srearena.snapshots.tables import MACROS

FEW = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
TIMES = st.datetimes(datetime(2001, 9, 9, 2), datetime(2100, 1, 1))  # noqa: DTZ001 - as the tables have them, in UTC
ZONES = st.integers(-14 * 4, 14 * 4).map(lambda quarters: timezone(timedelta(minutes=15 * quarters)))


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for macro in MACROS:
            connection.execute(macro)
        yield connection


def _read(database: duckdb.DuckDBPyConnection, text: str) -> datetime | None:
    row = database.execute("SELECT instant(?)", [text]).fetchone()
    assert row is not None
    value: datetime | None = row[0]
    return value


@FEW
@given(time=TIMES, digits=st.integers(0, 9), separator=st.sampled_from("T "), end=st.sampled_from(["", "Z"]))
def test_naive_and_zulu_times_of_any_precision(
    database: duckdb.DuckDBPyConnection, time: datetime, digits: int, separator: str, end: str
) -> None:
    fraction = f"{time.microsecond:06d}000"[:digits]
    text = time.strftime(f"%Y-%m-%d{separator}%H:%M:%S") + (f".{fraction}" if fraction else "") + end
    kept = int(f"{fraction:0<6}"[:6])
    assert _read(database, text) == time.replace(microsecond=kept)


@FEW
@given(time=TIMES, zone=ZONES, form=st.sampled_from(["iso", "compact", "go"]))
def test_times_with_a_zone_mean_that_zone(
    database: duckdb.DuckDBPyConnection, time: datetime, zone: timezone, form: str
) -> None:
    local = time.replace(tzinfo=UTC).astimezone(zone)
    offset = local.strftime("%z")
    text = {
        "iso": local.isoformat(),
        "compact": local.strftime("%Y-%m-%dT%H:%M:%S.%f") + offset,
        "go": local.strftime("%Y-%m-%d %H:%M:%S.%f ") + offset + (" UTC" if offset == "+0000" else ""),
    }[form]
    assert _read(database, text) == time


@FEW
@given(time=TIMES, unit=st.sampled_from([1, 1000, 1_000_000, 1_000_000_000]))
def test_the_length_of_an_epoch_determines_its_unit(
    database: duckdb.DuckDBPyConnection, time: datetime, unit: int
) -> None:
    whole = time.replace(microsecond=0)
    assert _read(database, str(int(whole.replace(tzinfo=UTC).timestamp()) * unit)) == whole


@FEW
@given(text=st.text(alphabet="abcxyz-:TZ. {}'\"", max_size=30))
def test_what_is_no_time_is_none(database: duckdb.DuckDBPyConnection, text: str) -> None:
    assert _read(database, text) is None
