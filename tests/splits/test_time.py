"""Split `time`: the past trains, the future tests."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from mlpipe.errors import DataError
from mlpipe.splits.base import TEST, TRAIN, VALID
from mlpipe.splits.time import TimeSplit

DAY = 86_400_000_000


def assigned(split: TimeSplit, micros: list, *, own_test: bool = False, chunk: int = 1000) -> list[int]:
    rows = pa.RecordBatch.from_arrays([pa.array(micros, pa.int64()).cast(pa.timestamp("us"))], names=["w"])
    assigner = split.assigner(hashed=("w",), target="y", seed=7, own_test=own_test)
    pieces = [rows.slice(i, chunk) for i in range(0, rows.num_rows, chunk)]
    if assigner.looks:
        for piece in pieces:
            assigner.look(piece)
        assigner.settle()
    return [code for piece in pieces for code in assigner.assign(piece).tolist()]


@given(st.lists(st.integers(-(10**15), 10**15), min_size=1, max_size=40), st.integers(1, 40))
def test_no_training_row_is_later_than_a_valid_one_and_none_of_these_later_than_a_test_one(micros, chunk):
    codes = np.array(assigned(TimeSplit(by="w", valid=0.2, test=0.2), micros, chunk=chunk))
    times = np.array(micros)
    for early, late in ((TRAIN, VALID), (TRAIN, TEST), (VALID, TEST)):
        if (codes == early).any() and (codes == late).any():
            assert times[codes == early].max() < times[codes == late].min()


def test_shares_are_those_of_rows():
    codes = assigned(TimeSplit(by="w", valid=0.1, test=0.2), [DAY * i for i in range(100)])
    assert np.bincount(codes).tolist() == [70, 10, 20]
    assert codes == sorted(codes)


def test_rows_of_one_moment_stay_together_on_the_later_side():
    assert assigned(TimeSplit(by="w", valid=0.0, test=0.5), [1, 2, 2, 2]) == [TRAIN, TEST, TEST, TEST]


def test_fixed_moments_need_no_look_and_begin_their_split():
    split = TimeSplit(by="w", valid_from="1970-01-02", test_from="1970-01-03T00:00:00Z")
    assert assigned(split, [DAY - 1, DAY, 2 * DAY - 1, 2 * DAY]) == [TRAIN, VALID, VALID, TEST]
    assert assigned(split, [2 * DAY, DAY], own_test=True) == [VALID, VALID]


def test_one_fixed_moment_leaves_the_other_to_its_share():
    codes = assigned(TimeSplit(by="w", valid=0.2, test=0.1, test_from="1970-01-09"), [DAY * i for i in range(10)])
    assert codes == [TRAIN] * 7 + [VALID] + [TEST] * 2


def test_moments_may_be_written_in_the_columns_own_form():
    split = TimeSplit(by="w", format="%d/%m/%Y", valid=0.0, test_from="03/01/1970")
    assert assigned(split, [DAY, 2 * DAY]) == [TRAIN, TEST]
    assert (split.raw().type, split.raw().format, split.columns()) == ("timestamp", "%d/%m/%Y", ("w",))


def test_rows_without_a_time_are_refused():
    with pytest.raises(DataError, match="1 rows have no 'w'"):
        assigned(TimeSplit(by="w"), [1, None])


@pytest.mark.parametrize(
    "moments", [{"test_from": "yesterday"}, {"valid_from": "2021-02-30"}, {"valid_from": "2021-01-02", "test_from": "2021-01-01"}]
)
def test_moments_that_are_none_or_in_the_wrong_order_are_refused(moments):
    with pytest.raises(ValidationError, match="from"):
        TimeSplit(by="w", **moments)
