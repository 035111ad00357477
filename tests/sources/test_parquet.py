"""Source `parquet`: typed columns as they are, gaps and NaN missing."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from mlpipe.errors import DataError
from mlpipe.sources.parquet import Parquet


def read(folder: Path, table: pa.Table, columns: list[str], **settings) -> dict[str, list]:
    pq.write_table(table, folder / "x.parquet")
    found: dict[str, list] = {name: [] for name in columns}
    for chunk in Parquet(path="x.parquet", **settings).chunks(folder, columns):
        assert set(chunk.rows.schema.names) == set(columns)
        for name in columns:
            found[name] += chunk.rows.column(name).to_pylist()
    return found


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())])
def test_text_of_every_arrow_type_is_cleaned_alike(tmp_path, kind):
    """Missing tokens, blanks and replacements count however a writer stored the text."""
    table = pa.table({"a": pa.array([" ? ", "x ", None, "", "y"], pa.string()).cast(kind)})
    found = read(tmp_path, table, ["a"], strip=True, missing=("?",), replace={"a": {"y": "z"}})
    assert found == {"a": [None, "x", None, "", "z"]}


@pytest.mark.parametrize("kind", [pa.int16(), pa.int64(), pa.float32(), pa.float64(), pa.decimal128(8, 2)])
def test_a_missing_token_that_is_a_number_counts_in_typed_columns_too(tmp_path, kind):
    table = pa.table({"a": pa.array([-999, 1, None, 2], pa.int16()).cast(kind), "b": pa.array([-999, 1, 2, 3])})
    found = read(tmp_path, table, ["a", "b"], missing_by_column={"a": ("-999", "?")})
    assert [None if v is None else float(v) for v in found["a"]] == [None, 1.0, None, 2.0]
    assert found["b"] == [-999, 1, 2, 3]


def test_replace_for_a_column_that_is_no_text_is_refused(tmp_path):
    with pytest.raises(DataError, match="'a' holds int64"):
        read(tmp_path, pa.table({"a": [1]}), ["a"], replace={"a": {"1": "2"}})


def test_large_integers_beside_a_gap_are_whole(tmp_path):
    big = 1582218195625938945
    assert read(tmp_path, pa.table({"a": [big, None, big + 1]}), ["a"]) == {"a": [big, None, big + 1]}


def test_only_the_named_columns_are_read_also_where_a_name_has_a_point(tmp_path):
    table = pa.table({"a": [1], "a.b": ["x"], "c": [2.0]})
    assert read(tmp_path, table, ["a"]) == {"a": [1]}
    assert read(tmp_path, table, ["c", "a.b"]) == {"c": [2.0], "a.b": ["x"]}


def test_rows_come_in_order_over_row_groups(tmp_path):
    table = pa.table({"a": list(range(1000))})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=7)
    chunks = list(Parquet(path="x.parquet").chunks(tmp_path, ["a"]))
    assert [v for c in chunks for v in c.rows.column("a").to_pylist()] == list(range(1000))
    assert [c.first for c in chunks] == [sum(c.rows.num_rows for c in chunks[:i]) for i in range(len(chunks))]


def test_an_empty_table_has_names_and_no_rows(tmp_path):
    assert read(tmp_path, pa.table({"a": pa.array([], pa.int64())}), ["a"]) == {"a": []}


def test_nan_and_null_are_left_for_the_column_check(tmp_path):
    found = read(tmp_path, pa.table({"a": [1.0, math.nan, None]}), ["a"])["a"]
    assert found[0] == 1.0
    assert math.isnan(found[1])
    assert found[2] is None


def test_names_that_stand_twice_missing_columns_and_other_files_are_refused(tmp_path):
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(DataError, match="names a column twice"):
        read(tmp_path, twice, ["a"])
    with pytest.raises(DataError, match="'b' is not in"):
        read(tmp_path, pa.table({"a": [1]}), ["b"])
    (tmp_path / "y.parquet").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match="no parquet file"):
        list(Parquet(path="y.parquet").chunks(tmp_path, ["a"]))


def test_a_damaged_file_is_refused(tmp_path):
    pq.write_table(pa.table({"a": list(range(10_000))}), tmp_path / "x.parquet")
    data = bytearray((tmp_path / "x.parquet").read_bytes())
    data[200:5000] = bytes(4800)
    (tmp_path / "x.parquet").write_bytes(data)
    with pytest.raises(DataError, match="damaged"):
        list(Parquet(path="x.parquet").chunks(tmp_path, ["a"]))
    (tmp_path / "x.parquet").write_bytes(data[:3000])
    with pytest.raises(DataError, match="no parquet file"):
        list(Parquet(path="x.parquet").chunks(tmp_path, ["a"]))
