"""Split `order`: as the rows stand, the first train, the next valid, the last test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from mlpipe.splits.base import TEST, TRAIN, VALID, Assigner, SplitSettings

if TYPE_CHECKING:
    import pyarrow as pa


class OrderAssigner(Assigner):
    """Counts all rows in a first look, then cuts."""

    looks = True

    def __init__(self, valid: float, test: float) -> None:
        self.shares, self.rows, self.next = (valid, test), 0, 0

    def look(self, rows: pa.RecordBatch) -> None:
        """Counts."""
        self.rows += rows.num_rows

    def assign(self, rows: pa.RecordBatch) -> np.ndarray:
        """By the position in the whole source."""
        valid, test = (round(share * self.rows) for share in self.shares)
        at = np.arange(self.next, self.next + rows.num_rows)
        self.next += rows.num_rows
        return np.where(at >= self.rows - test, TEST, np.where(at >= self.rows - test - valid, VALID, TRAIN)).astype(np.uint8)


class OrderSplit(SplitSettings):
    """In file order: for data that is already sorted in time, or already shuffled."""

    kind: Literal["order"] = "order"

    def assigner(self, *, hashed: tuple[str, ...], target: str, seed: int, own_test: bool) -> Assigner:
        """By position."""
        return OrderAssigner(self.valid, 0.0 if own_test else self.test)
