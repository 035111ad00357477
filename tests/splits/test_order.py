"""Split `order`: as the rows stand, the first train, the next valid, the last test."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from mlpipe.splits.order import OrderSplit


def assigned(split: OrderSplit, rows: int, *, own_test: bool = False, chunk: int = 1000) -> list[int]:
    batch = pa.RecordBatch.from_pydict({"x": list(range(rows))})
    assigner = split.assigner(hashed=("x",), target="y", seed=7, own_test=own_test)
    pieces = [batch.slice(i, chunk) for i in range(0, rows, chunk)]
    for piece in pieces:
        assigner.look(piece)
    assigner.settle()
    return [code for piece in pieces for code in assigner.assign(piece).tolist()]


@given(st.integers(1, 60), st.integers(1, 60), st.sampled_from([(0.1, 0.2), (0.0, 0.2), (0.3, 0.0), (0.45, 0.5)]))
def test_splits_follow_each_other_in_file_order_with_their_shares(rows, chunk, shares):
    valid, test = shares
    codes = assigned(OrderSplit(valid=valid, test=test), rows, chunk=chunk)
    assert codes == sorted(codes)
    assert (codes.count(1), codes.count(2)) == (min(round(valid * rows), rows - round(test * rows)), round(test * rows))


def test_e04_the_last_rows_of_a_file_are_the_test_rows():
    assert assigned(OrderSplit(valid=0, test=0.2), 100) == [0] * 80 + [2] * 20


def test_with_a_test_source_of_its_own_all_rows_train_or_validate():
    assert assigned(OrderSplit(valid=0.1, test=0.2), 10, own_test=True) == [0] * 9 + [1]
