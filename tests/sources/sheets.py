"""Small workbooks for tests."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

from odf.opendocument import OpenDocumentSpreadsheet
from odf.table import Table, TableCell, TableRow
from odf.text import P


def ods(path: Path, sheets: dict[str, list[list[Any]]]) -> None:
    """An OpenDocument spreadsheet. A cell that is a dict has these attributes, `shown` is its text."""
    document = OpenDocumentSpreadsheet()
    for name, rows in sheets.items():
        table = Table(name=name)
        for row in rows:
            line = TableRow()
            for value in row:
                line.addElement(_cell(value))
            table.addElement(line)
        document.spreadsheet.addElement(table)
    document.save(path)


def _cell(value: Any) -> Any:
    shown = None
    if isinstance(value, dict):
        shown = value.pop("shown", None)
        cell = TableCell(**value)
    elif value is None:
        cell = TableCell()
    elif isinstance(value, bool):
        cell = TableCell(valuetype="boolean", booleanvalue="true" if value else "false")
    elif isinstance(value, (int, float)):
        cell = TableCell(valuetype="float", value=repr(value))
    elif isinstance(value, (dt.datetime, dt.date)):
        cell = TableCell(valuetype="date", datevalue=value.isoformat())
    else:
        cell, shown = TableCell(valuetype="string", stringvalue=value), value
    if shown is not None:
        cell.addElement(P(text=shown))
    return cell
