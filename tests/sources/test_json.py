"""Source `json`: an array of objects, read a piece at a time, with the digits that the file has."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlpipe.errors import DataError
from mlpipe.sources import json as source_json
from mlpipe.sources.json import Json
from mlpipe.sources.jsonl import Jsonl


def read(folder: Path, text: str | bytes, columns: list[str], **settings) -> list[tuple]:
    (folder / "x.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    found: list[tuple] = []
    for chunk in Json(path="x.json", **settings).chunks(folder, columns):
        found += zip(*(chunk.rows.column(name).to_pylist() for name in columns), strict=True)
    return found


def refused(folder: Path, text: str | bytes, *words: str, **settings) -> None:
    with pytest.raises(DataError) as caught:
        read(folder, text, ["a"], **settings)
    for word in ("x.json", *words):
        assert word in str(caught.value), str(caught.value)


VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
)


@given(
    st.lists(st.fixed_dictionaries({"a": VALUES, "b": VALUES}), min_size=1, max_size=6), st.integers(1, 9), st.sampled_from([None, 1, 4])
)
def test_the_same_objects_as_an_array_and_as_lines_give_equal_cells(tmp_path_factory, records, block, indent):
    folder = tmp_path_factory.mktemp("json")
    (folder / "x.jsonl").write_text("\n".join(json.dumps(record, ensure_ascii=False) for record in records), encoding="utf-8")
    lines = [chunk.rows.to_pydict() for chunk in Jsonl(path="x.jsonl", missing=()).chunks(folder, ["a", "b"])]
    before = source_json.BLOCK
    source_json.BLOCK = block  # so that every value lies across two blocks somewhere
    try:
        (folder / "x.json").write_text(json.dumps(records, ensure_ascii=False, indent=indent), encoding="utf-8")
        assert [chunk.rows.to_pydict() for chunk in Json(path="x.json", missing=()).chunks(folder, ["a", "b"])] == lines
        (folder / "x.json").write_text(
            json.dumps({"n": [1, {"i": 2}], "data": {"x": "]", "items": records, "z": 1}, "m": 0}, ensure_ascii=False, indent=indent),
            encoding="utf-8",
        )
        below = Json(path="x.json", records="data.items", missing=())
        assert [chunk.rows.to_pydict() for chunk in below.chunks(folder, ["a", "b"])] == lines
    finally:
        source_json.BLOCK = before


def test_digits_are_kept(tmp_path):
    text = '[{"a": 1.50, "b": 1582218195625938945}, {"a": 1e5, "b": 0.00000001}, {"b": -0}]'
    assert read(tmp_path, text, ["a", "b"]) == [("1.50", "1582218195625938945"), ("1e5", "0.00000001"), (None, "-0")]


def test_a_mark_of_bytes_blanks_and_packing_do_not_matter(tmp_path):
    assert read(tmp_path, b'\xef\xbb\xbf \n [ {"a" : 1} ] \n', ["a"]) == [("1",)]
    assert read(tmp_path, gzip.compress(b'[{"a": 1}]'), ["a"]) == [("1",)]


def test_what_is_no_array_of_objects_is_refused_with_what_to_do(tmp_path):
    refused(tmp_path, '{"a": [1, 2], "b": [3, 4]}', "object of columns ('a' is a list of values)", "orient='records'")
    refused(tmp_path, '{"n": 1, "rows": [{"a": 1}]}', "holds an object", "records: rows")
    refused(tmp_path, '{"data": {"rows": [{"a": 1}]}}', "records: data.NAME")
    refused(tmp_path, '{"a": 1}', "one object", "[{...}]")
    refused(tmp_path, "[1, 2]", "row 1", "no object")
    refused(tmp_path, "[]", "no rows")
    refused(tmp_path, '[{"a": {"b": 1}}]', "row 1", "no single value")
    refused(tmp_path, '{"data": {"rows": []}}', "has no data.row", "did you mean 'rows'?", records="data.row")
    refused(tmp_path, '{"data": 3}', "data is no object", records="data.rows")
    refused(tmp_path, '{"data": 3}', "data is no array", records="data")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[{"a": 1},\n{"a": 2}', ["line 2", "the file ends"]),
        ('[{"a": 1},\n\n{"a": x}]', ["line 3, row 2", "expecting value"]),
        ('[{"a": 1}] []', ["more text after the end"]),
        ('[{"a": 1, "a": 2}]', ["row 1", "'a' stands twice"]),
        ('[{"a": NaN}]', ["NaN is not JSON"]),
        ('{"a": 1}\n{"a": 2}', ["one object"]),
        ('[{"a": "\\ud800"}]', ["half a character"]),
        (b'[{"a": "\xff"}]', ["not UTF-8"]),
        ("", ["'[' is missing"]),
        ("[" * 100_000, ["brackets within brackets"]),
    ],
)
def test_broken_documents_are_refused_with_the_place(tmp_path, text, words):
    refused(tmp_path, text, *words)


def test_places_are_rows(tmp_path):
    (tmp_path / "x.json").write_text('[{"a": 1}, {"a": 2}]')
    assert Json(path="x.json").places(tmp_path / "x.json", [1]) == {1: "row 2"}
