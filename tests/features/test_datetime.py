"""Feature `datetime`: the graph's calendar is Python's, from year 1 to year 9999."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlpipe.features.datetime import PERIODS, Datetime, FittedDatetime
from tests.features.graphs import run

EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 (raw times have no zone)
PARTS = ("year", "month", "day", "weekday", "day_of_year", "hour", "minute")


def moment(*parts: int) -> dt.datetime:
    return dt.datetime(*parts)  # noqa: DTZ001 (raw times have no zone)


def seconds(when: dt.datetime) -> float:
    return (when - EPOCH).total_seconds()


def fit(moments: list, **settings) -> FittedDatetime:
    array = pa.array(moments, pa.timestamp("us"))
    return Datetime(columns=("w",), **settings).fit("w", pa.chunked_array([array]))


# a state that leaves the year as it is: held within 10 deviations of 1,000 years around year 5000
YEARS = FittedDatetime(column="w", format="iso", parts=PARTS, fill=0.0, mean={"year": 5000.0}, deviation={"year": 1000.0}, indicator=False)


def calendar(moments: list[dt.datetime]) -> list[tuple]:
    """Year, month, ... of the graph, turned back from their sines and cosines."""
    found = run(YEARS, w=[seconds(m) for m in moments])
    years = np.rint(found["numeric"][:, 0].astype(np.float64) * 1000 + 5000).astype(int)
    columns = [years]
    for i, part in enumerate(PARTS[1:]):
        angle = np.arctan2(found["plain"][:, 2 * i].astype(np.float64), found["plain"][:, 2 * i + 1])
        columns.append(np.rint(angle / (2 * np.pi) * PERIODS[part]).astype(int) % PERIODS[part])
    return list(zip(*(c.tolist() for c in columns), strict=True))


def expected(m: dt.datetime) -> tuple:
    """The same by the standard library; months, days and days of the year count from 0."""
    return (m.year, m.month - 1, m.day - 1, m.weekday(), m.timetuple().tm_yday - 1, m.hour, m.minute)


def test_the_calendar_is_right_around_every_turn_of_every_year():
    moments = []
    for year in range(1, 10_000):
        march = moment(year, 3, 1)
        moments += [moment(year, 1, 1), march - dt.timedelta(seconds=1), march, moment(year, 12, 31, 23, 59, 59)]
    assert calendar(moments) == [expected(m) for m in moments]


@given(st.lists(st.datetimes(), min_size=1, max_size=30))
def test_the_calendar_is_pythons_at_any_moment(moments):
    moments = [m.replace(microsecond=0) for m in moments]
    assert calendar(moments) == [expected(m) for m in moments]


def test_parts_of_a_second_before_1970_belong_to_the_second_before():
    assert calendar([EPOCH - dt.timedelta(microseconds=1), EPOCH]) == [(1969, 11, 30, 2, 364, 23, 59), (1970, 0, 0, 3, 0, 0, 0)]


def test_leap_years_have_a_29_february_and_centuries_do_not():
    moments = [moment(2000, 2, 29), moment(1900, 2, 28) + dt.timedelta(days=1), moment(2024, 12, 31), moment(1600, 2, 29)]
    assert [c[:3] for c in calendar(moments)] == [(2000, 1, 28), (1900, 2, 0), (2024, 11, 30), (1600, 1, 28)]


def test_age_is_the_time_itself_standardised_and_gaps_become_the_median():
    moments = [moment(2020, 1, 1), moment(2020, 1, 3), None, moment(2020, 1, 8)]
    fitted = fit(moments, parts=("age",))
    present = np.array([seconds(m) for m in moments if m])
    assert fitted.fill == seconds(moment(2020, 1, 3))
    found = run(fitted, w=[*present, None])
    assert found["numeric"][:3, 0] == pytest.approx((present - present.mean()) / present.std(), rel=1e-6)
    assert found["numeric"][3] == found["numeric"][1]
    assert found["plain"].ravel().tolist() == [0, 0, 0, 1]


def test_sines_and_cosines_come_round_again():
    found = run(fit([moment(2020, 1, 1)], parts=("month", "hour")), w=[seconds(moment(2021, 4, 1, 6))])
    assert found["plain"].ravel() == pytest.approx([1, 0, 1, 0], abs=1e-6)


@pytest.mark.parametrize("parts", [("age",), ("year",), ("age", "year", "month", "day", "weekday", "day_of_year", "hour", "minute")])
def test_a_constant_time_becomes_0_and_is_named(parts):
    """Also where the mean of a thousand equal floats is not that float."""
    when = moment(2023, 7, 19, 13, 37, 11, 123457)
    fitted = fit([when] * 1000, parts=parts)
    assert set(fitted.deviation.values()) == {1.0}
    assert set(run(fitted, w=[seconds(when), None])["numeric"].ravel().tolist()) == {0.0}
    assert "constant" in fitted.remarks()[0]


def test_a_column_without_any_time_is_harmless_and_named():
    fitted = fit([None] * 4)
    found = run(fitted, w=[None, 0.0])
    assert all(np.isfinite(tensor).all() for tensor in found.values())
    assert "no value" in fitted.remarks()[0]


@pytest.mark.parametrize("number", [np.inf, -np.inf, 1e300, -1e300, np.finfo(np.float64).max, 5e-324, 253402300800.0, -62135596801.0])
def test_numbers_that_are_no_time_stay_finite(number):
    fitted = fit([moment(2020, 1, 1), moment(2021, 1, 1)], parts=("age", *PARTS))
    assert all(np.isfinite(tensor).all() for tensor in run(fitted, w=[number]).values())


@pytest.mark.parametrize(
    ("indicator", "gap", "shown"), [("auto", False, False), ("auto", True, True), ("always", False, True), ("never", True, False)]
)
def test_a_gap_has_a_mark_of_its_own_where_train_rows_have_gaps(indicator, gap, shown):
    fitted = fit([moment(2020, 1, 1), None if gap else moment(2020, 1, 2)], parts=("age",), indicator=indicator)
    assert ("plain" in run(fitted, w=[None])) == shown


def test_years_of_the_fit_are_calendar_years_before_1970_too():
    fitted = fit([moment(1969, 12, 31, 23, 59, 59), moment(1971, 1, 1)], parts=("year",))
    assert (fitted.mean["year"], fitted.deviation["year"]) == (1970.0, 1.0)
