"""Split `random`: by a seeded stable hash of the row, or of key columns.

A row's split depends on its content and the seed alone: it stays when the table grows or is reordered, and exact
duplicates (rows equal in every column that the pipeline uses) never land on both sides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mlpipe.columns import row_hash
from mlpipe.errors import DataError
from mlpipe.splits.base import TEST, TRAIN, VALID, Assigner, SplitSettings

if TYPE_CHECKING:
    import pyarrow as pa

SPAN = float(2**64)


class HashAssigner(Assigner):
    """The lowest hashes are test, the next valid, the rest train."""

    def __init__(self, columns: tuple[str, ...], seed: int, valid: float, test: float, *, named: bool = False) -> None:
        self.columns, self.seed, self.named = list(columns), seed, named
        self.test_below = np.uint64(test * SPAN)
        self.valid_below = np.uint64((test + valid) * SPAN)

    def assign(self, rows: pa.RecordBatch) -> np.ndarray:
        """Compares each row's hash with the two bounds. Raises DataError for a row without one of the named columns' values."""
        if self.named:
            refuse_gaps(rows, self.columns)
        hashes = row_hash(rows, self.columns, self.seed)
        self.hashes = None if self.named else hashes
        return by_bounds(hashes, self.test_below, self.valid_below)


def refuse_gaps(rows: pa.RecordBatch, columns: list[str]) -> None:
    """Raises DataError for rows without a value by which they are split: they would all land in one split together."""
    for name in columns:
        if count := rows.column(name).null_count:
            raise DataError(f"{count:,} rows have no {name!r}, by which they are split", hint="fill it in, or split by something else")


def by_bounds(hashes: np.ndarray, test_below: Any, valid_below: Any) -> np.ndarray:
    """uint8 [rows] from uint64 hashes and the two bounds (scalars, or one a row)."""
    return np.where(hashes < test_below, TEST, np.where(hashes < valid_below, VALID, TRAIN)).astype(np.uint8)


class StratifiedAssigner(Assigner):
    """The same, with bounds for each class so that every split has its share of it. Looks at all rows first."""

    looks = True

    def __init__(self, columns: tuple[str, ...], target: str, seed: int, valid: float, test: float) -> None:
        self.columns, self.target, self.seed = list(columns), target, seed
        self.shares = (test, valid)
        self._seen: dict[str | None, list[np.ndarray]] = {}
        self._bounds: dict[str | None, tuple[int, int]] = {}

    def look(self, rows: pa.RecordBatch) -> None:
        """Collects the hashes of each class (8 bytes a row)."""
        hashes = row_hash(rows, self.columns, self.seed)
        labels: Any = rows.column(self.target)
        codes = labels.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        for code, label in [(-1, None), *enumerate(labels.dictionary.to_pylist())]:
            mine = hashes[codes == code]
            if len(mine):
                self._seen.setdefault(label, []).append(mine)

    def settle(self) -> None:
        """Cuts each class's sorted hashes: at least one row of every class for each split that is wanted."""
        needed = 1 + sum(share > 0 for share in self.shares)
        few = []
        whole = [np.unique(np.concatenate(hashes)) for hashes in self._seen.values()]
        if both := sum(map(len, whole)) - len(np.unique(np.concatenate(whole))) if whole else 0:
            raise DataError(
                f"{both:,} values of the key ({', '.join(self.columns)}) have rows of two classes: they would land on both sides",
                hint="set prepare.split.stratify to false, or choose a key of which each value has one class",
            )
        for label in sorted(self._seen, key=str):
            distinct = np.unique(np.concatenate(self._seen[label]))
            if label is not None and len(distinct) < needed:
                few.append(f"{label!r} has {len(distinct)} distinct row{'s' * (len(distinct) != 1)}")
                continue
            counts = [max(1, round(share * len(distinct))) if share > 0 else 0 for share in self.shares]
            while sum(counts) >= len(distinct) and max(counts) > 1:  # a small class leaves a row to train on, too
                counts[counts.index(max(counts))] -= 1
            edges = np.append(distinct, np.uint64(2**64 - 1))
            first = min(counts[0], len(distinct))
            second = min(sum(counts), len(distinct))
            self._bounds[label] = (int(edges[first]), int(edges[second]))
        self._seen.clear()
        if few:
            raise DataError(
                f"classes of {self.target!r} with fewer rows than the {needed} splits need",
                faults=few,
                hint="collect more rows, merge the class with `replace`, or set prepare.split.stratify to false",
            )

    def assign(self, rows: pa.RecordBatch) -> np.ndarray:
        """Compares each row's hash with the bounds of its class."""
        hashes = row_hash(rows, self.columns, self.seed)
        labels: Any = rows.column(self.target)
        names = [*labels.dictionary.to_pylist(), None]
        table = np.array([self._bounds.get(name, (0, 0)) for name in names], dtype=np.uint64)
        codes = labels.indices.fill_null(len(names) - 1).to_numpy(zero_copy_only=False)
        return by_bounds(hashes, table[codes, 0], table[codes, 1])


class RandomSplit(SplitSettings):
    """At random but for good: by a seeded hash of the row, or of the columns in `key`.

    With `stratify` the bounds follow each class's rows: when the table grows, a row near a bound may move.
    """

    kind: Literal["random"] = "random"
    stratify: bool = False
    key: tuple[str, ...] = ()

    def columns(self) -> tuple[str, ...]:
        """The key columns."""
        return self.key

    def assigner(self, *, hashed: tuple[str, ...], target: str, seed: int, own_test: bool) -> Assigner:
        """By class bounds when stratified, else by one pair of bounds."""
        test = 0.0 if own_test else self.test
        if self.stratify:
            return StratifiedAssigner(self.key or hashed, target, seed, self.valid, test)
        return HashAssigner(self.key or hashed, seed, self.valid, test, named=bool(self.key))
