"""Split `time`: the past trains, the future tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import field_validator, model_validator

from mlpipe.columns import Column, check_format, parse_moment
from mlpipe.errors import DataError
from mlpipe.splits.base import TEST, TRAIN, VALID, Assigner, SplitSettings

if TYPE_CHECKING:
    import pyarrow as pa


class TimeAssigner(Assigner):
    """Rows from `valid_from` on are valid, from `test_from` on test (microseconds). Without bounds it looks for them."""

    def __init__(self, column: str, shares: tuple[float, float], bounds: tuple[int | None, int | None]) -> None:
        self.column, self.shares, self.bounds = column, shares, bounds
        self.looks = any(share > 0 and bound is None for share, bound in zip(shares, bounds, strict=True))
        self._seen: list[np.ndarray] = []

    def _micros(self, rows: pa.RecordBatch) -> np.ndarray:
        import pyarrow as pa

        array: Any = rows.column(self.column)
        if array.null_count:
            raise DataError(
                f"{array.null_count} rows have no {self.column!r}, by which they are split",
                hint="drop those rows or split by something else",
            )
        micros: np.ndarray = array.cast(pa.int64()).to_numpy(zero_copy_only=False)
        return micros

    def look(self, rows: pa.RecordBatch) -> None:
        """Collects the times (8 bytes a row)."""
        self._seen.append(self._micros(rows))

    def settle(self) -> None:
        """Puts the bounds where the shares fall; rows of one moment stay together, on the later side."""
        times = np.sort(np.concatenate(self._seen)) if self._seen else np.array([], dtype=np.int64)
        self._seen.clear()
        if not len(times):
            return
        valid, test = self.shares
        at = [1 - valid - test, 1 - test]
        found = [int(times[min(round(share * len(times)), len(times) - 1)]) for share in at]
        first, second = self.bounds
        self.bounds = (found[0] if valid > 0 and first is None else first, found[1] if test > 0 and second is None else second)

    def assign(self, rows: pa.RecordBatch) -> np.ndarray:
        """Compares times with the bounds."""
        micros = self._micros(rows)
        codes = np.full(len(micros), TRAIN, dtype=np.uint8)
        for bound, code in ((self.bounds[0], VALID), (self.bounds[1], TEST)):
            if bound is not None:
                codes[micros >= bound] = code
        return codes


class TimeSplit(SplitSettings):
    """By the column `by`: the latest share is test, the one before it valid. `valid_from` and `test_from` fix the moments."""

    kind: Literal["time"] = "time"
    by: str
    format: str = "iso"
    valid_from: str | None = None
    test_from: str | None = None

    @field_validator("format")
    @classmethod
    def _anywhere(cls, value: str) -> str:
        return check_format(value)

    @model_validator(mode="after")
    def _readable(self) -> TimeSplit:
        for name in ("valid_from", "test_from"):
            text = getattr(self, name)
            if text is not None and self._moment(text) is None:
                raise ValueError(f"{name}: {text!r} is not a time of the form {self.format!r} or ISO 8601")
        first, second = self._moment(self.valid_from), self._moment(self.test_from)
        if first is not None and second is not None and first > second:
            raise ValueError(f"valid_from {self.valid_from!r} is later than test_from {self.test_from!r}: no row would be valid")
        return self

    def _moment(self, text: str | None) -> int | None:
        if text is None:
            return None
        found = parse_moment(text, self.format)
        return parse_moment(text, "iso") if found is None else found

    def columns(self) -> tuple[str, ...]:
        """The time column."""
        return (self.by,)

    def raw(self) -> Column:
        """The time column as a timestamp."""
        return Column(name=self.by, type="timestamp", format=self.format)

    def assigner(self, *, hashed: tuple[str, ...], target: str, seed: int, own_test: bool) -> Assigner:
        """Fixed bounds, or bounds found in a first look."""
        shares = (self.valid, 0.0 if own_test else self.test)
        return TimeAssigner(self.by, shares, (self._moment(self.valid_from), None if own_test else self._moment(self.test_from)))
