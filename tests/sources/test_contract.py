"""What holds for every kind of source: the same table gives the same typed cells, whatever file it lies in."""

from __future__ import annotations

import csv
import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import openpyxl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet as pq
from pydantic import TypeAdapter

from mlpipe.columns import Column, convert
from mlpipe.errors import DataError
from mlpipe.sources import AnySource
from mlpipe.sources.base import Source
from mlpipe.sources.csv import Csv
from mlpipe.sources.documents import Documents

KINDS = {
    kind.model_fields["kind"].default: kind
    for kind in get_args(get_args(AnySource)[0])
    if issubclass(kind, Source) and kind is not Documents
}

COLUMNS = [Column(name="n", type="number"), Column(name="t", type="text"), Column(name="w", type="timestamp")]


def write_csv(path: Path, table: list[tuple]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow(["n", "t", "w"])
        writer.writerows([("" if n is None else repr(n), t or "", w.isoformat() if w else "") for n, t, w in table])


def write_jsonl(path: Path, table: list[tuple]) -> None:
    lines = [json.dumps({"n": n, "t": t, "w": w and w.isoformat()}) for n, t, w in table]
    path.write_text("\n".join(lines), encoding="utf-8")


def write_parquet(path: Path, table: list[tuple]) -> None:
    n, t, w = ([row[i] for row in table] for i in range(3))
    pq.write_table(pa.table({"n": pa.array(n, pa.float64()), "t": pa.array(t, pa.string()), "w": pa.array(w, pa.timestamp("us"))}), path)


def write_arrow(path: Path, table: list[tuple]) -> None:
    n, t, w = ([row[i] for row in table] for i in range(3))
    made = pa.table({"n": pa.array(n, pa.float64()), "t": pa.array(t, pa.string()), "w": pa.array(w, pa.timestamp("us"))})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, made.schema) as writer:
        writer.write_table(made)


def write_json(path: Path, table: list[tuple]) -> None:
    path.write_text(json.dumps([{"n": n, "t": t, "w": w and w.isoformat()} for n, t, w in table], indent=1), encoding="utf-8")


def write_excel(path: Path, table: list[tuple]) -> None:
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("data")
    sheet.append(["n", "t", "w"])
    for n, t, w in table:
        text = openpyxl.cell.WriteOnlyCell(sheet, value=t)
        text.data_type = "s"
        sheet.append([n, text if t is not None else None, w and w.isoformat()])
    book.save(path)


def write_ods(path: Path, table: list[tuple]) -> None:
    from tests.sources.sheets import ods

    ods(path, {"data": [["n", "t", "w"], *([n, t, w and w.isoformat()] for n, t, w in table)]})


def write_fixed(path: Path, table: list[tuple]) -> None:
    lines = [f"{'' if n is None else repr(n):<30}{t or '':<30}{w.isoformat() if w else '':<30}" for n, t, w in table]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


WRITERS: dict[str, Callable[[Path, list[tuple]], None]] = {
    "csv": write_csv,
    "jsonl": write_jsonl,
    "parquet": write_parquet,
    "arrow": write_arrow,
    "json": write_json,
    "excel": write_excel,
    "ods": write_ods,
    "fixed": write_fixed,
}
SETTINGS: dict[str, dict[str, Any]] = {"fixed": {"columns": {"n": [1, 30], "t": [31, 60], "w": [61, 90]}}}


def can_hold(kind: str, table: list[tuple]) -> bool:
    """XML has no control characters; a text of blanks and a row without any value have no place in sheets and fixed columns."""
    texts = [t for _, t, _ in table if t is not None]
    if kind in ("excel", "ods"):
        if kind == "excel" and any(n is not None and float(f"{n:.16g}") != n for n, _, _ in table):
            return False  # openpyxl writes 16 digits
        empty = any(n is None and t is None and w is None for n, t, w in table)
        return not empty and all(sign.isprintable() and sign not in "\ufffe\uffff" for text in texts for sign in text)
    if kind == "fixed":
        return all(text.isprintable() and text == text.strip() for text in texts) and all(row != (None, None, None) for row in table)
    return True


