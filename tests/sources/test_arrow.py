"""Source `arrow`: Feather and Arrow IPC, files and streams."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import feather

from mlpipe.errors import DataError
from mlpipe.sources.arrow import Arrow

TABLE = pa.table({"a": [1582218195625938945, None, 3], "t": pa.array(["x", None, "y"]).dictionary_encode(), "l": [[1], [2], None]})


def read(folder: Path, columns: list[str], **settings) -> dict[str, list]:
    chunks = list(Arrow(path="x.arrow", **settings).chunks(folder, columns))
    return {name: [v for c in chunks for v in c.rows.column(name).to_pylist()] for name in columns}


@pytest.mark.parametrize("compression", ["uncompressed", "lz4", "zstd"])
def test_feather_files_are_read_whole(tmp_path, compression):
    feather.write_feather(TABLE, tmp_path / "x.arrow", compression=compression)
    assert read(tmp_path, ["t", "a"]) == {"t": ["x", None, "y"], "a": [1582218195625938945, None, 3]}


def test_streams_are_read_batch_by_batch(tmp_path):
    with pa.OSFile(str(tmp_path / "x.arrow"), "wb") as file, pa.ipc.new_stream(file, TABLE.schema) as writer:
        writer.write_table(TABLE, max_chunksize=2)
        writer.write_table(TABLE)
    assert read(tmp_path, ["a"])["a"] == [1582218195625938945, None, 3] * 2
    assert Arrow(path="x.arrow").names(tmp_path / "x.arrow") == ["a", "t", "l"]


def test_a_file_that_is_cut_off_damaged_or_old_is_refused(tmp_path):
    feather.write_feather(TABLE, tmp_path / "x.arrow", compression="uncompressed")
    data = (tmp_path / "x.arrow").read_bytes()
    for broken in (data[:-40], b"", b"a,b\n1,2\n", data[:30]):
        (tmp_path / "x.arrow").write_bytes(broken)
        with pytest.raises(DataError, match=r"x\.arrow is no whole Arrow file"):
            read(tmp_path, ["a"])
    with pa.OSFile(str(tmp_path / "x.arrow"), "wb") as file, pa.ipc.new_stream(file, TABLE.schema) as writer:
        writer.write_table(TABLE)
    whole = (tmp_path / "x.arrow").read_bytes()
    (tmp_path / "x.arrow").write_bytes(whole[:-60])
    with pytest.raises(DataError, match=r"x\.arrow is no whole Arrow file"):
        read(tmp_path, ["a"])
    (tmp_path / "x.arrow").write_bytes(b"FEA1" + bytes(50) + b"FEA1")
    with pytest.raises(DataError, match="Feather version 1"):
        read(tmp_path, ["a"])
