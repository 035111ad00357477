"""Packed files: told by their first bytes, one file in a zip, and damage found."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zipfile
from pathlib import Path

import pytest
import zstandard

from mlpipe.errors import DataError
from mlpipe.sources.csv import Csv
from mlpipe.sources.streams import open_bytes

DATA = b"a,b\n1,x\n2,y\n" * 50
PACKERS = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zst": zstandard.compress}


def zipped(path: Path, files: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)


def unpacked(path: Path, compression="auto") -> bytes:
    with open_bytes(path, compression) as stream:
        return stream.read()


@pytest.mark.parametrize("kind", PACKERS)
@pytest.mark.parametrize("name", ["x.csv", "x", "x.csv.{}"])
def test_packed_content_is_unpacked_whatever_its_name(tmp_path, kind, name):
    path = tmp_path / name.format(kind)
    path.write_bytes(PACKERS[kind](DATA))
    assert unpacked(path) == DATA


def test_none_leaves_the_bytes_and_a_name_that_lies_is_a_fault(tmp_path):
    (tmp_path / "x.csv").write_bytes(gzip.compress(DATA))
    assert unpacked(tmp_path / "x.csv", "none") == gzip.compress(DATA)
    (tmp_path / "x.csv.gz").write_bytes(DATA)
    with pytest.raises(DataError, match=r"x\.csv\.gz is no gz file"):
        unpacked(tmp_path / "x.csv.gz")


@pytest.mark.parametrize("text", [b"BZhello,b\n1,2\n", b"BZh9,b\n1,2\n", b"PKa,b\n", b""])
def test_texts_that_begin_almost_like_packed_files_are_texts(tmp_path, text):
    (tmp_path / "x.csv").write_bytes(text)
    assert unpacked(tmp_path / "x.csv") == text


def test_a_zip_with_one_file_reads_as_that_file(tmp_path):
    zipped(tmp_path / "x.zip", {"inner/x.csv": DATA, "__MACOSX/._x.csv": b"junk"})
    assert unpacked(tmp_path / "x.zip") == DATA
    rows = [chunk.rows.to_pydict() for chunk in Csv(path="x.zip").chunks(tmp_path, ["a"])]
    assert rows == [{"a": ["1", "2", *(["a", "1", "2"] * 49)]}]


@pytest.mark.parametrize(("mark", "kind"), [("[Content_Types].xml", "excel"), ("content.xml", "ods")])
def test_a_workbook_read_as_text_is_told_to_be_one(tmp_path, mark, kind):
    zipped(tmp_path / "x.csv", {mark: b"", "more.xml": b""})
    with pytest.raises(DataError, match=rf"x\.csv is an office document(.|\n)*kind: {kind}"):
        unpacked(tmp_path / "x.csv")


def test_a_zip_with_several_files_none_or_damage_is_refused(tmp_path):
    zipped(tmp_path / "x.zip", {"a.csv": DATA, "b.csv": DATA})
    with pytest.raises(DataError, match=r"x\.zip holds 2 files: a\.csv, b\.csv"):
        unpacked(tmp_path / "x.zip")
    zipped(tmp_path / "e.zip", {})
    with pytest.raises(DataError, match=r"e\.zip holds no file"):
        unpacked(tmp_path / "e.zip")
    zipped(tmp_path / "d.zip", {"a.csv": bytes(range(256)) * 90})
    whole = (tmp_path / "d.zip").read_bytes()
    (tmp_path / "d.zip").write_bytes(whole[:-30])
    with pytest.raises(DataError, match=r"d\.zip is no whole zip file"):
        unpacked(tmp_path / "d.zip")
    broken = bytearray(whole)
    broken[60:90] = bytes(30)
    (tmp_path / "d.zip").write_bytes(broken)
    with pytest.raises(DataError, match=r"d\.zip is"):
        unpacked(tmp_path / "d.zip")
