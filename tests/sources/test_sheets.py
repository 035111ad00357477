"""Sources `excel` and `ods`: every cell as the text that a person sees a value in, or a fault with its address."""

from __future__ import annotations

import datetime as dt
import io
import zipfile
from pathlib import Path
from typing import Any

import openpyxl
import pytest
import xlsxwriter

from mlpipe.columns import Column, convert
from mlpipe.errors import DataError
from mlpipe.sources.excel import Excel
from mlpipe.sources.ods import Ods
from mlpipe.sources.sheets import SheetSource
from tests.sources.sheets import ods


def xlsx(path: Path, sheets: dict[str, list[list[Any]]]) -> None:
    """A workbook as openpyxl writes it: formulas without stored values."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)


WRITE = {"excel": (Excel, xlsx, "x.xlsx"), "ods": (Ods, ods, "x.ods")}


@pytest.fixture(params=WRITE)
def kind(request):
    return WRITE[request.param]


def rows(source: SheetSource, base: Path, columns: list[str]) -> list[tuple]:
    found: list[tuple] = []
    for chunk in source.chunks(base, columns):
        found += zip(*(chunk.rows.column(name).to_pylist() for name in columns), strict=True)
    return found


def refused(source: SheetSource, base: Path, columns: list[str], *words: str) -> None:
    with pytest.raises(DataError) as caught:
        rows(source, base, columns)
    for word in words:
        assert word in str(caught.value), str(caught.value)


def test_values_of_every_sort_become_the_text_that_says_them(kind, tmp_path):
    made, write, name = kind
    cells = [7, 7.25, "007", True, False, dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 13, 5, 1), 0.1, 10**15, "a b", 12345678901234.5]  # noqa: DTZ001
    write(tmp_path / name, {"s": [["c"], *([cell] for cell in cells)]})
    told = ["7", "7.25", "007", "true", "false", "2024-02-29", "2024-02-29T13:05:01", "0.1", "1000000000000000", "a b", "12345678901234.5"]
    assert rows(made(path=name), tmp_path, ["c"]) == [(text,) for text in told]


def test_the_sheet_is_chosen_by_name_or_number_and_never_guessed_among_several(kind, tmp_path):
    made, write, name = kind
    write(tmp_path / name, {"one": [["a"], [1]], "two": [["a"], [2]], "none": []})
    assert rows(made(path=name, sheet="two"), tmp_path, ["a"]) == [("2",)]
    assert rows(made(path=name, sheet=1), tmp_path, ["a"]) == [("1",)]
    refused(made(path=name), tmp_path, ["a"], name, "several sheets with cells: 'one', 'two'", "sheet: one")
    refused(made(path=name, sheet="too"), tmp_path, ["a"], "no sheet 'too'", "did you mean 'two'?")
    refused(made(path=name, sheet=4), tmp_path, ["a"], "3 sheets, not 4")
    refused(made(path=name, sheet="none"), tmp_path, ["a"], "sheet 'none' is empty")
    assert made(path=name).sheet_names(tmp_path / name) == ["one", "two"]


def test_without_a_sheet_the_only_one_with_cells_is_read(kind, tmp_path):
    made, write, name = kind
    write(tmp_path / name, {"empty": [], "data": [["a"], [2]]})
    assert rows(made(path=name), tmp_path, ["a"]) == [("2",)]
    write(tmp_path / name, {"empty": []})
    refused(made(path=name), tmp_path, ["a"], "no sheet has cells")


def test_a_table_inside_a_sheet(kind, tmp_path):
    made, write, name = kind
    table = [
        ["Report", None, None, None],
        [],
        [None, "a", "b", None],
        [None, "kg", "m", None],
        [None, 1, 2, "note"],
        [],
        [None, 3, None, None],
    ]
    write(tmp_path / name, {"s": table})
    assert rows(made(path=name, range="B3:C7", skip_rows=1), tmp_path, ["a", "b"]) == [("1", "2"), ("3", None)]
    assert rows(made(path=name, range="B5:C5", header=["p", "q"]), tmp_path, ["q", "p"]) == [("2", "1")]
    source = made(path=name, header_row=3, skip_rows=1)
    refused(source, tmp_path, ["a"], "column D has cells (D5) and no name in the header row 3", "range")
    places = made(path=name, range="B3:C7", skip_rows=1).places(tmp_path / name, [0, 1])
    assert places == {0: "row 5 of sheet 's'", 1: "row 7 of sheet 's'"}
    source = made(path=name, range="B3:C7", skip_rows=1)
    rows(source, tmp_path, ["a"])
    assert source.notes == [f"{name}, sheet 's': empty rows passed over before row 7"]


def test_names_that_stand_twice_or_lie_elsewhere_are_refused(kind, tmp_path):
    made, write, name = kind
    write(tmp_path / name, {"s": [["a", "b", "a"], [1, 2, 3]]})
    refused(made(path=name), tmp_path, ["b"], "'a' stands in columns 1 and 3")
    refused(made(path=name, header_row=9), tmp_path, ["b"], "row 9", "no header")
    write(tmp_path / name, {"s": [["a", "b"], [1, 2]]})
    refused(made(path=name), tmp_path, ["c"], "'c' is not in", "it has: a, b")


@pytest.mark.parametrize(
    "settings", [{"range": "B3"}, {"range": "C3:B9"}, {"range": "B3:C4", "header_row": 2}, {"header": ["a"], "header_row": 2}]
)
def test_settings_that_contradict_are_refused(settings):
    with pytest.raises(ValueError, match=r"range|header"):
        Excel(path="x.xlsx", **settings)


def test_formulas_that_nobody_computed_are_refused_with_their_count(tmp_path):
    xlsx(tmp_path / "x.xlsx", {"data": [["amount", "tax"], *([i, f"=A{i + 2}*0.2"] for i in range(60))]})
    refused(
        Excel(path="x.xlsx"),
        tmp_path,
        ["amount", "tax"],
        "x.xlsx",
        "sheet 'data'",
        "'tax'",
        "60",
        "formula cells without a stored value",
        "B2 to B61",
    )
    assert len(rows(Excel(path="x.xlsx"), tmp_path, ["amount"])) == 60
    ods(tmp_path / "x.ods", {"data": [["a"], [{"formula": "of:=1+1"}]]})
    refused(Ods(path="x.ods"), tmp_path, ["a"], "'a'", "1 formula cell without a stored value (A2)")


def test_the_case_of_the_public_report(tmp_path, cases):
    refused(Excel(path="formula.xlsx"), cases / "T16", ["tax"], "formula.xlsx", "tax", "60", "formula cells without a stored value")


def test_stored_values_of_formulas_are_read_and_an_empty_text_is_one(tmp_path):
    with xlsxwriter.Workbook(tmp_path / "x.xlsx") as book:
        sheet = book.add_worksheet("s")
        sheet.write_row(0, 0, ["a", "b"])
        sheet.write_formula(1, 0, "=1+1", None, 2)
        sheet.write_formula(2, 0, '=IF(1,"","x")', None, "")
        sheet.write_number(1, 1, 5)
        sheet.write_number(2, 1, 5)
    _edited(tmp_path / "x.xlsx", '<c r="A3"><f>IF(1,"","x")</f><v></v></c>', '<c r="A3" t="str"><f>IF(1,"","x")</f><v></v></c>')
    source = Excel(path="x.xlsx")
    assert rows(source, tmp_path, ["a", "b"]) == [("2", "5"), (None, "5")]
    assert source.notes == ["x.xlsx, sheet 's': the workbook asks to be computed when opened; its stored values may be old: a"]


def _edited(path: Path, old: str, new: str) -> None:
    """Changes a sheet's XML."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    sheet = parts["xl/worksheets/sheet1.xml"].decode()
    if old:
        assert old in sheet, sheet
        parts["xl/worksheets/sheet1.xml"] = sheet.replace(old, new).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)


