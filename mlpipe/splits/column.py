"""Split `column`: the data says itself which row is what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from mlpipe.errors import DataError
from mlpipe.splits.base import TEST, TRAIN, VALID, Assigner, SplitSettings

if TYPE_CHECKING:
    import pyarrow as pa

Names = tuple[str, ...]


class ColumnAssigner(Assigner):
    """Looks each value up."""

    def __init__(self, column: str, table: dict[str, int], own_test: bool) -> None:
        self.column, self.table, self.own_test = column, table, own_test

    def assign(self, rows: pa.RecordBatch) -> np.ndarray:
        """Raises DataError for a value that no split claims."""
        array: Any = rows.column(self.column)
        if array.null_count:
            raise DataError(f"{array.null_count} rows have no {self.column!r}, by which they are split")
        values = array.dictionary.to_pylist()
        codes: np.ndarray = array.indices.to_numpy(zero_copy_only=False)
        used = {values[code] for code in np.unique(codes)}
        if self.own_test and (marked := sorted(value for value in used if self.table.get(value) == TEST)):
            raise DataError(
                f"column {self.column!r} marks rows as {marked[0]!r}, but the test rows have a source of their own",
                hint="leave prepare.test out, or take those rows out of prepare.source",
            )
        if unclaimed := sorted(used - self.table.keys()):
            raise DataError(
                f"column {self.column!r} holds {unclaimed[0]!r}, which is neither train, valid nor test",
                hint="name it under prepare.split.train, .valid_values or .test_values",
            )
        found: np.ndarray = np.array([self.table.get(value, TRAIN) for value in values], dtype=np.uint8)[codes]
        return found


class ColumnSplit(SplitSettings):
    """By the values of the column `by`: those in `train`, in `valid_values` and in `test_values`."""

    kind: Literal["column"] = "column"
    by: str
    train: Annotated[Names, Field(min_length=1)] = ("train",)
    valid_values: Names = ("valid",)
    test_values: Names = ("test",)

    @model_validator(mode="after")
    def _apart(self) -> ColumnSplit:
        claimed = [*self.train, *self.valid_values, *self.test_values]
        if twice := sorted({value for value in claimed if claimed.count(value) > 1}):
            raise ValueError(f"{twice[0]!r} stands in two splits")
        return self

    @property
    def validates(self) -> bool:
        """Whether there are to be valid rows: `valid_values: []` does without."""
        return self.valid > 0 and bool(self.valid_values)

    def columns(self) -> tuple[str, ...]:
        """The column that says it."""
        return (self.by,)

    def assigner(self, *, hashed: tuple[str, ...], target: str, seed: int, own_test: bool) -> Assigner:
        """A table from values to splits."""
        table = dict.fromkeys(self.train, TRAIN) | dict.fromkeys(self.valid_values, VALID) | dict.fromkeys(self.test_values, TEST)
        return ColumnAssigner(self.by, table, own_test)
