"""`predict` takes rows of every kind of file, told by the ending, and the answers do not depend on it."""

from __future__ import annotations

import csv
import json
import zipfile
from pathlib import Path

import openpyxl
import pyarrow as pa
import pytest
from pyarrow import feather

from mlpipe.errors import SpecError
from mlpipe.stages.predict import predict
from tests.helpers import chain, small, table_csv
from tests.sources.sheets import ods


@pytest.fixture(scope="module")
def export(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("export")
    chain(small(folder, train__epochs=1), folder / "runs")
    return folder / "runs/small/export"


def records(path: Path) -> list[dict]:
    with path.open(newline="") as file:
        return [
            {"x1": float(r["x1"]), "x2": float(r["x2"]) if r["x2"] else None, "colour": r["colour"] or None} for r in csv.DictReader(file)
        ]


def write(path: Path, rows: list[dict]) -> None:
    lines = [["x1", "x2", "colour"], *([r["x1"], r["x2"], r["colour"]] for r in rows)]
    ending = path.suffix
    if ending == ".xlsx":
        book = openpyxl.Workbook()
        for line in lines:
            book.active.append(line)
        book.save(path)
    elif ending == ".ods":
        ods(path, {"s": lines})
    elif ending == ".feather":
        feather.write_feather(pa.Table.from_pylist(rows), path)
    elif ending == ".json":
        path.write_text(json.dumps(rows))
    elif ending == ".jsonl":
        path.write_text("\n".join(map(json.dumps, rows)))


@pytest.mark.parametrize("ending", [".xlsx", ".ods", ".feather", ".json", ".jsonl", ".zip"])
def test_the_same_rows_of_another_kind_get_the_same_answers(export, tmp_path, ending):
    rows = table_csv(tmp_path / "rows.csv", 20)
    predict(export, rows, tmp_path / "wanted.csv")
    other = tmp_path / f"rows{ending}"
    if ending == ".zip":
        with zipfile.ZipFile(other, "w") as archive:
            archive.write(rows, "rows.csv")
    else:
        write(other, records(rows))
    assert predict(export, other, tmp_path / "out.csv").rows == 20
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "wanted.csv").read_bytes()


def test_fixed_width_rows_are_read_by_settings_on_the_command_line(export, tmp_path):
    rows = table_csv(tmp_path / "rows.csv", 20)
    predict(export, rows, tmp_path / "wanted.csv")
    lines = [f"{r['x1']:<8}{'' if r['x2'] is None else r['x2']:<8}{r['colour'] or '':<8}" for r in records(rows)]
    (tmp_path / "rows.dat").write_text("\n".join(lines))
    reader = {"kind": "fixed", "columns": {"x1": [1, 8], "x2": [9, 16], "colour": [17, 24]}}
    predict(export, tmp_path / "rows.dat", tmp_path / "out.csv", reader=reader)
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "wanted.csv").read_bytes()


def test_a_database_and_workbooks_as_output_are_refused(export, tmp_path):
    rows = table_csv(tmp_path / "rows.csv", 5)
    with pytest.raises(SpecError, match="from a file, not from a database"):
        predict(export, rows, tmp_path / "out.csv", reader={"kind": "sql"})
    with pytest.raises(SpecError, match=r"out\.xlsx has an unknown ending"):
        predict(export, rows, tmp_path / "out.xlsx")
