"""Proof that the exported model answers as the trained one did: on every test row, on awkward rows, in batches of many sizes."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mlpipe.columns import Column

BATCHES = (1, 2, 7)
SMALL = 128  # rows that are also run in small batches

NUMBERS = (np.nan, 0.0, -0.0, 1.0, -1.0, 1e300, -1e300, 1e-300, 2.0**53, 1e30)
TEXTS = (
    *("", "nan", "NaN", "none", " ", "\t\n\u00a0 ", "mlpipe-has-never-seen-this", "\U0001f600", "x" * 1000, "many words " * 9_999),
    *("é", "e\u0301", "\u0301\u0327", "Å \u212b A\u030a", "\ufb01 \uff26\uff55ll", "\u05e9\u05dc\u05d5\u05dd \u202eabc", "a\u0000b"),
)
MOMENTS = (np.nan, 0.0, -1.0, 951_782_400.5, -6.2e10, 2.5e11, 1e300, -1e300)

Arrays = Mapping[str, np.ndarray]


def awkward_rows(columns: Sequence[Column], rows: Arrays, known: Mapping[str, Sequence[str]]) -> dict[str, np.ndarray]:
    """Rows that go wrong in service: everything missing, then each odd value in one column of an ordinary row at a time.

    `rows` has at least one ordinary row, `[rows, 1]` each; `known` some values of each text column, tried in other case
    and with blanks around them.
    """
    ordinary = {column.name: rows[column.name][0, 0] for column in columns}
    made: list[dict[str, Any]] = [{column.name: "" if column.type == "text" else np.nan for column in columns}]
    for column in columns:
        odd: list[Any] = list({"number": NUMBERS, "text": TEXTS, "timestamp": MOMENTS}[column.type])
        for value in [*known.get(column.name, ())[:3], *([ordinary[column.name]] if column.type == "text" else [])]:
            odd += [value, f"{value} ", f" {value}", value.swapcase(), unicodedata.normalize("NFD", value)]
        made += [{**ordinary, column.name: value} for value in odd]
    return {
        column.name: np.array([[row[column.name]] for row in made], dtype=object if column.type == "text" else np.float64)
        for column in columns
    }


@dataclass
class Parity:
    """Differences between exported and trained scores, gathered row by row."""

    tolerance: float
    rows: int = 0
    largest_absolute: float = 0.0
    largest_relative: float = 0.0
    largest_scaled: float = 0.0
    flips: int = 0
    not_finite: int = 0
    _scaled: list[np.ndarray] = field(default_factory=list)

    def add(
        self, exported: np.ndarray, trained: np.ndarray, labels: np.ndarray | None, expected: np.ndarray | None, measure: np.ndarray
    ) -> None:
        """Compares scores [N, K] and, for classes, labels [N]; `measure` [N, K] is what a difference is divided by.

        Two scores that are both not a number agree.
        """
        if exported.shape != trained.shape:
            self.rows += len(trained)
            self.largest_absolute = self.largest_relative = self.largest_scaled = float("inf")
            return
        both = np.isnan(exported) & np.isnan(trained) | (exported == trained)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            absolute = np.where(both, 0.0, np.abs(exported - trained))
            absolute = np.where(np.isnan(absolute), np.inf, absolute)
            size = np.where(np.isfinite(trained), np.abs(trained), 1.0)
            relative = np.where(absolute == 0, 0.0, absolute / np.maximum(size, np.finfo(np.float64).tiny))
            scaled = np.where(
                absolute == 0, 0.0, absolute / np.maximum(np.where(np.isfinite(measure), measure, 1.0), np.finfo(np.float64).tiny)
            )
        self.rows += len(trained)
        self.not_finite += int((~np.isfinite(trained)).any(axis=1).sum())
        self.largest_absolute = max(self.largest_absolute, float(absolute.max(initial=0.0)))
        self.largest_relative = max(self.largest_relative, float(relative.max(initial=0.0)))
        self.largest_scaled = max(self.largest_scaled, float(scaled.max(initial=0.0)))
        self._scaled.append(scaled.max(axis=1))
        if labels is not None and expected is not None:
            differ = labels != expected
            if trained.shape[1] > 1:  # between scores closer than the tolerance either label is right
                ordered = np.sort(trained, axis=1)
                differ = differ & ~((ordered[:, -1] - ordered[:, -2]) <= 2 * self.tolerance) & np.isfinite(trained).all(axis=1)
            self.flips += int(differ.sum())

    @property
    def holds(self) -> bool:
        """Whether every score is within the tolerance and no label changed."""
        return self.largest_scaled <= self.tolerance and not self.flips

    def as_dict(self) -> dict[str, Any]:
        """Plain data for parity.json; an infinite difference is null."""
        spread = np.concatenate(self._scaled) if self._scaled else np.zeros(1)
        return {
            "rows": self.rows,
            "tolerance": self.tolerance,
            "largest_absolute": _finite(self.largest_absolute),
            "largest_relative": _finite(self.largest_relative),
            "largest_scaled": _finite(self.largest_scaled),
            "p999_scaled": _finite(float(np.quantile(spread, 0.999, method="higher"))),
            "label_flips": self.flips,
            "rows_not_finite": self.not_finite,
        }


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def in_batches(run: Callable[[dict[str, np.ndarray]], tuple[np.ndarray, np.ndarray | None]], rows: Arrays, size: int) -> Any:
    """Scores and labels of all rows, run in batches of `size`."""
    count = len(next(iter(rows.values())))
    parts = [run({name: array[start : start + size] for name, array in rows.items()}) for start in range(0, count, size)]
    labels = [part[1] for part in parts if part[1] is not None]
    return np.concatenate([part[0] for part in parts]), np.concatenate(labels) if labels else None
