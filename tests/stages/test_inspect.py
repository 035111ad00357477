"""`mlpipe inspect`: how data are written and what they hold; every cell of a file as it stands, or a refusal with its place."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import sqlite3
import zipfile
from pathlib import Path

import pytest

from mlpipe.errors import DataError, SpecError
from mlpipe.stages.init import init
from mlpipe.stages.inspect import inspect
from tests.helpers import mlpipe
from tests.odd_files import REFUSED, entries, table

DOCS = Path(__file__).resolve().parents[2] / "docs"


def unpacked(file: Path) -> bytes:
    data = file.read_bytes()
    if data.startswith(b"\x1f\x8b"):
        return gzip.decompress(data)
    if data.startswith(b"BZh"):
        return bz2.decompress(data)
    if data.startswith(b"\xfd7zXZ"):
        return lzma.decompress(data)
    if data.startswith(b"PK"):
        with zipfile.ZipFile(file) as archive:
            return archive.read(archive.namelist()[0])
    return data


def jsonl(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def test_odd_files_are_read_cell_for_cell_or_refused(shared_data, tmp_path):
    """Item 2 of the issue: the stated rows and columns with every cell as Python's csv module has it, for at least 45 of 51."""
    folder = shared_data / "nasty_csv"
    read = 0
    for entry in entries(folder):
        to = tmp_path / "rows.jsonl"
        if entry.file in REFUSED:
            with pytest.raises(DataError) as caught:
                inspect([folder / entry.file], to=to)
            assert entry.file in str(caught.value)
            assert caught.value.hint or caught.value.faults
            continue
        found = inspect([folder / entry.file], to=to).found
        assert found["rows"] == found["rows_written"] == entry.rows, entry.file
        rows = jsonl(to)
        assert len(rows) == entry.rows
        text = unpacked(folder / entry.file).decode(entry.encoding).lstrip("\ufeff")
        escaped = {"skipinitialspace": True, "escapechar": "\\"} if entry.file in ("complex.csv", "escaping.csv") else {}
        expected = list(csv.reader(io.StringIO(text, newline=""), delimiter=entry.delimiter, **escaped))[-entry.rows :]
        columns = 4 if entry.file == "complex.csv" else entry.columns  # the manifest counts a comma within quotes
        assert len(found["columns"]) == columns, entry.file
        for row, cells in zip(rows, expected, strict=True):
            assert [value or "" for value in row.values()] == cells + [""] * (columns - len(cells)), entry.file
        read += 1
    assert read >= 45
    assert read + len(REFUSED) == 51


def test_the_page_of_odd_files_is_what_inspect_does(shared_data):
    assert (DOCS / "odd-files.md").read_text(encoding="utf-8") == table(shared_data / "nasty_csv")


def test_csv_spectrum_comes_back_equal_to_its_json(shared_data, tmp_path):
    folder = shared_data / "csv_spectrum"
    files = sorted((folder / "csvs").glob("*.csv"))
    assert len(files) == 12
    for file in files:
        inspect([file], to=tmp_path / "x.jsonl")
        expected = json.loads((folder / "json" / f"{file.stem}.json").read_text(encoding="utf-8"))
        expected = [expected] if isinstance(expected, dict) else expected
        if file.stem == "location_coordinates":  # its JSON states another telephone number than its CSV
            assert expected[0]["Contact Phone Number"] == "1234567890"
            expected[0]["Contact Phone Number"] = "2095257564"
        assert jsonl(tmp_path / "x.jsonl") == expected, file.name


def test_what_a_person_sees(tmp_path):
    (tmp_path / "sales.csv").write_text(
        "id,region,price,note\n" + "".join(f"{i:04},{'NA' if i % 4 else 'EU'},{i / 2},\n" for i in range(40)), encoding="utf-8"
    )
    done = mlpipe("inspect", "sales.csv", "--to", "rows.parquet", cwd=tmp_path)
    assert done.rc == 0, done.err
    for word in (
        "40 rows, 4 columns",
        "id",
        "identifier",
        "begins with a zero",
        "note",
        "no value",
        "NA",
        "█",
        "rows as read: rows.parquet",
    ):
        assert word in done.out, done.out
    report = json.loads(mlpipe("inspect", "sales.csv", "--json", cwd=tmp_path).out)
    assert report["rows"] == 40
    assert [column["holds"] for column in report["columns"]] == ["identifier", "category", "number", "nothing"]
    assert sum(report["columns"][2]["histogram"]) == 40
    assert report["columns"][1]["top"] == [["EU", 10]]
    assert report["columns"][1]["tokens"] == {"NA": 30}


def test_rows_as_read_keep_every_text(tmp_path):
    (tmp_path / "x.csv").write_text('a,b\n 001 ,"x\ny"\nNA,\n', encoding="utf-8")
    for name in ("out.jsonl", "out.parquet", "out.csv"):
        found = inspect([tmp_path / "x.csv"], to=tmp_path / name).found
        assert found["rows_written"] == 2
        again = inspect([tmp_path / name], to=tmp_path / "again.jsonl")
        assert again.found["rows"] == 2
        assert jsonl(tmp_path / "again.jsonl") == [{"a": " 001 ", "b": "x\ny"}, {"a": "NA", "b": ""}]


