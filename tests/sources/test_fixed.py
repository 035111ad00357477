"""Source `fixed`: cells cut out of lines by their places, and lines that do not fit refused by number."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from mlpipe.errors import DataError
from mlpipe.sources.fixed import Fixed


def read(folder: Path, data: str | bytes, wanted: list[str], **settings) -> list[tuple]:
    (folder / "x.txt").write_bytes(data if isinstance(data, bytes) else data.encode())
    found: list[tuple] = []
    for chunk in Fixed(path="x.txt", **settings).chunks(folder, wanted):
        found += zip(*(chunk.rows.column(name).to_pylist() for name in wanted), strict=True)
    return found


AB = {"columns": {"a": (1, 3), "b": (5, 6)}}


@given(
    st.lists(st.tuples(st.text("abzé€ 0", max_size=3), st.text("xyü", min_size=1, max_size=2)), min_size=1, max_size=6),
    st.sampled_from(["\n", "\r\n"]),
)
def test_what_is_laid_out_comes_back(tmp_path_factory, table, end):
    folder = tmp_path_factory.mktemp("fixed")
    text = "".join(f"{a:<3} {b:<2}{end}" for a, b in table)
    assert read(folder, text, ["a", "b"], missing=(), **AB) == [(a.strip(), b) for a, b in table]
    assert read(folder, text, ["b"], missing=(), strip=False, widths=[4, 2], header=["a", "b"]) == [(f"{b:<2}",) for _, b in table]


def test_lines_that_do_not_fit_are_refused_by_number(tmp_path):
    with pytest.raises(DataError, match=r"x\.txt, line 3: 5 characters, but the columns need 6"):
        read(tmp_path, "abc 12\n\nabc 1\n", ["a"], **AB)
    assert read(tmp_path, "abc 12\nab\n", ["a", "b"], pad=True, **AB) == [("abc", "12"), ("ab", None)]
    with pytest.raises(DataError, match=r"x\.txt, line 2: '7' stands behind the line's end at 6"):
        read(tmp_path, "abc 12  \nabc 12 7\n", ["a"], **AB)
    assert read(tmp_path, "abc 12 7\n", ["b"], width=8, **AB) == [("12",)]


def test_comments_lines_to_skip_and_the_places_of_rows(tmp_path):
    data = "head\n# no\nabc 12\n\nxyz 34\n"
    assert read(tmp_path, data, ["b"], skip_lines=1, comment="#", **AB) == [("12",), ("34",)]
    assert Fixed(path="x.txt", skip_lines=1, comment="#", **AB).places(tmp_path / "x.txt", [0, 1]) == {0: "line 3", 1: "line 5"}


def test_places_are_characters_or_bytes_as_said(tmp_path):
    data = "é12\n".encode()
    assert read(tmp_path, data, ["n"], columns={"n": (2, 3)}) == [("12",)]
    assert read(tmp_path, data, ["n"], columns={"n": (3, 4)}, unit="bytes") == [("12",)]
    with pytest.raises(DataError, match="line 1, column 'n': the places cut a utf-8 character in two"):
        read(tmp_path, data, ["n"], columns={"n": (2, 4)}, unit="bytes")
    with pytest.raises(DataError, match="about line 1: byte 0xe9 is not utf-8"):
        read(tmp_path, "é12\n".encode("latin-1"), ["n"], columns={"n": (2, 3)})
    assert read(tmp_path, "é12\n".encode("latin-1"), ["n"], columns={"n": (1, 1)}, width=3, encoding="latin-1") == [("é",)]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"widths": [3]},
        {"widths": [3], "header": ["a", "b"]},
        {"columns": {"a": (3, 2)}},
        {**AB, "width": 5},
        {**AB, "widths": [1], "header": ["a"]},
        {**AB, "encoding": "klingon"},
        {**AB, "unit": "bytes", "encoding": "utf-16"},
    ],
)
def test_settings_that_contradict_are_refused(settings):
    with pytest.raises(ValidationError):
        Fixed(path="x.txt", **settings)


def test_overlapping_columns_are_as_they_are_said(tmp_path):
    assert read(tmp_path, "2024-05\n", ["month", "year"], columns={"month": (1, 7), "year": (1, 4)}) == [("2024-05", "2024")]
