"""Property: what Python's csv module, pandas and polars write comes back cell for cell equal, whatever is in the cells."""

from __future__ import annotations

import csv
import datetime
import math
from pathlib import Path

import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlpipe.errors import DataError
from mlpipe.sources.csv import Csv
from mlpipe.stages.look.dialect import dialect

ODD = ("NA", "nan", "null", "None", "", " a ", "007", "1,5", '"', '""', 'say "hi"', "a,b", "x;y", "\t", "a\nb", "a\r\nb", "\r", "#", "\\",
       "'", "é", "e\u0301", "東京", "\U0001f600", "\u2028", "\x85", "True", "1e5", "2024-01-01")  # fmt: skip
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\ufeff\0"), max_size=8) | st.sampled_from(ODD)
FIRST, LAST = datetime.datetime(1678, 1, 1), datetime.datetime(2262, 1, 1)  # noqa: DTZ001 (moments without a zone are meant)
KINDS = {
    "int": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(allow_nan=False, allow_infinity=False),
    "bool": st.booleans(),
    "text": TEXTS,
    "date": st.dates(FIRST.date(), LAST.date()),
    "moment": st.datetimes(FIRST, LAST),
}


@st.composite
def tables(draw) -> dict[str, list]:
    """Columns of one kind each, with gaps; two columns at least, so that no row is a blank line."""
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=2, max_size=5))
    count = draw(st.integers(1, 6))
    names = draw(st.lists(TEXTS.filter(str.strip), min_size=len(kinds), max_size=len(kinds), unique=True))
    return {name: draw(st.lists(st.none() | KINDS[kind], min_size=count, max_size=count)) for name, kind in zip(names, kinds, strict=True)}


def by_csv(table: dict[str, list], path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)  # lines end in \r\n, so that it puts both signs in quotes
        writer.writerow(table)
        writer.writerows(zip(*table.values(), strict=True))


def by_pandas(table: dict[str, list], path: Path) -> None:
    # pandas writes through the csv module, which (before Python 3.13) leaves a carriage return bare where lines end in \n
    pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in table.items()}).to_csv(path, index=False, lineterminator="\r\n")


def by_polars(table: dict[str, list], path: Path) -> None:
    pl.DataFrame(table, strict=True).write_csv(path)


def same(cell: str | None, value: object) -> bool:
    """Whether the text is that value, written by anyone."""
    if value is None:
        return cell == ""
    assert cell is not None
    if isinstance(value, bool):
        return cell.lower() == str(value).lower()
    if isinstance(value, float):
        return float(cell) == value and math.copysign(1, float(cell)) == math.copysign(1, value)
    if isinstance(value, datetime.datetime | datetime.date):
        return datetime.datetime.fromisoformat(cell) == datetime.datetime.fromisoformat(str(value))
    return cell == str(value)


@pytest.mark.parametrize("write", [by_csv, by_pandas, by_polars])
@settings(max_examples=150, deadline=None)
@given(table=tables())
def test_every_cell_comes_back(tmp_path_factory, write, table):
    folder = tmp_path_factory.mktemp("written")
    write(table, folder / "x.csv")
    source = Csv(path="x.csv", missing=())
    assert source.names(folder / "x.csv") == list(table)
    read: list[list] = [[] for _ in table]
    for chunk in source.chunks(folder, list(table)):
        for column, array in zip(read, chunk.rows.columns, strict=True):
            column += array.to_pylist()
    for (name, values), cells in zip(table.items(), read, strict=True):
        assert len(cells) == len(values)
        for cell, value in zip(cells, values, strict=True):
            assert same(cell, value), (name, cell, value)


@pytest.mark.parametrize("write", [by_csv, by_pandas, by_polars])
@settings(max_examples=60, deadline=None)
@given(table=tables())
def test_what_is_guessed_of_them_is_right_or_refused(tmp_path_factory, write, table):
    """A few rows of anything leave room for other readings; whatever is guessed, no row and no column is lost without a word."""
    folder = tmp_path_factory.mktemp("guessed")
    write(table, folder / "x.csv")
    try:
        seen = dialect([folder / "x.csv"], next(iter(table)), folder)
        names = seen.source.check_header("x.csv", folder / "x.csv", [])
        rows = sum(chunk.rows.num_rows for chunk in seen.source.chunks(folder, names))
    except DataError as fault:
        refusal = str(fault)
    else:
        refusal = ""
    if refusal:
        assert "x.csv" in refusal
        return
    if seen.settings == {"kind": "csv", "path": "x.csv"}:  # the plain dialect, which is the right one
        assert names == list(table)
        assert rows == len(next(iter(table.values())))
    else:
        assert seen.notes  # what differs from it is told
