"""Source `excel`: a table in a sheet of an Excel workbook (.xlsx, .xlsm), read by openpyxl row by row."""

from __future__ import annotations

import re
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from mlpipe.errors import DataError
from mlpipe.sources.sheets import Cell, Sheet, SheetSource, text_of

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # how the older binary files begin, and encrypted new ones
ENCRYPTED = "EncryptedPackage".encode("utf-16-le")

CONTROL = re.compile("_x(00[01][0-9A-Fa-f])_")  # how a workbook writes a sign that XML cannot: _x000D_ is a carriage return


class Excel(SheetSource):
    """A table in an Excel workbook (.xlsx, .xlsm): a header row and the rows below it, every cell as text.

    Without `sheet` the only sheet with cells is read; the header is the first row with cells, or the first of `range`, and the
    table ends at the last row with cells. Whole numbers have no point, dates are in ISO form, truth values are `true` and
    `false`, 25% is 0.25, hidden rows and columns count. Refused with their addresses: formulas without a stored value, error
    values that `missing` does not list, merged cells among the rows. Of a formula the stored value is read.
    """

    kind: Literal["excel"] = "excel"

    @contextmanager
    def opened(self, file: Path) -> Iterator[list[Sheet]]:
        """The sheets of a workbook, each read from its own part of the file when it is asked for."""
        import openpyxl
        from openpyxl.utils.exceptions import InvalidFileException

        _refuse_binary(file)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about drawings and validation, which are not read
                raw = file.open("rb")  # by its name openpyxl would judge it by its ending
                try:
                    book = openpyxl.load_workbook(raw, read_only=True, data_only=True)
                    recalculated = bool(book.calculation and book.calculation.fullCalcOnLoad)
                    yield [_ExcelSheet(sheet, recalculated) for sheet in book.worksheets]
                finally:
                    raw.close()
        except DataError:
            raise
        except (zipfile.BadZipFile, InvalidFileException) as fault:
            raise DataError(
                f"{file.name} is no Excel workbook: {_line(fault)}", hint="check `kind` and whether the file is whole"
            ) from None
        except OSError as fault:
            raise DataError(f"{file.name} cannot be read: {(fault.strerror or str(fault)).lower()}") from None
        except (KeyError, ValueError, TypeError, IndexError, AttributeError, SyntaxError, EOFError) as fault:  # XML errors are SyntaxError
            raise DataError(f"{file.name} is damaged: {_line(fault)}", hint="open it in Excel and save it again") from None


class _ExcelSheet(Sheet):
    """A sheet as openpyxl's own parser reads it; the parser is asked, too, what a formula cell without a value is."""

    def __init__(self, sheet: Any, recalculated: bool) -> None:
        super().__init__(sheet.title, hidden=sheet.sheet_state != "visible", recalculated=recalculated)
        self._sheet = sheet

    def rows(self) -> Iterator[tuple[int, list[Cell]]]:
        """The rows, whatever extent the file says that the sheet has."""
        book = self._sheet.parent
        with self._sheet._get_source() as raw:  # noqa: SLF001 (ReadOnlyWorksheet has no public way to what stands beside the values)
            parser = _parser(raw, self._sheet._shared_strings, book)  # noqa: SLF001
            for number, cells in parser.parse():
                found = [
                    Cell(cell["column"], *_told(cell["value"], cell["data_type"]), computed=cell["computed"])
                    for cell in cells
                    if cell["value"] is not None
                ]
                if found:
                    yield number, found
            self.hidden_rows = {int(row) for row, shape in parser.row_dimensions.items() if shape.get("hidden") in ("1", "true")}
            for shape in parser.column_dimensions.values():
                if shape.get("hidden") in ("1", "true"):
                    self.hidden_columns |= set(range(int(shape["min"]), int(shape["max"]) + 1))
            if parser.merged_cells is not None:
                self.merged = [
                    (area.min_row, area.min_col, area.max_row, area.max_col) for area in map(_area, parser.merged_cells.mergeCell)
                ]


def _told(value: Any, kind: str) -> tuple[str, Any]:
    if kind == "formula":
        return "", "formula"
    if kind == "e":
        return str(value), "error"
    text, sort = text_of(value)
    return (CONTROL.sub(lambda match: chr(int(match[1], 16)), text) if "_x00" in text else text), sort


def _area(entry: Any) -> Any:
    from openpyxl.worksheet.cell_range import CellRange

    return CellRange(entry.ref)


def _parser(raw: Any, strings: Any, book: Any) -> Any:
    """Openpyxl's parser of a sheet, which reads a formula with its stored value and one without alike."""
    from openpyxl.worksheet._reader import FORMULA_TAG, VALUE_TAG, WorkSheetParser

    class Parser(WorkSheetParser):  # type: ignore[misc]
        """Tells a formula without a stored value from an empty cell, and from one whose stored value is the empty text."""

        def parse_cell(self, element: Any) -> Any:
            cell = super().parse_cell(element)
            lone = cell["value"] is not None and len(element) == 1  # a value and nothing else, as most cells are
            cell["computed"] = not lone and element.find(FORMULA_TAG) is not None
            if cell["value"] is None and cell["computed"] and not (element.get("t") == "str" and element.find(VALUE_TAG) is not None):
                cell |= {"value": "", "data_type": "formula"}
            return cell

    return Parser(
        raw,
        strings,
        data_only=True,
        epoch=book.epoch,
        date_formats=book._date_formats,  # noqa: SLF001
        timedelta_formats=book._timedelta_formats,  # noqa: SLF001
    )


def _refuse_binary(file: Path) -> None:
    """Raises DataError for a file that is encrypted, or of the format before 2007."""
    try:
        with file.open("rb") as opened:
            head = opened.read(len(OLE))
            if head != OLE:
                return
            while block := opened.read(1 << 20):
                if ENCRYPTED in block:
                    raise DataError(f"{file.name} is protected by a password", hint="save it without one, or export the sheet as CSV")
    except OSError as fault:
        raise DataError(f"{file.name} cannot be read: {(fault.strerror or str(fault)).lower()}") from None
    raise DataError(f"{file.name} is a workbook of the format before 2007 (.xls)", hint="save it as .xlsx")


def _line(fault: Exception) -> str:
    return (str(fault).splitlines() or [type(fault).__name__])[0][:200]
