"""Split `column`: the data says itself which row is what."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pydantic import ValidationError

from mlpipe.errors import DataError
from mlpipe.splits.base import TEST, TRAIN, VALID
from mlpipe.splits.column import ColumnSplit


def assigned(split: ColumnSplit, values: list, *, own_test: bool = False) -> list[int]:
    rows = pa.RecordBatch.from_arrays([pa.array(values, pa.string()).dictionary_encode()], names=["part"])
    return split.assigner(hashed=(), target="y", seed=7, own_test=own_test).assign(rows).tolist()


def test_each_value_goes_where_it_is_named():
    assert assigned(ColumnSplit(by="part"), ["train", "test", "valid", "train"]) == [TRAIN, TEST, VALID, TRAIN]
    folds = ColumnSplit(by="part", train=("1", "2"), valid_values=("3",), test_values=("4",))
    assert assigned(folds, ["4", "3", "2", "1"]) == [TEST, VALID, TRAIN, TRAIN]


@pytest.mark.parametrize("value", ["Train", "dev", "", "train "])
def test_a_value_that_no_split_claims_is_refused(value):
    with pytest.raises(DataError, match="which is neither train, valid nor test"):
        assigned(ColumnSplit(by="part"), ["train", value])


def test_a_row_without_a_value_is_refused():
    with pytest.raises(DataError, match="1 rows have no 'part'"):
        assigned(ColumnSplit(by="part"), ["train", None])


def test_a_value_that_only_a_sliced_off_row_has_is_no_fault():
    rows = pa.RecordBatch.from_arrays([pa.array(["train", "dev"]).dictionary_encode()], names=["part"]).slice(0, 1)
    assert ColumnSplit(by="part").assigner(hashed=(), target="y", seed=7, own_test=False).assign(rows).tolist() == [TRAIN]


def test_rows_marked_as_test_beside_a_test_source_are_refused():
    """Which of the two is the test set is for the user to say."""
    assert assigned(ColumnSplit(by="part"), ["train", "valid"], own_test=True) == [TRAIN, VALID]
    with pytest.raises(DataError, match="source of their own"):
        assigned(ColumnSplit(by="part"), ["train", "test"], own_test=True)


def test_a_value_in_two_splits_is_refused():
    with pytest.raises(ValidationError, match="two splits"):
        ColumnSplit(by="part", train=("a", "b"), test_values=("b",))