def test_settings_that_are_given_are_not_guessed(tmp_path):
    (tmp_path / "x.csv").write_text("a;b\n1;2\n3;4;\n", encoding="utf-8")
    with pytest.raises(DataError, match="line 3"):
        inspect([tmp_path / "x.csv"])
    (tmp_path / "y.csv").write_text("a;b\n1;2\n3\n", encoding="utf-8")
    with pytest.raises(DataError, match="short_rows"):
        inspect([tmp_path / "y.csv"])
    assert inspect([tmp_path / "y.csv"], reader={"short_rows": "fill"}).found["rows"] == 2
    with pytest.raises(SpecError, match="short_row"):
        inspect([tmp_path / "y.csv"], reader={"short_row": "fill"})


def test_contradicting_and_ambiguous_dates_are_named(cases):
    found = inspect([cases / "T09" / "conflict.csv"]).found
    assert any("line 9" in odd and "line 10" in odd for odd in found["oddities"]), found["oddities"]
    found = inspect([cases / "T09" / "ambiguous.csv"]).found
    assert any("ambiguous" in odd and "format" in odd for odd in found["oddities"])


def test_one_odd_value_late_in_a_big_file_is_seen(tmp_path):
    """Case T08: the whole file decides, whatever the size of a block."""
    with (tmp_path / "mixed.csv").open("w", newline="\n") as file:
        file.write("code,v,label\n")
        file.writelines(f"{i % 10},{i % 7},{'yes' if i % 3 else 'no'}\n" for i in range(599_999))
        file.write("x,1,yes\n")
    column = inspect([tmp_path / "mixed.csv"]).found["columns"][0]
    assert column["holds"] == "category"
    assert column["distinct"] == 11
    assert '"x" (1 cells)' in column["evidence"]


def test_the_file_that_is_read_is_never_written(tmp_path):
    (tmp_path / "x.csv").write_text("a\n1\n", encoding="utf-8")
    with pytest.raises(SpecError, match="would be lost"):
        inspect([tmp_path / "x.csv"], to=tmp_path / "x.csv")


def test_a_table_of_thousands_of_columns_is_cut_for_people(shared_data):
    report = inspect([shared_data / "nasty_csv" / "wide.csv"])
    assert len(report.found["columns"]) == 9074
    assert len(report.lines) < 500
    assert any("8,874 columns more" in line for line in report.lines)


def test_a_folder_is_counted_and_init_says_what_is_in_it(tmp_path):
    for name in ("cat/a.jpg", "cat/b.JPG", "dog/c.png", "notes.pdf", ".hidden/x.csv"):
        (tmp_path / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / name).write_bytes(b"x" * 10)
    report = inspect([tmp_path / "data"])
    assert report.found["folder"]["files"] == 4
    assert report.found["folder"]["sorts"] == {"images": 3, "documents": 1}
    assert report.found["folder"]["folders"] == {".": 1, "cat": 2, "dog": 1}
    with pytest.raises(DataError) as caught:
        init([tmp_path / "data"], "label", output=tmp_path / "x.yaml")
    assert "cat (2), dog (1)" in str(caught.value)
    (tmp_path / "data" / "rows.csv").write_text("a\n1\n", encoding="utf-8")
    assert "*.csv" in inspect([tmp_path / "data"]).lines[-1]
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="without files"):
        inspect([tmp_path / "empty"])


def test_addresses_of_databases(tmp_path, monkeypatch):
    """A password on the command line is refused without being said; addresses of SQLite are relative to the folder; one table is taken."""
    monkeypatch.chdir(tmp_path)
    with sqlite3.connect(tmp_path / "shop.sqlite") as shop:
        shop.execute("CREATE TABLE sales (id INTEGER PRIMARY KEY, x REAL)")
        shop.executemany("INSERT INTO sales VALUES (?, ?)", [(i, i / 2) for i in range(30)])
    shop.close()
    for name, wanted in (("shop.sqlite", None), ("sqlite:///shop.sqlite", None), ("sqlite:///shop.sqlite", "sales")):
        assert inspect([name], table=wanted).found["rows"] == 30
    with sqlite3.connect(tmp_path / "shop.sqlite") as shop:
        shop.execute("CREATE TABLE clients (id INTEGER)")
    shop.close()
    with pytest.raises(DataError, match="several tables") as caught:
        inspect(["shop.sqlite"])
    assert caught.value.faults == ["clients", "sales"]
    monkeypatch.setenv("DB", "sqlite:///shop.sqlite")
    assert inspect(["${env:DB}"], table="sales").found["source"]["url"] == "${env:DB}"
    for secret in ("postgresql://u:S3cretPw@h/db", "mysql://h/db?password=S3cretPw", "http://h/x.csv?token=S3cretPw"):
        with pytest.raises(SpecError, match="environment variable") as refused:
            inspect([secret], table="t")
        assert "S3cretPw" not in str(refused.value)


@pytest.mark.parametrize(
    ("setting", "said"),
    [({"delimiter": "ab"}, "delimiter"), ({"encoding": "nope"}, "encoding"), ({"quote": "abc"}, "quote"),
     ({"skip_lines": -1}, "skip_lines"), ({"foo": 1}, "no setting 'foo'"), ({"path": "y.csv"}, "named on the command line")],
)  # fmt: skip
def test_settings_that_cannot_be_are_refused_by_name(tmp_path, setting, said):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(SpecError) as caught:
        inspect([tmp_path / "x.csv"], reader=setting)
    assert said in str(caught.value)


def test_rows_inside_a_json_document(tmp_path):
    (tmp_path / "x.json").write_text(json.dumps({"data": {"items": [{"a": 1}, {"a": 2}]}}), encoding="utf-8")
    with pytest.raises(DataError, match="records"):
        inspect([tmp_path / "x.json"])
    assert inspect([tmp_path / "x.json"], reader={"records": "data.items"}).found["rows"] == 2