def test_formulas_that_all_hold_the_zero_of_a_program_are_refused(tmp_path):
    with xlsxwriter.Workbook(tmp_path / "x.xlsx") as book:  # writes 0 for each formula, and asks to be computed
        sheet = book.add_worksheet("s")
        sheet.write_row(0, 0, ["a", "b"])
        for row in range(1, 4):
            sheet.write_number(row, 0, row)
            sheet.write_formula(row, 1, f"=A{row + 1}*2")
    refused(Excel(path="x.xlsx"), tmp_path, ["a", "b"], "'b'", "3 formula cells without a stored value", "each holds 0")


def test_errors_are_refused_with_their_addresses_unless_they_are_listed(tmp_path):
    with xlsxwriter.Workbook(tmp_path / "x.xlsx") as book:
        sheet = book.add_worksheet("s")
        sheet.write_row(0, 0, ["a", "b"])
        sheet.write_row(1, 0, [1, "x"])
        sheet.write_formula(2, 0, "=NA()", None, "#N/A")
        sheet.write_formula(3, 0, "=1/0", None, "#DIV/0!")
        sheet.write_row(2, 1, ["y"])
        sheet.write_row(3, 1, ["#N/A is a text here"])
    refused(Excel(path="x.xlsx"), tmp_path, ["a", "b"], "2 cells with an error", "A3 holds #N/A", "A4 holds #DIV/0!")
    refused(Excel(path="x.xlsx", missing=["", "#N/A"]), tmp_path, ["a"], "1 cell with an error", "A4 holds #DIV/0!")
    source = Excel(path="x.xlsx", missing_by_column={"a": ["#N/A", "#DIV/0!"]})
    assert rows(source, tmp_path, ["a", "b"]) == [("1", "x"), (None, "y"), (None, "#N/A is a text here")]
    ods(tmp_path / "x.ods", {"s": [["a"], [{"formula": "of:=1/0", "valuetype": "string", "stringvalue": "", "shown": "#DIV/0!"}]]})
    refused(Ods(path="x.ods"), tmp_path, ["a"], "A2 holds #DIV/0!")
    assert rows(Ods(path="x.ods", missing=["#DIV/0!"]), tmp_path, ["a"]) == [(None,)]


