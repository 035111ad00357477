"""Source `ods`: a table in a sheet of an OpenDocument spreadsheet, read row by row by the standard library's XML parser.

python-calamine and pandas read `.ods` too, but give a formula without a value and an error as an empty cell.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal
from xml.etree import ElementTree

from mlpipe.errors import DataError
from mlpipe.sources.sheets import Cell, Kind, Sheet, SheetSource, text_of

SPACES = {
    "office": "urn:oasis:names:tc:opendocument:xmlns:office:1.0",
    "table": "urn:oasis:names:tc:opendocument:xmlns:table:1.0",
    "text": "urn:oasis:names:tc:opendocument:xmlns:text:1.0",
    "calcext": "urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0",
    "manifest": "urn:oasis:names:tc:opendocument:xmlns:manifest:1.0",
}
DURATION = re.compile(r"^PT(\d+)H(\d+)M(\d+)([.,]\d+)?S$")
ERROR = re.compile(r"^(#[A-Z/0?!]+[!?A-Z0]|Err:\d+)$")


class Ods(SheetSource):
    """A table in an OpenDocument spreadsheet (.ods): a header row and the rows below it, every cell as text.

    The settings and what is refused are those of `excel`.
    """

    kind: Literal["ods"] = "ods"

    @contextmanager
    def opened(self, file: Path) -> Iterator[list[Sheet]]:
        """The sheets of a document."""
        try:
            with zipfile.ZipFile(file) as archive:
                if "content.xml" not in archive.namelist():
                    raise DataError(f"{file.name} is no OpenDocument spreadsheet", hint="check `kind`")
                if b"encryption-data" in archive.read("META-INF/manifest.xml"):
                    raise DataError(f"{file.name} is protected by a password", hint="save it without one, or export the sheet as CSV")
                yield [_OdsSheet(archive, name, hidden) for name, hidden in _sheets(archive)]
        except zipfile.BadZipFile as fault:
            raise DataError(
                f"{file.name} is no OpenDocument spreadsheet: {str(fault).lower()}", hint="check `kind` and whether the file is whole"
            ) from None
        except (ElementTree.ParseError, KeyError, ValueError, EOFError) as fault:
            raise DataError(
                f"{file.name} is damaged: {str(fault)[:200]}", hint="open it in a spreadsheet program and save it again"
            ) from None
        except OSError as fault:
            raise DataError(f"{file.name} cannot be read: {(fault.strerror or str(fault)).lower()}") from None


def _name(short: str) -> str:
    space, _, name = short.partition(":")
    return f"{{{SPACES[space]}}}{name}"


TABLE, ROW, CELL, COVERED, COLUMN = (
    _name(f"table:{name}") for name in ("table", "table-row", "table-cell", "covered-table-cell", "table-column")
)
ANNOTATION, P = _name("office:annotation"), _name("text:p")


def _sheets(archive: zipfile.ZipFile) -> list[tuple[str, bool]]:
    """Names of the sheets, and whether their style hides them."""
    hidden, found, depth = set(), [], 0
    style = ""
    with archive.open("content.xml") as raw:
        for event, element in ElementTree.iterparse(raw, events=("start", "end")):  # noqa: S314 (expat bounds entities)
            tag = element.tag.rpartition("}")[2]
            if event == "start":
                if tag == "style":
                    style = next((value for key, value in element.attrib.items() if key.endswith("}name")), "")
                elif tag == "table-properties" and element.get(_name("table:display")) == "false":
                    hidden.add(style)
                elif element.tag == TABLE:
                    depth += 1
                    if depth == 1:
                        found.append((element.get(_name("table:name"), ""), element.get(_name("table:style-name"), "") in hidden))
            elif element.tag == TABLE:
                depth -= 1
                element.clear()
            elif element.tag == ROW:
                element.clear()
    return found


class _OdsSheet(Sheet):
    """A sheet of a document."""

    def __init__(self, archive: zipfile.ZipFile, name: str, hidden: bool) -> None:
        super().__init__(name, hidden=hidden)
        self._archive = archive

    def rows(self) -> Iterator[tuple[int, list[Cell]]]:
        """The rows; one that is repeated comes as often as it is, one that is empty not at all."""
        mine, depth, row, column = False, 0, 0, 0
        self.merged.clear()
        with self._archive.open("content.xml") as raw:
            for event, element in ElementTree.iterparse(raw, events=("start", "end")):  # noqa: S314
                if element.tag == TABLE:
                    depth += 1 if event == "start" else -1
                    if depth == 1 and event == "start":
                        mine = element.get(_name("table:name"), "") == self.name
                    elif depth == 0:
                        element.clear()
                        if mine:
                            return
                if not mine or event == "start" or depth != 1:
                    continue
                if element.tag == COLUMN:
                    count = int(element.get(_name("table:number-columns-repeated"), 1))
                    if element.get(_name("table:visibility")) in ("collapse", "filter"):
                        self.hidden_columns |= set(range(column + 1, column + min(count, 16_384) + 1))
                    column += count
                elif element.tag == ROW:
                    count = int(element.get(_name("table:number-rows-repeated"), 1))
                    cells = self._cells(element, row + 1)
                    if element.get(_name("table:visibility")) in ("collapse", "filter") and cells:
                        self.hidden_rows |= set(range(row + 1, row + count + 1))
                    if cells:
                        for again in range(count):
                            yield row + 1 + again, cells
                    row += count
                    element.clear()

    def _cells(self, row: Any, number: int) -> list[Cell]:
        """The cells of a row that are not empty."""
        found, column = [], 1
        for element in row:
            if element.tag not in (CELL, COVERED):
                continue
            count = int(element.get(_name("table:number-columns-repeated"), 1))
            down, across = (int(element.get(_name(f"table:number-{way}-spanned"), 1)) for way in ("rows", "columns"))
            if down > 1 or across > 1:
                self.merged.append((number, column, number + down - 1, column + across - 1))
            if element.tag == CELL and (told := _value(element)) is not None:
                computed = element.get(_name("table:formula")) is not None
                found += [Cell(column + again, *told, computed=computed) for again in range(count)]
            column += count
        return found


def _value(element: Any) -> tuple[str, Kind] | None:
    """The text of a cell and what it is; None for an empty one."""
    kind = element.get(_name("office:value-type"))
    formula = element.get(_name("table:formula")) is not None
    if kind is None:
        return ("", "formula") if formula else None
    shown = "\n".join("".join(_pieces(part)) for part in element if part.tag == P)
    if element.get(_name("calcext:value-type")) == "error" or (formula and kind == "string" and ERROR.match(shown)):
        return shown, "error"
    if kind in ("float", "percentage", "currency"):
        return text_of(_number(element.get(_name("office:value"), "")))
    if kind == "date":
        text = element.get(_name("office:date-value"), "")
        return text.removesuffix("T00:00:00"), "time"
    if kind == "time":
        match = DURATION.match(element.get(_name("office:time-value"), ""))
        if match is None:
            raise ValueError(f"{element.get(_name('office:time-value'))!r} is no time")
        return f"{int(match[1]):02}:{match[2]}:{match[3]}{(match[4] or '').replace(',', '.')}", "time"
    if kind == "boolean":
        return element.get(_name("office:boolean-value"), ""), "truth"
    return element.get(_name("office:string-value")) or shown, "text"


def _number(text: str) -> int | float:
    return int(text) if re.fullmatch(r"[+-]?[0-9]+", text) else float(text)


def _pieces(element: Any) -> Iterator[str]:
    """The text of a paragraph: runs of blanks, tabs and line breaks are elements of their own; comments do not count."""
    if element.text:
        yield element.text
    for part in element:
        tag = part.tag.rpartition("}")[2]
        if part.tag != ANNOTATION:
            if tag == "s":
                yield " " * int(part.get(_name("text:c"), 1))
            elif tag == "tab":
                yield "\t"
            elif tag == "line-break":
                yield "\n"
            else:
                yield from _pieces(part)
        if part.tail:
            yield part.tail
