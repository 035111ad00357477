"""What every check kind is: settings, a tally that is shown all rows chunk by chunk, and a finding with counts and places.

Checks see typed rows as prepare reads them, before any is dropped. They stream and keep counts, or some bytes a row;
pandera and its like hold the whole table as a frame, which is why none of them is used here.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from mlpipe.base import NumberFormat, Settings
from mlpipe.columns import ColumnType

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

SHOWN = 10  # rows that a finding names


@dataclass(frozen=True)
class At:
    """A row at fault: its file, its number there from 0, what is there; for a repeated key the row that had it first."""

    file: str
    row: int
    value: str = ""
    like: tuple[str, int] | None = None


@dataclass(frozen=True)
class Finding:
    """What a check found. `rows` are the first rows at fault."""

    passed: bool
    observed: dict[str, Any]
    said: str
    rows: list[At] = field(default_factory=list)


@dataclass(frozen=True)
class Setting:
    """What a tally knows of the pipeline: the target and how the source writes numbers."""

    target: str
    numbers: NumberFormat


class Tally:
    """Counts for one check over one source."""

    def look(self, rows: pa.RecordBatch, file: str, first: int) -> None:
        """Shows the next rows of a file, `first` being the number of the first one, from 0."""
        raise AssertionError(f"{type(self).__name__} does not look")

    def finding(self) -> Finding:
        """What came out, after the last row."""
        raise AssertionError(f"{type(self).__name__} finds nothing")


def _several(value: Any) -> Any:
    """One name is as good as a list of one."""
    return [value] if isinstance(value, str) else value


Names = Annotated[
    tuple[Annotated[str, Field(min_length=1)], ...], BeforeValidator(_several, json_schema_input_type=str | list[str]), Field(min_length=1)
]


class Check(Settings):
    """A statement about the rows that are read. `level: warn` says that it does not hold and goes on."""

    level: Literal["fail", "warn"] = "fail"

    @abstractmethod
    def tally(self, setting: Setting) -> Tally:
        """A fresh tally."""

    def names(self) -> tuple[str, ...]:
        """The columns that it reads beside the target."""
        return ()

    def for_test(self) -> bool:
        """Whether it is made on a test source too: what holds of each row is, what is said of the amount or age of the data is not."""
        return False

    def fault(self, types: dict[str, ColumnType], task: str) -> str | None:
        """Why it cannot be made on columns that the pipeline reads as these types, or for this kind of task."""
        return None

    def known_facts(self) -> dict[str, Any]:
        """Settings that a reader of the manifest wants beside the figures."""
        return {}


class ColumnCheck(Check):
    """A check of named columns; `column: x` is the same as `columns: [x]`."""

    columns: Names

    @model_validator(mode="before")
    @classmethod
    def _one(cls, data: Any) -> Any:
        if isinstance(data, dict) and "column" in data and "columns" not in data:
            return {"columns" if key == "column" else key: value for key, value in data.items()}
        return data

    @model_validator(mode="after")
    def _once(self) -> ColumnCheck:
        if twice := next((name for name in self.columns if self.columns.count(name) > 1), None):
            raise ValueError(f"{twice!r} stands twice in columns")
        return self

    def names(self) -> tuple[str, ...]:
        """The columns."""
        return self.columns

    def for_test(self) -> bool:
        """Columns are alike in both."""
        return True


class CellTally(Tally):
    """Cells that do not hold, by column: how many of how many, and the first of them.

    `bad` is (column's values) -> bool [values]; it is asked once for each distinct text of a chunk.
    """

    def __init__(self, columns: tuple[str, ...], bad: Callable[[pa.Array], np.ndarray], what: str) -> None:
        self.columns, self.bad, self.what = columns, bad, what
        self.counts = dict.fromkeys(columns, 0)
        self.present = dict.fromkeys(columns, 0)
        self.first: list[At] = []

    def look(self, rows: pa.RecordBatch, file: str, first: int) -> None:
        """Counts the cells of these rows."""
        import numpy as np

        for name in self.columns:
            array = rows.column(name)
            wrong = each_cell(array, self.bad)
            self.counts[name] += int(wrong.sum())
            self.present[name] += len(array) - array.null_count
            if len(self.first) < SHOWN and wrong.any():
                for row in np.flatnonzero(wrong)[: SHOWN - len(self.first)].tolist():
                    self.first.append(At(file, first + row, f"column {name!r}: {shown(array[row])}"))

    def finding(self) -> Finding:
        """Passed when no cell is at fault."""
        faults = {name: count for name, count in self.counts.items() if count}
        said = "; ".join(f"{count:,} of {self.present[name]:,} cells of {name!r} {self.what}" for name, count in faults.items())
        observed = {name: {"cells": self.present[name], "at_fault": self.counts[name]} for name in self.columns}
        return Finding(not faults, observed, said, self.first)


def each_cell(array: Any, bad: Callable[[Any], np.ndarray]) -> np.ndarray:
    """Bool [rows]: whether a cell is bad; a missing one is not. A dictionary's values are asked once each."""
    import numpy as np
    import pyarrow as pa

    if pa.types.is_dictionary(array.type):
        flags = np.append(bad(array.dictionary), False)
        found: np.ndarray = flags[array.indices.fill_null(len(flags) - 1).to_numpy(zero_copy_only=False)]
        return found
    flags = bad(array)
    return flags & ~array.is_null().to_numpy(zero_copy_only=False) if array.null_count else flags


def shown(cell: Any) -> str:
    """A cell for a message: text in quotes and cut, numbers and times as they are."""
    value = cell.as_py()
    text = value.isoformat() if hasattr(value, "isoformat") else repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
