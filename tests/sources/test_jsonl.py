"""Source `jsonl`: values keep the digits and the quotes that the file has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlpipe.errors import DataError
from mlpipe.sources.jsonl import Jsonl

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)


def read(folder: Path, data: bytes | str, columns: list[str], **settings) -> list[tuple]:
    (folder / "x.jsonl").write_bytes(data.encode() if isinstance(data, str) else data)
    found = []
    for chunk in Jsonl(path="x.jsonl", **settings).chunks(folder, columns):
        assert chunk.first == len(found)
        found += zip(*(chunk.rows.column(name).to_pylist() for name in columns), strict=True)
    return found


@given(st.lists(st.tuples(st.none() | TEXT, TEXT), min_size=1, max_size=8), st.booleans())
def test_what_pythons_json_module_writes_comes_back_cell_for_cell(tmp_path_factory, table, ascii_only):
    lines = [json.dumps({"a": a, "b\n": b}, ensure_ascii=ascii_only) for a, b in table]
    assert read(tmp_path_factory.mktemp("jsonl"), "\n".join(lines), ["a", "b\n"], missing=()) == table


def test_numbers_keep_their_digits_and_quoted_ones_stay_text(tmp_path):
    data = '{"a": 1582218195625938945, "b": "00501"}\n{"a": 1.50, "b": 1E5}\n{"a": -0, "b": true}\n'
    assert read(tmp_path, data, ["a", "b"]) == [("1582218195625938945", "00501"), ("1.50", "1E5"), ("-0", "true")]


def test_null_an_absent_name_and_listed_tokens_are_missing(tmp_path):
    data = '{"a": null, "b": "?"}\n\n{"b": "x"}\n{"a": "", "b": "null"}\n'
    assert read(tmp_path, data, ["a", "b"], missing=("?",)) == [(None, None), (None, "x"), ("", "null")]


def test_names_come_from_every_line(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"a": 1}\n{"b": 2, "a": 3}\n')
    assert Jsonl(path="x.jsonl").names(tmp_path / "x.jsonl") == ["a", "b"]


def test_a_mark_at_the_head_and_windows_line_ends_are_no_part_of_a_value(tmp_path):
    assert read(tmp_path, '\ufeff{"a": "x"}\r\n{"a": "y"}\r\n', ["a"]) == [("x",), ("y",)]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"a": NaN}', "NaN is not JSON"),
        ('{"a": -Infinity}', "-Infinity is not JSON"),
        ('{"a": [1]}', "no single value"),
        ('{"a": {"b": 1}}', "no single value"),
        ('{"a": 1, "a": 2}', "'a' stands twice"),
        ("[1]", "instead of an object"),
        ('{"a": 1}{"a": 2}', "Extra data"),
        ('{"a": 1', "line 3"),
        ("{'a': 1}", "line 3"),
        ('{"a": "\\ud83d"}', "half a character"),
        ('{"a": ' + "[" * 50_000, "brackets"),
    ],
)
def test_a_line_that_is_no_flat_object_is_refused_with_its_number(tmp_path, line, words):
    with pytest.raises(DataError, match=r"x\.jsonl, line 3") as caught:
        read(tmp_path, f'{{"a": 1}}\n\n{line}\n{{"a": 5}}\n', ["a"])
    assert words in str(caught.value)


def test_bytes_that_are_not_utf8_and_empty_files_are_refused(tmp_path):
    with pytest.raises(DataError, match="UTF-8"):
        read(tmp_path, b'{"a": "\xff"}\n', ["a"])
    with pytest.raises(DataError, match="empty"):
        read(tmp_path, "\n\n", ["a"])


def test_places_are_lines(tmp_path):
    (tmp_path / "x.jsonl").write_text('\n{"a": 1}\n\n{"a": 2}\n')
    assert Jsonl(path="x.jsonl").places(tmp_path / "x.jsonl", [0, 1]) == {0: "line 2", 1: "line 4"}