def test_merged_cells_among_the_rows_are_refused_and_a_merged_title_is_not(tmp_path):
    book = openpyxl.Workbook()
    sheet = book.active
    for row in (["Title", None], ["a", "b"], [1, 2], [None, 3]):
        sheet.append(row)
    sheet.merge_cells("A1:B1")
    book.save(tmp_path / "x.xlsx")
    assert rows(Excel(path="x.xlsx", header_row=2), tmp_path, ["a", "b"]) == [("1", "2"), (None, "3")]
    sheet.merge_cells("A3:A4")
    book.save(tmp_path / "x.xlsx")
    refused(Excel(path="x.xlsx", header_row=2), tmp_path, ["a", "b"], "1 merged area", "A3:A4, column 'a'")
    assert rows(Excel(path="x.xlsx", header_row=2), tmp_path, ["b"]) == [("2",), ("3",)]
    ods(tmp_path / "x.ods", {"s": [["a"], [{"numberrowsspanned": "2", "valuetype": "float", "value": "1"}], [2]]})
    refused(Ods(path="x.ods"), tmp_path, ["a"], "A2:A3, column 'a'")


def test_hidden_rows_columns_and_sheets_are_read_and_named(tmp_path):
    book = openpyxl.Workbook()
    sheet = book.active
    for row in (["a", "b"], [1, 2], [3, 4]):
        sheet.append(row)
    sheet.row_dimensions[3].hidden = True
    sheet.column_dimensions["B"].hidden = True
    book.save(tmp_path / "x.xlsx")
    source = Excel(path="x.xlsx")
    assert rows(source, tmp_path, ["a", "b"]) == [("1", "2"), ("3", "4")]
    assert source.notes == [
        "x.xlsx, sheet 'Sheet': 1 hidden rows are read like the others",
        "x.xlsx, sheet 'Sheet': hidden columns are read like the others: b",
    ]


def test_an_extent_that_the_file_states_wrongly_does_not_cut_the_table(tmp_path):
    xlsx(tmp_path / "x.xlsx", {"s": [["a", "b"], [1, 2], [3, 4]]})
    _edited(tmp_path / "x.xlsx", '<dimension ref="A1:B3"', '<dimension ref="A1"')
    assert rows(Excel(path="x.xlsx"), tmp_path, ["b"]) == [("2",), ("4",)]


def test_dates_of_the_year_1904_calendar_and_percentages(tmp_path):
    with xlsxwriter.Workbook(tmp_path / "x.xlsx", {"date_1904": True}) as book:
        sheet = book.add_worksheet("s")
        sheet.write_row(0, 0, ["d", "p"])
        sheet.write_datetime(1, 0, dt.datetime(2024, 3, 1), book.add_format({"num_format": "dd/mm/yy"}))  # noqa: DTZ001
        sheet.write_number(1, 1, 0.25, book.add_format({"num_format": "0%"}))
    assert rows(Excel(path="x.xlsx"), tmp_path, ["d", "p"]) == [("2024-03-01", "0.25")]


