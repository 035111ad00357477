"""Rows that are equal in all that the model sees, on both sides of a split; and rows that differ in nothing but their class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mlpipe.base import SPLITS
from mlpipe.columns import row_hash

if TYPE_CHECKING:
    import pyarrow as pa

PAIRS = ((0, 2), (0, 1), (1, 2))
FIRST = 5


@dataclass(frozen=True)
class Twins:
    """Rows of `later` that equal a row of `earlier`: how many, and the first of them as (row of later, row of earlier)."""

    earlier: str
    later: str
    rows: int
    of: int
    first: list[tuple[int, int]]


class Duplicates:
    """Hashes of whole rows by split, in order: 8 bytes a row, 104 MB for 13 million and as much once more at the end.

    In: uint64 hashes of features and target [rows], and the split of each row (0 train, 1 valid, 2 test).
    """

    def __init__(self) -> None:
        self.seen: list[list[np.ndarray]] = [[], [], []]

    def add(self, hashes: np.ndarray, codes: np.ndarray) -> None:
        """Keeps hashes."""
        for code, mine in enumerate(self.seen):
            chosen = hashes[codes == code]
            if len(chosen):
                mine.append(chosen)

    def twins(self) -> list[Twins]:
        """Rows that stand on both sides, for each pair of splits that have rows. What was collected is let go."""
        rows = [np.concatenate(mine) if mine else np.array([], dtype=np.uint64) for mine in self.seen]
        self.seen = [[], [], []]
        found = []
        ordered: dict[int, np.ndarray] = {}
        for earlier, later in PAIRS:
            if not len(rows[earlier]) or not len(rows[later]):
                continue
            if earlier not in ordered:
                ordered[earlier] = np.sort(rows[earlier])
            wanted = np.sort(rows[later])  # in order, so that the search walks through memory once
            at = np.minimum(np.searchsorted(ordered[earlier], wanted), len(ordered[earlier]) - 1)
            hit = wanted[ordered[earlier][at] == wanted]
            numbers = np.flatnonzero(np.isin(rows[later], np.unique(hit)))[:FIRST].tolist() if len(hit) else []
            first = [(k, int(np.argmax(rows[earlier] == rows[later][k]))) for k in numbers]
            found.append(Twins(SPLITS[earlier], SPLITS[later], len(hit), len(wanted), first))
        return found


def conflicts(rows: pa.RecordBatch | Sequence[pa.RecordBatch], features: list[str], target: str) -> tuple[int, tuple[int, int] | None]:
    """Rows whose features stand with another target too: how many, and the first two of one kind, by number.

    In: typed rows, such as a sample of the train rows.
    """
    batches = [rows] if not isinstance(rows, Sequence) else list(rows)
    if not batches:
        return 0, None
    mine = np.concatenate([row_hash(batch, features, 0) for batch in batches])
    answers = np.concatenate([row_hash(batch, [target], 0) for batch in batches])
    order = np.argsort(mine, kind="stable")
    ordered, theirs = mine[order], answers[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    mixed = np.minimum.reduceat(theirs, starts) != np.maximum.reduceat(theirs, starts)
    if not mixed.any():
        return 0, None
    sizes = np.diff(np.append(starts, len(ordered)))
    run = int(np.flatnonzero(mixed)[order[starts[mixed]].argmin()])
    one = order[starts[run] : starts[run] + sizes[run]]
    other = int(one[answers[one] != answers[one[0]]][0])
    return int(sizes[mixed].sum()), (int(one[0]), other)
