"""Features that alone give the target away, and targets that are the sum of two features.

Each feature is fitted by itself on train rows and scored on rows that were held out, so that a column of names, which
knows the train rows by heart, does not count. No model library is needed for one column: a table of its values, or of
256 ranges of it, is as good as a tree. `init` and `prepare` both ask these functions; they know nothing of pipelines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

RANGES = 256
SHARE = 0.95  # of the errors that the most common class makes, a feature must save so many
FIT = 0.995  # of the target's variance, a feature must explain so much
RANK = 0.9995  # or its ranks must be so much those of the target (or their reverse)
LEAST_ROWS = 30  # held-out rows, below which nothing is said
EXACT = 1e-9
PAIR_ROWS = 400
PAIR_COLUMNS = 200


@dataclass(frozen=True)
class Giveaway:
    """A feature, how well it alone does on held-out rows, and the score of knowing nothing.

    `measure` is `accuracy` (beside the share of the most common class), `r2` or `rank correlation` (beside 0).
    """

    column: str
    measure: str
    score: float
    baseline: float
    rows: int

    @property
    def said(self) -> str:
        """In words."""
        if self.measure == "accuracy":
            return f"tells {self.score:.2%} of {self.rows:,} held-out rows right (the most common class alone: {self.baseline:.2%})"
        name = "an R²" if self.measure == "r2" else "a rank correlation"
        return f"has {name} of {self.score:.5g} with the target on {self.rows:,} held-out rows"


@dataclass(frozen=True)
class Formula:
    """The target is `left operation right`, exactly, in a share of the rows looked at."""

    left: str
    operation: Literal["+", "-", "*", "/"]
    right: str
    share: float
    rows: int

    @property
    def said(self) -> str:
        """In words."""
        return f"{self.left} {self.operation} {self.right} in {self.share:.1%} of {self.rows:,} rows"


def giveaways(
    train: pa.Table, held: pa.Table, features: Sequence[str], target: str, task: Literal["classification", "regression"]
) -> list[Giveaway]:
    """Features that alone give the target away, the best first.

    In: typed columns of both tables: numbers (float64), times, text (dictionary-encoded or plain); the target text for
    classification, a number for regression. A missing cell is a value like another.
    """
    if held.num_rows < LEAST_ROWS or train.num_rows < LEAST_ROWS:
        return []
    judge = (
        _Classes(train.column(target), held.column(target))
        if task == "classification"
        else _Numbers(train.column(target), held.column(target))
    )
    if judge.hopeless:
        return []
    found = [one for name in features if (one := judge.one(name, train.column(name), held.column(name))) is not None]
    return sorted(found, key=lambda one: (-abs(one.score), one.column))


def formulas(table: pa.Table, features: Sequence[str], target: str) -> list[Formula]:
    """Pairs of number columns of which the target is the sum, difference, product or quotient, but for rounding in 1 of 1,000 rows.

    A first look at 400 rows sorts out nearly all pairs (numpy, all at once); at most the first 200 number columns are tried.
    """
    import pyarrow as pa

    names = [name for name in features if pa.types.is_floating(table.schema.field(name).type)][:PAIR_COLUMNS]
    y = _floats(table.column(target))
    if len(names) < 2 or len(y) < LEAST_ROWS:
        return []
    columns = {name: _floats(table.column(name)) for name in names}
    lively = [name for name in names if len(np.unique(columns[name][:PAIR_ROWS])) > 2]
    every = max(1, len(y) // PAIR_ROWS)
    few = np.stack([columns[name][::every][:PAIR_ROWS] for name in lively]) if lively else np.zeros((0, 0))
    part = y[::every][:PAIR_ROWS]
    if len(lively) < 2 or len(np.unique(part)) < 10:
        return []
    found = []
    for i, left in enumerate(lively):
        for operation in ("+", "-", "*", "/"):
            made = _apply(operation, few[i][None, :], few)
            for j in np.flatnonzero(_close(made, part[None, :]).mean(axis=1) >= 0.99).tolist():
                if i == j or (operation in "+*" and j < i):
                    continue
                share = float(_close(_apply(operation, columns[left], columns[lively[j]]), y).mean())
                if share >= 0.999:
                    found.append(Formula(left, operation, lively[j], share, len(y)))
    return found


def _apply(operation: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        made: np.ndarray = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}[operation](a, b)
    return made


def _close(made: np.ndarray, y: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        near: np.ndarray = np.abs(made - y) <= EXACT * np.maximum(np.abs(y), 1e-6)
    return near


def _floats(column: Any) -> np.ndarray:
    """float64 [rows] of numbers or times, NaN where missing."""
    import pyarrow as pa

    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    found: np.ndarray = column.cast(pa.float64()).to_numpy()
    return found


def _is_text(column: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_dictionary(column.type) or pa.types.is_string(column.type) or pa.types.is_large_string(column.type))


def _codes(train: Any, held: Any, ranges: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Int [rows] of both: a number for each value (text), or for each range of train values with equally many rows (numbers).

    The last code is that of what train rows do not have, the one before it that of a missing cell.
    """
    if _is_text(train):
        import pyarrow as pa
        import pyarrow.compute as pc

        plain = [c if pa.types.is_dictionary(c.type) else c.cast(pa.string()).dictionary_encode() for c in (train, held)]
        values = pc.unique(pa.chunked_array([chunk.dictionary.take(chunk.indices.unique().drop_null()) for chunk in plain[0].chunks]))
        size = len(values)
        found = []
        for column in plain:
            parts = [np.array([], dtype=np.int64)]
            for chunk in column.chunks:
                table = np.append(pc.index_in(chunk.dictionary, value_set=values).fill_null(size + 1).to_numpy(zero_copy_only=False), size)
                parts.append(table[chunk.indices.fill_null(len(table) - 1).to_numpy(zero_copy_only=False)])
            found.append(np.concatenate(parts).astype(np.int64))
        return found[0], found[1], size + 2
    one, two = _floats(train), _floats(held)
    present = np.sort(one[~np.isnan(one)])
    distinct = np.unique(present)
    if len(distinct) > ranges:
        cuts = np.unique(present[np.linspace(0, len(present) - 1, ranges + 1).astype(int)[1:-1]])
    else:
        cuts = distinct[:-1] / 2 + distinct[1:] / 2
    size = len(cuts) + 1
    codes = [np.where(np.isnan(c), size, np.searchsorted(cuts, c, side="left")) for c in (one, two)]
    return codes[0], codes[1], size + 2


