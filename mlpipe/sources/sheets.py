"""What the kinds of spreadsheet share: which sheet, which cells of it, and what may not be read as a value.

A table is a header row and the rows below it. Every cell becomes text, as in `jsonl`: a whole number without a point, a date in
ISO form, a truth value as `true` or `false`, a percentage as the number that it is. What has no value that can be trusted is
refused with its address: a formula without a stored value, an error that is not listed as missing, a merged area.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from pydantic import Field, PrivateAttr, model_validator

from mlpipe.digest import LARGEST_EXACT
from mlpipe.errors import DataError, did_you_mean, listed
from mlpipe.sources.base import CHUNK_ROWS, Source

if TYPE_CHECKING:
    import pyarrow as pa

SHOWN = 10  # faulty cells shown
RANGE = re.compile(r"^\$?([A-Z]{1,3})\$?([1-9][0-9]*):\$?([A-Z]{1,3})\$?([1-9][0-9]*)$")

Kind = Literal["number", "text", "time", "truth", "error", "formula"]


class Cell(NamedTuple):
    """A cell that is not empty: its column (from 1), its text, what it is, and whether a formula made it."""

    column: int
    text: str
    kind: Kind
    computed: bool = False


@dataclass
class Sheet(ABC):
    """One sheet of an open workbook. What stands beside the cells is known once the rows were read."""

    name: str
    hidden: bool = False
    hidden_rows: set[int] = field(default_factory=set)
    hidden_columns: set[int] = field(default_factory=set)
    merged: list[tuple[int, int, int, int]] = field(default_factory=list)  # first row, first column, last row, last column
    recalculated: bool = False  # the workbook asks to be computed anew when it is opened

    @abstractmethod
    def rows(self) -> Iterator[tuple[int, list[Cell]]]:
        """(number from 1, cells that are not empty) of every row that has some."""


@dataclass
class _Table:
    """Where a table lies: its sheet, the header's row, names by column, the last row."""

    sheet: Sheet
    header_row: int
    names: dict[int, str]
    first: int
    last: int | None


