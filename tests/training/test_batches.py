"""Batches of mapped tensors: the same whether gathered one by one or in windows, whose pages are let go."""

from __future__ import annotations

import pytest
import torch

from mlpipe.training import batches as made
from mlpipe.training.batches import batch_bounds, batches, epoch_order, in_order

TENSORS = {
    "numeric": torch.randn(1001, 3),
    "category": torch.arange(2002, dtype=torch.int32).reshape(1001, 2),
    "target": torch.arange(1001),
}


@pytest.mark.parametrize("size", [1, 7, 64, 1001])
@pytest.mark.parametrize("first", [0, 1])
def test_windows_give_the_batches_that_single_ones_give(monkeypatch: pytest.MonkeyPatch, size: int, first: int) -> None:
    """Large tensors are gathered in the order of the file: batch by batch the rows, their order and dtypes stay."""
    order, bounds = epoch_order(1001, 3, 1), batch_bounds(1001, size)[first:]
    whole = list(batches(TENSORS, order, bounds))
    released: list[int] = []
    monkeypatch.setattr(made, "RESIDENT", 2048)
    monkeypatch.setattr(made, "WINDOW", 4096)
    parts = list(batches(TENSORS, order, bounds, lambda: released.append(1)))
    assert len(parts) == len(whole) == len(bounds)
    for one, other in zip(whole, parts, strict=True):
        assert {name: tensor.dtype for name, tensor in one.items()} == {name: tensor.dtype for name, tensor in other.items()}
        assert all(torch.equal(one[name], other[name]) for name in TENSORS)
    assert bool(released) is bool(bounds)


def test_rows_in_order_are_let_go_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """After every window of rows, and at the end."""
    monkeypatch.setattr(made, "WINDOW", 28 * 100)  # a row has 28 bytes
    released: list[int] = []
    parts = list(in_order(TENSORS, 50, lambda: released.append(1)))
    assert torch.equal(torch.cat([part["target"] for part in parts]), TENSORS["target"])
    assert len(released) == 11