def made(kind: str, **settings: Any) -> Source:
    return TypeAdapter(AnySource).validate_python({"kind": kind, "path": f"x.{kind}", **SETTINGS.get(kind, {}), **settings})


def typed(source: Source, base: Path) -> list[tuple]:
    found: list[tuple] = []
    for chunk in source.chunks(base, [c.name for c in COLUMNS]):
        columns = []
        for column in COLUMNS:
            array, faults = convert(chunk.rows.column(column.name), column, source.numbers)
            assert faults == []
            columns.append(array.to_pylist())
        found += zip(*columns, strict=True)
    return found


def test_every_kind_has_a_writer_here():
    """A new kind of rows in files is added to WRITERS."""
    assert set(KINDS) == set(WRITERS)


NUMBERS = st.none() | st.floats(allow_nan=False, allow_infinity=False).filter(lambda v: abs(v) < 2**53)
TEXTS = st.none() | st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5) | st.sampled_from(["NA", "nan", "1.0", "007"])
TIMES = st.none() | st.datetimes()


@given(st.lists(st.tuples(NUMBERS, TEXTS, TIMES), min_size=1, max_size=8))
def test_the_same_table_by_every_kind_gives_equal_cells(tmp_path_factory, table):
    folder = tmp_path_factory.mktemp("sources")
    for kind, write in WRITERS.items():
        if can_hold(kind, table):
            write(folder / f"x.{kind}", table)
            assert typed(made(kind), folder) == table, kind


TABLE = [(1.5, " ? ", dt.datetime(2020, 1, 1)), (-999.0, "b", None), (None, "a", dt.datetime(1969, 12, 31, 23, 59))]  # noqa: DTZ001


@pytest.fixture(params=WRITERS)
def kind(request, tmp_path):
    WRITERS[request.param](tmp_path / f"x.{request.param}", TABLE)
    return request.param


def test_blanks_tokens_and_replacements_mean_the_same_in_every_kind(kind, tmp_path):
    source = made(kind, strip=True, missing=["?", "-999", "-999.0", ""], replace={"t": {"b": "c"}})
    assert [(n, t) for n, t, _ in typed(source, tmp_path)] == [(1.5, None), (None, "c"), (None, "a")]


def test_names_are_those_of_the_file(kind, tmp_path):
    assert made(kind).names(tmp_path / f"x.{kind}") == ["n", "t", "w"]


def test_a_missing_column_is_refused_with_what_there_is(kind, tmp_path):
    with pytest.raises(DataError, match=r"'tt' is not in .* \(it has: n, t, w\)"):
        list(made(kind).chunks(tmp_path, ["tt"]))


def test_every_row_has_a_place(kind, tmp_path):
    places = made(kind).places(tmp_path / f"x.{kind}", [0, 2])
    assert set(places) == {0, 2}
    assert all(place.split()[0] in ("line", "row") and place.split()[1].isdigit() for place in places.values())


def test_a_file_of_another_kind_is_refused_and_no_traceback(kind, tmp_path):
    (tmp_path / f"x.{kind}").write_bytes(b"\x00\xff\xfe\x80" * 100)
    with pytest.raises(DataError, match=rf"x\.{kind}"):
        list(made(kind).chunks(tmp_path, ["n"]))


def test_settings_round_trip_and_refuse_unknown_names(kind):
    source = made(kind)
    assert TypeAdapter(AnySource).validate_python(source.model_dump(mode="json")) == source
    with pytest.raises(ValueError, match="colour"):
        made(kind, colour="red")


def test_aliases_are_raw_texts_alone():
    """What others are replaced by is no raw text: `b` is what `a` became, and is not read on as `c`."""
    source = Csv(path="x.csv", missing=("", "?", "gone"), replace={"k": {"a": "b", "b": "c", "x": "gone"}})
    assert source.aliases("k") == {"?": "", "gone": "", "a": "b", "x": ""}
    assert source.aliases("other") == {"?": "", "gone": ""}
