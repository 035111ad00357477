"""Many files as one table: names and types that do not agree are refused, with the files in which they differ."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyarrow import feather
from pyarrow import parquet as pq

from mlpipe.errors import DataError, IntegrityError
from mlpipe.sources.arrow import Arrow
from mlpipe.sources.csv import Csv
from mlpipe.sources.parquet import Parquet

WRITE = {"parquet": (Parquet, pq.write_table), "arrow": (Arrow, feather.write_feather)}


@pytest.fixture(params=WRITE)
def kind(request):
    return WRITE[request.param]


def values(source, folder, column):
    return [v for chunk in source.chunks(folder, [column]) for v in chunk.rows.column(column).to_pylist()]


def test_numbers_in_one_file_and_texts_in_another_are_refused(kind, tmp_path):
    made, write = kind
    write(pa.table({"k": [1234], "x": [1]}), tmp_path / "a")
    write(pa.table({"k": ["01234"], "x": [1]}), tmp_path / "b")
    with pytest.raises(DataError, match="'k' holds int64 in a and string in b"):
        values(made(path=["a", "b"]), tmp_path, "k")
    assert values(made(path=["a", "b"]), tmp_path, "x") == [1, 1]


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        (pa.array([1], pa.int32()), pa.array([2**40], pa.int64()), "int32 in a, int64 in b"),
        (pa.array([1], pa.int64()), pa.array([2.5], pa.float64()), "int64 in a, double in b"),
        (pa.array(["x"]), pa.array(["y"]).dictionary_encode(), "string in a, dictionary"),
    ],
)
def test_types_that_lose_nothing_are_read_together_and_named(kind, tmp_path, one, other, told):
    made, write = kind
    write(pa.table({"k": one}), tmp_path / "a")
    write(pa.table({"k": other}), tmp_path / "b")
    source = made(path=["a", "b"])
    assert values(source, tmp_path, "k") == [*one.to_pylist(), *other.to_pylist()]
    if made is Arrow or "dictionary" not in told:
        assert any(told in note for note in source.notes), source.notes


def test_a_column_of_nulls_goes_with_every_type(kind, tmp_path):
    made, write = kind
    write(pa.table({"k": pa.nulls(1)}), tmp_path / "a")
    write(pa.table({"k": ["x"]}), tmp_path / "b")
    write(pa.table({"k": [1]}), tmp_path / "c")
    assert values(made(path=["a", "b"]), tmp_path, "k") == [None, "x"]
    with pytest.raises(DataError, match="'k' holds string in b and int64 in c"):
        values(made(path=["a", "b", "c"]), tmp_path, "k")


@pytest.mark.parametrize(
    ("one", "other"), [(pa.timestamp("us"), pa.timestamp("us", tz="UTC")), (pa.timestamp("us"), pa.int64()), (pa.bool_(), pa.int64())]
)
def test_other_types_do_not_go_together(tmp_path, one, other):
    pq.write_table(pa.table({"k": pa.nulls(1, one)}), tmp_path / "a")
    pq.write_table(pa.table({"k": pa.nulls(1, other)}), tmp_path / "b")
    with pytest.raises(DataError, match=r"'k' holds .* in a and .* in b"):
        values(Parquet(path=["a", "b"]), tmp_path, "k")


def test_a_missing_column_is_named_with_its_file_before_any_row_and_an_extra_one_is_noted(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    (tmp_path / "b.csv").write_text("y,z,x\n4,5,3\n")
    (tmp_path / "c.csv").write_text("x\n6\n")
    source = Csv(path=["a.csv", "b.csv"])
    assert [c.rows.to_pydict() for c in source.chunks(tmp_path, ["x", "y"])] == [{"x": ["1"], "y": ["2"]}, {"x": ["3"], "y": ["4"]}]
    assert source.notes == ["columns of b.csv that a.csv lacks, passed over: z"]
    chunks = Csv(path="*.csv").chunks(tmp_path, ["x", "y"])
    with pytest.raises(DataError, match=r"column 'y' is not in c\.csv"):
        next(chunks)


def test_sha256_pins_a_file(tmp_path):
    (tmp_path / "a.csv").write_text("x\n1\n")
    source = Csv(path="a.csv", sha256="0" * 64)
    with pytest.raises(IntegrityError, match=r"a\.csv is not the file"):
        source.digest("a.csv", tmp_path / "a.csv", lambda path: "1" * 64)
    assert Csv(path="a.csv", sha256="1" * 64).digest("a.csv", tmp_path / "a.csv", lambda path: "1" * 64) == {"sha256": "1" * 64}
    with pytest.raises(ValueError, match="several files"):
        Csv(path=["a.csv", "b.csv"], sha256="0" * 64)
    with pytest.raises(ValueError, match="no entry of path"):
        Csv(path=["a.csv"], sha256={"b.csv": "0" * 64})
