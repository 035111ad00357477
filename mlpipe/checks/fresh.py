"""Check `fresh`: the newest row is not too old."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal

from pydantic import field_validator

from mlpipe.checks.base import CellTally, ColumnCheck, Finding, Setting, Tally
from mlpipe.columns import Column, ColumnType, check_format, convert, parse_moment

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

AGE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?(w|d|h|m|s)")
SECONDS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}


class Fresh(ColumnCheck):
    """The newest time of a column is not older than `max_age` (`2d`, `36h`, `30m`, `1w`).

    The manifest holds the newest time, never the clock. Whether that is too old is judged anew by every `prepare` and
    `run`, also when nothing changed and nothing runs: a schedule learns so that data stopped arriving. `as_of` puts a
    fixed moment in the place of the clock. A time without a zone is taken as UTC.
    """

    kind: Literal["fresh"] = "fresh"
    max_age: str
    as_of: str | None = None
    format: str = "iso"

    @field_validator("format")
    @classmethod
    def _anywhere(cls, value: str) -> str:
        return check_format(value)

    @field_validator("max_age")
    @classmethod
    def _readable(cls, value: str) -> str:
        if not AGE.fullmatch(value):
            raise ValueError(f"max_age {value!r} is no span of time; 2d, 36h, 30m and 1w are examples")
        return value

    @field_validator("as_of")
    @classmethod
    def _moment(cls, value: str | None) -> str | None:
        if value is not None and parse_moment(value, "iso") is None:
            raise ValueError(f"as_of {value!r} is no date or time in ISO 8601, such as 2024-05-01")
        return value

    def for_test(self) -> bool:
        """A test set is as old as it is."""
        return False

    def fault(self, types: dict[str, ColumnType], task: str) -> str | None:
        """Times, or text that is read as such."""
        wrong = next((name for name in self.columns if types.get(name) == "number"), None)
        return f"{wrong!r} is read as a number elsewhere in the file; fresh is for times" if wrong else None

    def tally(self, setting: Setting) -> Tally:
        """Keeps the newest time."""
        return FreshTally(self, setting)

    def known_facts(self) -> dict[str, Any]:
        """The bound, and what it is compared with."""
        return {"max_age": self.max_age, "as_of": self.as_of or "the clock, at every prepare and run"}

    def too_old(self, column: str, newest: str | None, now: str) -> str | None:
        """What to say when the newest time (ISO 8601) is older than `max_age` at `now`, else None."""
        if newest is None:
            return f"{column!r} holds no time at all"
        number, unit = AGE.fullmatch(self.max_age).groups()  # type: ignore[union-attr]
        then, at = parse_moment(newest, "iso"), parse_moment(self.as_of or now, "iso")
        assert then is not None
        assert at is not None
        age = (at - then) / 1e6
        if age <= float(number) * SECONDS[unit]:
            return None
        old = _span(age / SECONDS[unit], float(number))
        return f"the newest {column!r} is {newest}, {old}{unit} before {self.as_of or f'now ({now})'}; allowed is {self.max_age}"


def _span(age: float, bound: float) -> str:
    """An age in the unit of its bound, with digits enough to see that it is beyond it."""
    texts = (f"{age:.{digits}f}".rstrip("0").rstrip(".") for digits in range(1, 10))
    return next((text for text in texts if float(text) > bound), f"{age}")


class FreshTally(Tally):
    """The newest time of each column, in microseconds; text that is no time is at fault."""

    def __init__(self, check: Fresh, setting: Setting) -> None:
        import numpy as np

        self.check = check
        self.newest: dict[str, int] = {}
        self.column = ""

        def unreadable(values: pa.Array) -> np.ndarray:
            import pyarrow as pa

            bad: np.ndarray = np.zeros(len(values), dtype=bool)
            if pa.types.is_string(values.type):
                values, faults = convert(values, Column(name="", type="timestamp", format=check.format), setting.numbers)
                bad[[fault.row for fault in faults]] = True
            present = values.drop_null().cast(pa.int64()).to_numpy(zero_copy_only=False)
            if len(present):
                self.newest[self.column] = max(int(present.max()), self.newest.get(self.column, int(present[0])))
            return bad

        self.cells = {name: CellTally((name,), unreadable, f"are no times of the form {check.format!r}") for name in check.columns}

    def look(self, rows: pa.RecordBatch, file: str, first: int) -> None:
        """Looks at the times of these rows."""
        import pyarrow as pa

        for name, cells in self.cells.items():
            self.column = name
            array = rows.column(name)
            if pa.types.is_dictionary(array.type):  # only values that stand in these rows
                array = array.dictionary_decode().dictionary_encode()
                rows = rows.set_column(rows.schema.get_field_index(name), name, array)
            cells.look(rows, file, first)

    def finding(self) -> Finding:
        """The newest times; passed when all texts are times (how old they are is judged against the clock, by the caller)."""
        parts = [cells.finding() for cells in self.cells.values()]
        observed = {
            name: {**part.observed[name], "newest": _iso(self.newest.get(name))} for name, part in zip(self.cells, parts, strict=True)
        }
        said = "; ".join(part.said for part in parts if not part.passed)
        return Finding(not said, observed, said, [row for part in parts for row in part.rows])


def _iso(micros: int | None) -> str | None:
    from datetime import datetime, timedelta

    return None if micros is None else (datetime(1970, 1, 1) + timedelta(microseconds=micros)).isoformat()  # noqa: DTZ001 (as it stands)