def test_long_identifiers_keep_the_digits_that_the_file_has(tmp_path):
    xlsx(tmp_path / "x.xlsx", {"s": [["id"], [1582218195625938945], [1.5e300]]})
    source = Excel(path="x.xlsx")
    rows(source, tmp_path, ["id"])  # openpyxl, as Excel, writes 16 digits at most
    assert source.notes == ["x.xlsx, sheet 's', column 'id': 2 whole numbers of more than 15 digits, which spreadsheets round"]
    _edited(tmp_path / "x.xlsx", "1.582218195625939e+18", "1582218195625938945")
    assert rows(Excel(path="x.xlsx"), tmp_path, ["id"]) == [("1582218195625938945",), ("1.5e+300",)]


def test_repeated_cells_and_rows_of_a_document_come_as_often_as_they_are(tmp_path):
    ods(tmp_path / "x.ods", {"s": [["a", "b"], [{"numbercolumnsrepeated": "2", "valuetype": "float", "value": "1.50"}]]})
    assert rows(Ods(path="x.ods"), tmp_path, ["a", "b"]) == [("1.5", "1.5")]


def test_many_rows_come_in_chunks_in_order(tmp_path, monkeypatch):
    monkeypatch.setattr("mlpipe.sources.sheets.CHUNK_ROWS", 7)
    xlsx(tmp_path / "x.xlsx", {"s": [["a"], *([i] for i in range(50))]})
    chunks = list(Excel(path="x.xlsx").chunks(tmp_path, ["a"]))
    assert [v for c in chunks for v in c.rows.column("a").to_pylist()] == [str(i) for i in range(50)]
    assert [c.first for c in chunks] == list(range(0, 50, 7))


def test_protected_old_and_damaged_workbooks_are_told_apart(tmp_path):
    encrypted = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600) + "EncryptedPackage".encode("utf-16-le")
    (tmp_path / "p.xlsx").write_bytes(encrypted)
    refused(Excel(path="p.xlsx"), tmp_path, ["a"], "p.xlsx is protected by a password")
    (tmp_path / "o.xls").write_bytes(encrypted[:400])
    refused(Excel(path="o.xls"), tmp_path, ["a"], "o.xls", "before 2007", "save it as .xlsx")
    xlsx(tmp_path / "x.xlsx", {"s": [["a"], *([i] for i in range(500))]})
    data = (tmp_path / "x.xlsx").read_bytes()
    (tmp_path / "d.xlsx").write_bytes(data[: len(data) // 2])
    refused(Excel(path="d.xlsx"), tmp_path, ["a"], "d.xlsx is no Excel workbook")
    _edited(tmp_path / "x.xlsx", "</sheetData>", "")
    refused(Excel(path="x.xlsx"), tmp_path, ["a"], "x.xlsx is damaged")
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("hello.txt", "hello")
    (tmp_path / "z.xlsx").write_bytes(made.getvalue())
    refused(Excel(path="z.xlsx"), tmp_path, ["a"], "z.xlsx")
    (tmp_path / "z.ods").write_bytes(made.getvalue())
    refused(Ods(path="z.ods"), tmp_path, ["a"], "z.ods is no OpenDocument spreadsheet")


def test_a_column_of_numbers_in_one_workbook_and_texts_in_another_is_refused(tmp_path):
    xlsx(tmp_path / "a.xlsx", {"s": [["zip"], [1234], [5678]]})
    xlsx(tmp_path / "b.xlsx", {"s": [["zip"], ["01234"], ["05678"]]})
    refused(Excel(path="*.xlsx"), tmp_path, ["zip"], "'zip' holds number cells in a.xlsx and text cells in b.xlsx")


def test_numbers_and_times_of_a_workbook_convert_without_settings(tmp_path):
    xlsx(tmp_path / "x.xlsx", {"s": [["n", "d"], [1.5, dt.datetime(2020, 1, 2, 3, 4, 5)]]})  # noqa: DTZ001
    chunk = next(Excel(path="x.xlsx").chunks(tmp_path, ["n", "d"]))
    number, faults = convert(chunk.rows.column("n"), Column(name="n", type="number"), Excel(path="x").numbers)
    assert (number.to_pylist(), faults) == ([1.5], [])
    moment, faults = convert(chunk.rows.column("d"), Column(name="d", type="timestamp"), Excel(path="x").numbers)
    assert (moment.to_pylist(), faults) == ([dt.datetime(2020, 1, 2, 3, 4, 5)], [])  # noqa: DTZ001
