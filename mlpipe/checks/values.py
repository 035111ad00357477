"""Checks of single cells: `range`, `allowed`, `pattern`. A missing cell breaks none of them; `not_missing` is for those."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from mlpipe.checks.base import CellTally, ColumnCheck, Setting, Tally
from mlpipe.columns import Column, ColumnType, check_format, convert, parse_moment

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

Bound = float | str


class Range(ColumnCheck):
    """Numbers, or times, within bounds, the bounds themselves included.

    A bound that is a text is a time (ISO 8601, or of the form `format`). A cell that is no number, or no time, is outside.
    """

    kind: Literal["range"] = "range"
    at_least: Bound | None = None
    at_most: Bound | None = None
    format: str = "iso"

    @field_validator("format")
    @classmethod
    def _anywhere(cls, value: str) -> str:
        return check_format(value)

    @model_validator(mode="after")
    def _bounds(self) -> Range:
        given = [bound for bound in (self.at_least, self.at_most) if bound is not None]
        if not given:
            raise ValueError("a range needs at_least or at_most")
        if len({isinstance(bound, str) for bound in given}) > 1:
            raise ValueError("one bound is a number, the other a text")
        for bound in given:
            if isinstance(bound, str) and self._moment(bound) is None:
                raise ValueError(f"{bound!r} is neither a number nor a time of the form {self.format!r} or ISO 8601")
        low, high = self.edges
        if low is not None and high is not None and low > high:
            raise ValueError(f"at_least {self.at_least!r} is above at_most {self.at_most!r}: no value would pass")
        return self

    def _moment(self, text: str) -> int | None:
        found = parse_moment(text, self.format)
        return parse_moment(text, "iso") if found is None else found

    @property
    def of_times(self) -> bool:
        """Whether times are compared."""
        return isinstance(self.at_least, str) or isinstance(self.at_most, str)

    @property
    def edges(self) -> tuple[float | None, float | None]:
        """Both bounds, times in microseconds."""
        low, high = (self._moment(bound) if isinstance(bound, str) else bound for bound in (self.at_least, self.at_most))
        return low, high

    def fault(self, types: dict[str, ColumnType], task: str) -> str | None:
        """Numbers are not compared with times."""
        wrong = "number" if self.of_times else "timestamp"
        for name in self.columns:
            if types.get(name) == wrong:
                return f"{name!r} is read as a {wrong} elsewhere in the file; its bounds must be {'numbers' if self.of_times else 'times'}"
        return None

    def tally(self, setting: Setting) -> Tally:
        """Compares typed cells, or text as the number or time that it means."""
        import numpy as np
        import pyarrow as pa

        low, high = self.edges
        kind: ColumnType = "timestamp" if self.of_times else "number"
        column = Column(name="", type=kind, format=self.format if self.of_times else None)

        def outside(values: pa.Array) -> np.ndarray:
            bad: np.ndarray = np.zeros(len(values), dtype=bool)
            if pa.types.is_string(values.type):
                values, faults = convert(values, column, setting.numbers)
                bad[[fault.row for fault in faults]] = True
            if self.of_times:
                values = values.cast(pa.int64())
            numbers = values.fill_null(0).to_numpy(zero_copy_only=False)
            beyond = np.zeros(len(values), dtype=bool)
            if low is not None:
                beyond |= numbers < low
            if high is not None:
                beyond |= numbers > high
            bad |= beyond & values.is_valid().to_numpy(zero_copy_only=False)
            return bad

        bounds = " or ".join(
            f"{word} {bound!r}" for word, bound in (("below", self.at_least), ("above", self.at_most)) if bound is not None
        )
        return CellTally(self.columns, outside, f"are {bounds}, or no {'time' if self.of_times else 'number'}")

    def known_facts(self) -> dict[str, Any]:
        """The bounds."""
        return {name: bound for name, bound in (("at_least", self.at_least), ("at_most", self.at_most)) if bound is not None}


class Allowed(ColumnCheck):
    """Only the listed values. Numbers in a column of numbers are compared as numbers."""

    kind: Literal["allowed"] = "allowed"
    values: Annotated[tuple[str | float, ...], Field(min_length=1)]

    @field_validator("values", mode="before")
    @classmethod
    def _written(cls, value: Any) -> Any:
        """A whole number stays one (a cell `1` is not `1.0`); true and false are texts in a table."""
        if not isinstance(value, (list, tuple)):
            return value
        return [str(v).lower() if isinstance(v, bool) else str(v) if isinstance(v, int) else v for v in value]

    def fault(self, types: dict[str, ColumnType], task: str) -> str | None:
        """A list for a column of numbers holds numbers; times have ranges."""
        for name in self.columns:
            if types.get(name) == "timestamp":
                return f"{name!r} is read as a time elsewhere in the file; use a range"
            if types.get(name) == "number" and (odd := next((v for v in self.values if _number(v) is None), None)) is not None:
                return f"{name!r} is read as a number elsewhere in the file; {odd!r} is none"
        return None

    def tally(self, setting: Setting) -> Tally:
        """Looks each value up."""
        import numpy as np
        import pyarrow as pa

        texts = {str(value) for value in self.values}
        numbers = np.array([number for value in self.values if (number := _number(value)) is not None])

        def strange(values: pa.Array) -> np.ndarray:
            if pa.types.is_string(values.type):
                return np.array([text is not None and text not in texts for text in values.to_pylist()], dtype=bool)
            found: np.ndarray = ~np.isin(values.to_numpy(zero_copy_only=False), numbers)
            return found

        return CellTally(self.columns, strange, f"are none of the {len(self.values)} allowed values")


def _number(value: str | float) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None


class Pattern(ColumnCheck):
    """Text that a regular expression matches as a whole.

    The expressions are RE2's (https://github.com/google/re2/wiki/Syntax), which take time in proportion to the text
    whatever the expression: no look-around, no back references, and no expression that runs for hours.
    """

    kind: Literal["pattern"] = "pattern"
    pattern: Annotated[str, Field(min_length=1, max_length=1000)]

    @field_validator("pattern")
    @classmethod
    def _valid(cls, value: str) -> str:
        import pyarrow as pa
        import pyarrow.compute as pc

        try:
            pc.match_substring_regex(pa.array([""]), whole(value))
        except pa.ArrowInvalid as fault:
            raise ValueError(f"{value!r} is no regular expression that RE2 takes: {str(fault).rpartition('expression: ')[2]}") from None
        return value

    def fault(self, types: dict[str, ColumnType], task: str) -> str | None:
        """Text only."""
        for name in self.columns:
            if types.get(name, "text") != "text":
                return f"{name!r} is read as a {types[name]} elsewhere in the file; a pattern is for text"
        return None

    def tally(self, setting: Setting) -> Tally:
        """Matches each distinct text once."""
        import pyarrow.compute as pc

        expression = whole(self.pattern)

        def unlike(values: pa.Array) -> np.ndarray:
            found: np.ndarray = pc.invert(pc.match_substring_regex(values, expression)).fill_null(False).to_numpy(zero_copy_only=False)
            return found

        return CellTally(self.columns, unlike, f"do not match {self.pattern!r}")

    def known_facts(self) -> dict[str, Any]:
        """The expression."""
        return {"pattern": self.pattern}


def whole(pattern: str) -> str:
    r"""The expression for a match of the whole text; `$` would let a line feed follow."""
    return rf"\A(?:{pattern})\z"