class _Classes:
    """One feature against classes: the most common class of each value in train, the share of held-out rows that it tells right."""

    def __init__(self, train: Any, held: Any) -> None:
        self.y, self.held, size = _codes(train, held, RANGES)
        self.classes = size - 2
        self.held = np.where(self.held < self.classes, self.held, -1)  # a class that train lacks is never told
        self.common = int(np.bincount(self.y).argmax())
        self.baseline = float((self.held == self.common).mean())
        self.hopeless = self.classes < 2 or self.baseline > 0.999

    def one(self, name: str, train: Any, held: Any) -> Giveaway | None:
        """The feature, if it gives the class away."""
        best = self._by_table(train, held)
        if not _is_text(train) and self.classes == 2:
            best = max(best, self._by_threshold(_floats(train), _floats(held)))
        if (best - self.baseline) / (1 - self.baseline) < SHARE:
            return None
        return Giveaway(name, "accuracy", best, self.baseline, len(self.held))

    def _by_table(self, train: Any, held: Any) -> float:
        codes, others, size = _codes(train, held, max(2, min(RANGES, len(train) // 20)))
        counts = np.bincount(codes.astype(np.int64) * self.classes + self.y, minlength=size * self.classes).reshape(size, self.classes)
        table = np.where(counts.sum(axis=1) > 0, counts.argmax(axis=1), self.common)
        return float((table[others.astype(np.int64)] == self.held).mean())

    def _by_threshold(self, train: np.ndarray, held: np.ndarray) -> float:
        """The best single cut of the train rows, either way round."""
        there = ~np.isnan(train)
        if there.sum() < 2:
            return 0.0
        order = np.argsort(train[there], kind="stable")
        x, y = train[there][order], self.y[there][order]
        below = np.cumsum(y == 0)  # right if all up to here are class 0
        right = below + (y == 1).sum() - np.cumsum(y == 1)
        ends = np.append(x[1:] != x[:-1], False)
        if not ends.any():
            return 0.0
        best = []
        for score, low in ((right, 0), (len(y) - right, 1)):
            at = int(np.flatnonzero(ends)[score[ends].argmax()])
            cut = x[at] / 2 + x[at + 1] / 2
            told = np.where(np.isnan(held), self.common, np.where(held <= cut, low, 1 - low))
            best.append(float((told == self.held).mean()))
        return max(best)


class _Numbers:
    """One feature against numbers: the mean of each value, or a line through ranges of it, and the rank correlation."""

    def __init__(self, train: Any, held: Any) -> None:
        self.y, self.held = _floats(train), _floats(held)
        self.spread = float(((self.held - self.y.mean()) ** 2).sum())
        self.hopeless = self.spread == 0 or len(np.unique(self.held)) < 3

    def one(self, name: str, train: Any, held: Any) -> Giveaway | None:
        """The feature, if it gives the number away."""
        codes, others, size = _codes(train, held, max(2, min(RANGES, len(train) // 20)))
        counts = np.bincount(codes, minlength=size)
        means = np.where(counts > 0, np.bincount(codes, weights=self.y, minlength=size) / np.maximum(counts, 1), self.y.mean())
        told = means[others]
        if not _is_text(train):
            x, new = _floats(train), _floats(held)
            there, known = ~np.isnan(x), ~np.isnan(new)
            at = np.unique(codes[there])
            if len(at) > 1:
                middle = np.bincount(codes[there], weights=x[there], minlength=size)[at] / counts[at]
                knots, heights = (
                    [x[there].min(), *middle, x[there].max()],
                    [self.y[there][x[there].argmin()], *means[at], self.y[there][x[there].argmax()]],
                )
                told = np.where(known, np.interp(new, knots, heights), told)
            if (
                known.mean() > 0.99
                and known.sum() >= LEAST_ROWS
                and (ranks := _ranked(new[known], self.held[known])) is not None
                and abs(ranks) >= RANK
            ):
                return Giveaway(name, "rank correlation", ranks, 0.0, int(known.sum()))
        fit = 1 - float(((self.held - told) ** 2).sum()) / self.spread
        return Giveaway(name, "r2", fit, 0.0, len(self.held)) if fit >= FIT else None


def _ranked(a: np.ndarray, b: np.ndarray) -> float | None:
    """Spearman's rank correlation; equal values share their mean rank. None where one of them does not vary."""
    one, two = (_ranks(values) for values in (a, b))
    if one.std() == 0 or two.std() == 0:
        return None
    return float(np.corrcoef(one, two)[0, 1])


def _ranks(values: np.ndarray) -> np.ndarray:
    _, where, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    mean: np.ndarray = (ends - (counts - 1) / 2.0)[where]
    return mean
