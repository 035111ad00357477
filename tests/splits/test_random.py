"""Split `random`: a row's split is a function of its content and the seed; with `stratify` each class has its share."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from mlpipe.errors import DataError
from mlpipe.splits.base import TEST, TRAIN, VALID
from mlpipe.splits.random import RandomSplit, by_bounds


def table(numbers: list, labels: list) -> pa.RecordBatch:
    text = pa.array(labels, pa.string()).dictionary_encode()
    return pa.RecordBatch.from_arrays([pa.array(numbers, pa.float64()), text], names=["x", "y"])


def assigned(split: RandomSplit, rows: pa.RecordBatch, *, seed: int = 7, own_test: bool = False, chunk: int = 1000) -> list[int]:
    assigner = split.assigner(hashed=("x", "y"), target="y", seed=seed, own_test=own_test)
    pieces = [rows.slice(i, chunk) for i in range(0, rows.num_rows, chunk)]
    if assigner.looks:
        for piece in pieces:
            assigner.look(piece)
        assigner.settle()
    return [code for piece in pieces for code in assigner.assign(piece).tolist()]


def test_shares_are_about_what_was_asked_for():
    counts = np.bincount(assigned(RandomSplit(valid=0.1, test=0.2), table(list(range(20_000)), ["a"] * 20_000)))
    assert counts == pytest.approx([14_000, 2_000, 4_000], abs=300)  # five deviations


def test_a_key_alone_decides_where_it_is_given():
    rows = table([1, 1, 2, 2, 3, 3] * 20, ["a", "b"] * 60)
    codes = assigned(RandomSplit(valid=0.3, test=0.3, key=("x",)), rows)
    assert codes[0::2] == codes[1::2]
    assert len(set(codes)) > 1


def test_bounds_are_half_open():
    hashes = np.array([0, 4, 5, 9, 10, 2**64 - 1], dtype=np.uint64)
    assert by_bounds(hashes, np.uint64(5), np.uint64(10)).tolist() == [TEST, TEST, VALID, VALID, TRAIN, TRAIN]


@given(
    st.lists(st.integers(3, 40), min_size=2, max_size=4), st.sampled_from([(0.1, 0.2), (0.4, 0.5), (0.01, 0.01), (0.45, 0.1), (0.25, 0.0)])
)
def test_every_class_has_its_share_of_every_split_and_a_row_to_train_on(sizes, shares):
    valid, test = shares
    labels = [f"c{i}" for i, size in enumerate(sizes) for _ in range(size)]
    codes = np.array(assigned(RandomSplit(valid=valid, test=test, stratify=True), table(list(range(len(labels))), labels)))
    for i, size in enumerate(sizes):
        counts = np.bincount(codes[np.array(labels) == f"c{i}"], minlength=3)
        assert (counts > 0).tolist() == [True, True, test > 0], counts
        for code, share in ((VALID, valid), (TEST, test)):
            assert abs(counts[code] - share * size) <= 1.5


def test_stratified_rows_keep_their_order_of_hashes():
    """The rows that a small test share takes are among those that a larger one takes."""
    rows = table(list(range(300)), ["a", "b", "b"] * 100)
    small = np.array(assigned(RandomSplit(valid=0, test=0.1, stratify=True), rows)) == TEST
    large = np.array(assigned(RandomSplit(valid=0, test=0.4, stratify=True), rows)) == TEST
    assert (large | ~small).all()
    assert small.sum() == 30


def test_a_class_with_fewer_rows_than_splits_is_refused_by_name_and_count():
    """T10; copies of one row are one row, for they cannot be parted."""
    rows = table([*range(20), 99, 99, 99], ["a", "b"] * 10 + ["rare"] * 3)
    with pytest.raises(DataError, match="'rare' has 1 distinct row") as caught:
        assigned(RandomSplit(stratify=True), rows)
    assert "stratify to false" in str(caught.value)


def test_rows_without_a_class_are_no_class_too_few():
    rows = table(list(range(41)), ["a", "b"] * 20 + [None])
    assert len(assigned(RandomSplit(stratify=True), rows)) == 41


def test_a_stratified_key_with_rows_of_two_classes_is_refused():
    """Each class has bounds of its own, so that a patient with two diagnoses would land on both sides."""
    rows = table([i // 2 for i in range(80)], ["a", "b"] * 40)
    with pytest.raises(DataError, match="40 values of the key \\(x\\) have rows of two classes"):
        assigned(RandomSplit(stratify=True, key=("x",)), rows)
    assert len(assigned(RandomSplit(stratify=True, key=("x",)), table([i // 2 for i in range(80)], ["a", "a", "b", "b"] * 20))) == 80


@pytest.mark.parametrize("shares", [{"valid": 0.5, "test": 0.5}, {"valid": -0.1}, {"test": 1.0}, {"valid": float("nan")}])
def test_shares_that_leave_nothing_to_train_on_are_refused(shares):
    with pytest.raises(ValidationError):
        RandomSplit(**shares)