class SheetSource(Source):
    """Settings and reading that the spreadsheet kinds share."""

    sheet: str | Annotated[int, Field(ge=1)] | None = None
    range: str | None = None
    header: Literal[True] | tuple[str, ...] = True
    header_row: Annotated[int, Field(ge=1)] | None = None
    skip_rows: Annotated[int, Field(ge=0)] = 0

    _headers: dict[Path, list[str]] = PrivateAttr(default_factory=dict)
    _kinds: dict[str, tuple[str, Any]] = PrivateAttr(default_factory=dict)  # of columns whose cells are all of one kind

    @model_validator(mode="after")
    def _consistent(self) -> SheetSource:
        if self.range is not None:
            self._area()
            if self.header_row is not None:
                raise ValueError("a range begins with its header row; header_row is for a sheet without a range")
        if self.header is not True and self.header_row is not None:
            raise ValueError("header gives the names; then there is no header_row")
        return self

    def forget(self) -> None:
        """Nothing is known of columns any more."""
        super().forget()
        self._headers, self._kinds = {}, {}

    @abstractmethod
    def opened(self, file: Path) -> AbstractContextManager[list[Sheet]]:
        """The sheets of a workbook. Raises DataError when it is none, is damaged or is protected by a password."""

    def sheet_names(self, file: Path) -> list[str]:
        """The names of the sheets that have cells."""
        with self.opened(file) as sheets:
            return [sheet.name for sheet in sheets if next(sheet.rows(), None)]

    def names(self, file: Path) -> list[str]:
        """The names in the header row, or those that are given."""
        if file not in self._headers:  # opening a large workbook takes seconds
            with self.opened(file) as sheets:
                self._headers[file] = list(self._table(sheets, file)[0].names.values())
        return self._headers[file]

    def cells(self, file: Path, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Every cell as text. Raises DataError after the last row for all cells that have no value to be trusted."""
        import pyarrow as pa

        with self.opened(file) as sheets:
            table, rows = self._table(sheets, file)
            at = {column: name for column, name in table.names.items() if name in columns}
            watch = _Watch(self, table, file, at)
            texts: dict[str, list[str | None]] = {name: [] for name in columns}
            for _, cells in self._below(table, rows, watch):
                for made in texts.values():
                    made.append(None)
                for cell in cells:
                    if (name := at.get(cell.column)) is not None:
                        texts[name][-1] = cell.text
                if len(next(iter(texts.values()), ())) == CHUNK_ROWS:
                    yield _batch(pa, texts)
                    texts = {name: [] for name in columns}
            watch.settle(columns)
            yield _batch(pa, texts)

    def places(self, file: Path, rows: Sequence[int]) -> dict[int, str]:
        """The rows of the sheet."""
        found = super().places(file, rows)
        with self.opened(file) as sheets:
            table, below = self._table(sheets, file)
            for number, (row, _) in enumerate(islice(self._below(table, below), max(rows, default=-1) + 1)):
                if number in found:
                    found[number] = f"row {row} of sheet {table.sheet.name!r}"
        return found

    def agree_kinds(self, column: str, written: str, kind: str) -> None:
        """Compares what all cells of a column are with what they are in the files before. Raises DataError where that differs."""
        self.agree(self._kinds, column, written, kind)

    def _area(self) -> tuple[int, int | None, int, int | None]:
        """First and last row, first and last column of `range`."""
        if self.range is None:
            return 1, None, 1, None
        match = RANGE.match(self.range.upper())
        if match is None:
            raise ValueError(f"range {self.range!r} is not of the form B3:F200")
        left, top, right, bottom = column_number(match[1]), int(match[2]), column_number(match[3]), int(match[4])
        if right < left or bottom < top:
            raise ValueError(f"range {self.range!r} ends before it begins")
        return top, bottom, left, right

    def _chosen(self, sheets: list[Sheet], file: Path) -> Sheet:
        """The sheet that is meant."""
        named = [f"{sheet.name!r}{' (hidden)' if sheet.hidden else ''}" for sheet in sheets]
        if isinstance(self.sheet, int):
            if self.sheet > len(sheets):
                raise DataError(f"{file.name} has {len(sheets)} sheets, not {self.sheet}", hint=f"there are: {listed(named)}")
            return sheets[self.sheet - 1]
        if self.sheet is not None:
            if found := next((sheet for sheet in sheets if sheet.name == self.sheet), None):
                return found
            hint = did_you_mean(self.sheet, [sheet.name for sheet in sheets]) or "correct `sheet`"
            raise DataError(f"{file.name} has no sheet {self.sheet!r} (it has: {listed(named)})", hint=hint)
        filled = [sheet for sheet in sheets if next(sheet.rows(), None)]
        if not filled:
            raise DataError(f"{file.name} is empty: no sheet has cells", hint="is it the right file?")
        if len(filled) > 1:
            shown = [name for sheet, name in zip(sheets, named, strict=True) if sheet in filled]
            raise DataError(f"{file.name} has several sheets with cells: {listed(shown)}", hint=f"name one: sheet: {filled[0].name}")
        return filled[0]

    def _table(self, sheets: list[Sheet], file: Path) -> tuple[_Table, Iterator[tuple[int, list[Cell]]]]:
        """The table's place, and its rows behind the header."""
        sheet = self._chosen(sheets, file)
        top, bottom, left, right = self._area()
        inside = (
            (row, [cell for cell in cells if left <= cell.column and (right is None or cell.column <= right)])
            for row, cells in sheet.rows()
            if row >= top and (bottom is None or row <= bottom)
        )
        if self.header is not True:
            rows = ((row, cells) for row, cells in inside if cells)
            head = list(islice(rows, 1))  # without a range the names begin where the cells begin
            start = left if self.range else min((cell.column for _, cells in head for cell in cells), default=1)
            begin = top if self.range or not head else head[0][0]
            table = _Table(sheet, 0, dict(enumerate(self.header, start)), begin, bottom)
            return table, (row for part in (head, rows) for row in part)
        for row, cells in inside:
            wanted = self.header_row or (top if self.range else None)
            if not cells or (wanted is not None and row < wanted):
                continue
            if wanted is not None and row > wanted:
                break
            for cell in cells:
                if cell.kind in ("error", "formula"):
                    what = cell.text if cell.kind == "error" else "a formula without a stored value"
                    raise DataError(f"{file.name}, sheet {sheet.name!r}, {address(row, cell.column)}: the header holds {what}")
            names = {cell.column: name for cell in cells if (name := cell.text.strip() if self.strip else cell.text)}
            return _Table(sheet, row, names, row + 1, bottom), inside
        where = (
            f"row {self.header_row or top} of sheet {sheet.name!r} is empty"
            if self.header_row or self.range
            else f"sheet {sheet.name!r} is empty"
        )
        raise DataError(f"{file.name}: {where}: no header", hint="correct `sheet`, `range` or `header_row`")

    def _below(
        self, table: _Table, rows: Iterator[tuple[int, list[Cell]]], watch: _Watch | None = None
    ) -> Iterator[tuple[int, list[Cell]]]:
        """The rows below the header that have cells in the table's columns; empty ones are passed over."""
        for row, cells in rows:
            if row < table.first + self.skip_rows:
                continue
            if watch:
                watch.look(row, cells)
            named = [cell for cell in cells if cell.column in table.names]
            if named:
                yield row, named


class _Watch:
    """Looks at every cell of a table as it goes by and tells afterwards what cannot be read or should be known."""

    def __init__(self, source: SheetSource, table: _Table, file: Path, wanted: dict[int, str]) -> None:
        self.source, self.table, self.file, self.wanted = source, table, file, wanted
        self.missing = {name: {*source.missing, *source.missing_by_column.get(name, ())} for name in wanted.values()}
        self.formulas: dict[str, list[str]] = {}
        self.errors: dict[str, list[str]] = {}
        self.nameless: dict[int, str] = {}
        self.computed: dict[str, list[int]] = {}  # formulas, and how many of them hold 0
        self.long: dict[str, int] = {}
        self.kinds: dict[str, set[str]] = {}
        self.previous = table.first - 1 + source.skip_rows
        self.gaps: list[int] = []
        self.last = 0

    def look(self, row: int, cells: list[Cell]) -> None:
        """Notes what is odd about a row."""
        if cells and self.previous and row > self.previous + 1:
            self.gaps.append(row - 1)
        self.previous, self.last = row, row
        for cell in cells:
            name = self.wanted.get(cell.column)
            if name is None:
                if cell.column not in self.table.names:
                    self.nameless.setdefault(cell.column, address(row, cell.column))
                continue
            if cell.kind == "formula":
                self.formulas.setdefault(name, []).append(address(row, cell.column))
            elif cell.kind == "error":
                if cell.text not in self.missing[name]:
                    self.errors.setdefault(name, []).append(f"{address(row, cell.column)} holds {cell.text}")
            else:
                self.kinds.setdefault(name, set()).add(cell.kind)
                if cell.computed:
                    counts = self.computed.setdefault(name, [0, 0])
                    counts[0] += 1
                    counts[1] += cell.text == "0"
                if cell.kind == "number" and "e+" in cell.text:
                    self.long[name] = self.long.get(name, 0) + 1

    def settle(self, columns: Sequence[str]) -> None:
        """Raises DataError for cells without a value; leaves notes for the rest."""
        self._refuse_formulas()
        sheet, name = self.table.sheet, self.file.name
        where = f"{name}, sheet {sheet.name!r}"
        if self.errors:
            faults = [line for column in self.errors for line in self._shown(column, self.errors[column])]
            total = sum(map(len, self.errors.values()))
            raise DataError(
                f"{where}: {total:,} cell{'s' * (total > 1)} with an error instead of a value",
                faults=faults,
                hint="correct them in the workbook, or list the error under `missing` (such as '#N/A') if it means that there is no value",
            )
        if self.nameless:
            column, first = next(iter(self.nameless.items()))
            row = self.table.header_row
            what = f"no name in the header row {row}" if row else "no name in `header`"
            raise DataError(
                f"{where}: column {letters(column)} has cells ({first}) and {what}",
                hint="give it a name, leave it out with `range`, or say with `header_row` which row has the names",
            )
        self._refuse_merged(where)
        self._notes(where)
        for wanted in columns:
            kinds = self.kinds.get(wanted, set())
            if len(kinds) == 1:
                self.source.agree_kinds(wanted, self.file.name, f"{next(iter(kinds))} cells")

    def _refuse_formulas(self) -> None:
        if self.table.sheet.recalculated:
            for column, (count, zeros) in self.computed.items():
                if count == zeros and count > 1:  # what a program writes that leaves computing to the spreadsheet
                    self.formulas.setdefault(column, []).extend(["0"] * count)
        if not self.formulas:
            return
        where = f"{self.file.name}, sheet {self.table.sheet.name!r}"
        faults = []
        for column, cells in self.formulas.items():
            shown = f" ({cells[0]} to {cells[-1]})" if len(cells) > 1 else f" ({cells[0]})"
            if cells[0] == "0":
                shown = " (each holds 0, and the workbook asks to be computed when it is opened)"
            faults.append(f"column {column!r}: {len(cells):,} formula cell{'s' * (len(cells) > 1)} without a stored value{shown}")
        raise DataError(
            f"{where}: formula cells without a stored value: no spreadsheet program has computed them yet",
            faults=faults,
            hint="open the workbook in a spreadsheet program, save it and try again; or have the program that wrote it write values",
        )

    def _shown(self, column: str, cells: list[str]) -> list[str]:
        lines = [f"column {column!r}: {cell}" for cell in cells[:SHOWN]]
        return [*lines, *([f"... and {len(cells) - SHOWN:,} more in column {column!r}"] if len(cells) > SHOWN else [])]

    def _refuse_merged(self, where: str) -> None:
        first, last = self.table.first + self.source.skip_rows, self.table.last or self.last
        faults = []
        for top, left, bottom, right in self.table.sheet.merged:
            mine = [name for column, name in self.wanted.items() if left <= column <= right]
            if mine and bottom >= first and top <= last:
                faults.append(f"{address(top, left)}:{address(bottom, right)}, column{'s' * (len(mine) > 1)} {', '.join(map(repr, mine))}")
        if faults:
            raise DataError(
                f"{where}: {len(faults)} merged area{'s' * (len(faults) > 1)} among the rows; all cells of one but the first read as empty",
                faults=[*faults[:SHOWN], *(["..."] if len(faults) > SHOWN else [])],
                hint="unmerge them and fill the cells, or leave them out with `range`",
            )

    def _notes(self, where: str) -> None:
        sheet = self.table.sheet
        note = self.source.note
        if sheet.hidden:
            note(f"{where} is a hidden sheet")
        hidden = sorted(row for row in sheet.hidden_rows if self.table.first <= row <= self.last)
        if hidden:
            note(f"{where}: {len(hidden):,} hidden rows are read like the others")
        if columns := [name for column, name in self.wanted.items() if column in sheet.hidden_columns]:
            note(f"{where}: hidden columns are read like the others: {listed(columns)}")
        if self.gaps:
            note(f"{where}: empty rows passed over before row {listed([f'{row + 1}' for row in self.gaps], 5)}")
        if sheet.recalculated and self.computed:
            note(f"{where}: the workbook asks to be computed when opened; its stored values may be old: {listed(list(self.computed))}")
        for column, count in self.long.items():
            note(f"{where}, column {column!r}: {count:,} whole numbers of more than 15 digits, which spreadsheets round")


def _batch(pa: Any, texts: dict[str, list[str | None]]) -> Any:
    arrays = [pa.array(cells, pa.string()).dictionary_encode() for cells in texts.values()]
    return pa.RecordBatch.from_arrays(arrays, names=list(texts))


def text_of(value: Any) -> tuple[str, Kind]:
    """A value as a library gives it, as the text of a cell."""
    if isinstance(value, bool):
        return ("true" if value else "false"), "truth"
    if isinstance(value, int):
        return str(value), "number"
    if isinstance(value, float):
        whole = value.is_integer() and abs(value) <= LARGEST_EXACT
        return (str(int(value)) if whole else repr(value)), "number"
    if isinstance(value, datetime):
        return (value.date().isoformat() if value.time() == time() else value.isoformat()), "time"
    if isinstance(value, (date, time)):
        return value.isoformat(), "time"
    if isinstance(value, timedelta):
        seconds = value // timedelta(seconds=1)
        return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}", "time"
    return str(value), "text"


def letters(column: int) -> str:
    """`AB` for 28."""
    text = ""
    while column:
        column, rest = divmod(column - 1, 26)
        text = chr(65 + rest) + text
    return text


def column_number(text: str) -> int:
    """28 for `AB`."""
    number = 0
    for sign in text:
        number = number * 26 + ord(sign) - 64
    return number


def address(row: int, column: int) -> str:
    """`AB7`."""
    return f"{letters(column)}{row}"
