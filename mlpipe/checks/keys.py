"""Check `unique`: no two rows with the same key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from mlpipe.checks.base import SHOWN, At, ColumnCheck, Finding, Setting, Tally
from mlpipe.columns import row_hash

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa


class Unique(ColumnCheck):
    """No two rows with the same value, or with several columns the same combination of values.

    A row that lacks a value of the key does not count; `not_missing` is for those. It keeps 16 bytes a row: two
    independent 64-bit hashes, so that two keys of 13 million pass for one with a chance below 1e-24.
    """

    kind: Literal["unique"] = "unique"

    def tally(self, setting: Setting) -> Tally:
        """Collects hashes."""
        return UniqueTally(self.columns)


class UniqueTally(Tally):
    """Hashes of keys in the order of rows; equal ones are found at the end."""

    def __init__(self, columns: tuple[str, ...]) -> None:
        self.columns = columns
        self.hashes: list[tuple[np.ndarray, np.ndarray]] = []
        self.kept: list[tuple[str, int, np.ndarray | int]] = []  # file, first row, and which of its rows (or how many, if all)
        self.incomplete = 0

    def look(self, rows: pa.RecordBatch, file: str, first: int) -> None:
        """Hashes the keys of these rows."""
        import numpy as np

        names = list(self.columns)
        whole: np.ndarray = np.ones(rows.num_rows, dtype=bool)
        for name in names:
            if rows.column(name).null_count:
                whole &= rows.column(name).is_valid().to_numpy(zero_copy_only=False)
        one, two = row_hash(rows, names, 0), row_hash(rows, names, 1)
        if whole.all():
            self.hashes.append((one, two))
            self.kept.append((file, first, len(one)))
            return
        self.incomplete += int((~whole).sum())
        self.hashes.append((one[whole], two[whole]))
        self.kept.append((file, first, np.flatnonzero(whole).astype(np.int32)))

    def _place(self, index: int) -> tuple[str, int]:
        for file, first, which in self.kept:
            size = which if isinstance(which, int) else len(which)
            if index < size:
                return file, first + (index if isinstance(which, int) else int(which[index]))
            index -= size
        raise AssertionError("a row beyond the last one")

    def finding(self) -> Finding:
        """Passed when every key stands once."""
        import numpy as np

        empty: np.ndarray = np.array([], dtype=np.uint64)
        one = np.concatenate([pair[0] for pair in self.hashes]) if self.hashes else empty
        two = np.concatenate([pair[1] for pair in self.hashes]) if self.hashes else empty
        self.hashes.clear()
        observed: dict[str, Any] = {"rows": len(one), "incomplete_keys": self.incomplete}
        candidates = one.copy()
        candidates.sort()
        twice = np.unique(candidates[1:][candidates[1:] == candidates[:-1]])
        del candidates
        count, repeats = _repeats(one, two, np.flatnonzero(np.isin(one, twice))) if len(twice) else (0, [])
        observed |= {"distinct": len(one) - count, "repeated": count}
        rows = [At(*self._place(index), like=self._place(before)) for before, index in repeats]
        key = ", ".join(self.columns)
        return Finding(not count, observed, f"{count:,} of {len(one):,} rows repeat the key ({key}) of an earlier row", rows)


def _repeats(one: np.ndarray, two: np.ndarray, where: np.ndarray) -> tuple[int, list[tuple[int, int]]]:
    """How many of the rows `where` repeat an earlier one, and the first of them as (the row that had the key first, the row)."""
    import numpy as np

    order = where[np.lexsort((two[where], one[where]))]  # stable: rows of one key stay in their order
    a, b = one[order], two[order]
    again = np.append(False, (a[1:] == a[:-1]) & (b[1:] == b[:-1]))
    starts = np.maximum.accumulate(np.where(again, 0, np.arange(len(order))))
    at = np.flatnonzero(again)
    few = at[np.argsort(order[at], kind="stable")[:SHOWN]]
    return len(at), [(int(order[starts[k]]), int(order[k])) for k in few.tolist()]
