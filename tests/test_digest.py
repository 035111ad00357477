"""digest.py: one spelling for equal content, another digest for any difference."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlpipe.digest import (
    LARGEST_EXACT,
    TableDigest,
    TensorDigest,
    canonical,
    dir_hash,
    folder_files,
    portable,
    sha256_bytes,
    sha256_path,
    size_of,
    tensors_digest,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-LARGEST_EXACT, LARGEST_EXACT) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_canonical_json_reads_back_as_what_was_written(value):
    assert json.loads(canonical(value)) == value


@given(st.dictionaries(st.text(), st.integers(0, 9), min_size=2))
def test_canonical_json_does_not_depend_on_the_order_of_keys(value):
    assert canonical(value) == canonical(dict(reversed(value.items())))


def test_canonical_json_is_what_rfc_8785_writes():
    """The key order and escapes of the example in RFC 8785, section 3.2.3: by UTF-16 code units, not by code points."""
    keys = {"€": 1, "\r": 2, "\ufb33": 3, "1": 4, "\U0001f600": 5, "\u0080": 6, "ö": 7}
    assert canonical(keys).decode() == '{"\\r":2,"1":4,"\u0080":6,"ö":7,"€":1,"\U0001f600":5,"\ufb33":3}'
    assert canonical({"a": ['\x0f\n"\\', True, None]}) == b'{"a":["\\u000f\\n\\"\\\\",true,null]}'


@pytest.mark.parametrize("value", [1.0, {"a": [2.5]}, LARGEST_EXACT + 1, [-LARGEST_EXACT - 1], {1: "a"}])
def test_what_has_no_one_spelling_is_refused(value):
    with pytest.raises(ValueError, match=r"float|2\^53|not text"):
        canonical(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_portable_floats_are_text_that_reads_back_as_the_same_float(value):
    text = portable({"a": (value,)})["a"][0]
    assert isinstance(text, str)
    assert np.float64(text).tobytes() == np.float64(value).tobytes()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [-float("inf")]])
def test_numbers_that_are_not_finite_are_refused(value):
    with pytest.raises(ValueError, match="finite"):
        portable(value)


def test_dir_hash_is_the_one_of_in_toto():
    """Lines `<hex>  <path>`, sorted by path."""
    assert dir_hash({"b": "22", "a": "11"}) == sha256_bytes(b"11  a\n22  b\n")


def test_a_rename_changes_the_digest_of_a_folder_and_its_own_name_does_not(tmp_path):
    for folder, name in (("one", "x"), ("two", "x"), ("three", "y")):
        (tmp_path / folder / "sub").mkdir(parents=True)
        (tmp_path / folder / "sub" / name).write_bytes(b"abc")
    one, two, three = (sha256_path(tmp_path / name) for name in ("one", "two", "three"))
    assert one == two != three
    assert size_of(tmp_path / "one") == size_of(tmp_path / "one" / "sub" / "x") == 3
    assert [f.name for f in folder_files(tmp_path / "one")] == ["x"]


def test_one_flipped_bit_changes_the_digest_of_a_file(tmp_path):
    (tmp_path / "a").write_bytes(b"\x00" * 1000)
    before = sha256_path(tmp_path / "a")
    (tmp_path / "a").write_bytes(b"\x00" * 999 + b"\x01")
    assert sha256_path(tmp_path / "a") != before


COLUMNS = [("n", "number"), ("t", "text"), ("when", "timestamp")]
ROWS = st.lists(
    st.tuples(
        st.none() | st.floats(),
        st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
        st.none() | st.integers(-(2**55), 2**55),
    ),
    max_size=12,
)


def batch(rows: list, *, encode: bool = False) -> pa.RecordBatch:
    numbers, texts, times = ([row[i] for row in rows] for i in range(3))
    text = pa.array(texts, pa.string())
    arrays = [
        pa.array(numbers, pa.float64()),
        text.dictionary_encode() if encode else text,
        pa.array(times, pa.int64()).cast(pa.timestamp("us")),
    ]
    return pa.RecordBatch.from_arrays(arrays, names=["n", "t", "when"])


def table_digest(batches: list[pa.RecordBatch]) -> str:
    digest = TableDigest(COLUMNS)
    for piece in batches:
        digest.update(piece)
    return digest.hexdigest()


@given(ROWS, st.integers(0, 12), st.booleans())
def test_the_digest_of_a_table_does_not_depend_on_chunks_or_on_dictionary_encoding(rows, cut, encode):
    whole = table_digest([batch(rows)])
    assert table_digest([batch(rows[:cut], encode=encode), batch(rows[cut:], encode=encode)]) == whole
    assert table_digest([batch(rows, encode=encode).slice(0, cut), batch(rows, encode=encode).slice(cut)]) == whole


@given(ROWS.filter(len), st.data())
def test_any_changed_cell_changes_the_digest_of_a_table(rows, data):
    row, column = data.draw(st.integers(0, len(rows) - 1)), data.draw(st.integers(0, 2))
    other = {0: st.none() | st.floats(), 1: st.none() | st.text("abc", max_size=3), 2: st.none() | st.integers(-9, 9)}[column]
    value = data.draw(other)
    before = rows[row][column]
    same = value is before or (value == before and str(value) == str(before)) or (value != value and before != before)
    changed = [tuple(value if (i, j) == (row, column) else cell for j, cell in enumerate(r)) for i, r in enumerate(rows)]
    assert (table_digest([batch(changed)]) == table_digest([batch(rows)])) == same


@pytest.mark.parametrize(("one", "two"), [(["ab", "c"], ["a", "bc"]), (["", None], [None, ""]), (["a", ""], ["", "a"])])
def test_text_cells_do_not_run_into_each_other(one, two):
    def digest(cells):
        found = TableDigest([("t", "text")])
        found.update(pa.RecordBatch.from_arrays([pa.array(cells, pa.string())], names=["t"]))
        return found.hexdigest()

    assert digest(one) != digest(two)


def test_column_names_types_and_order_are_part_of_the_digest():
    assert len({TableDigest(columns).hexdigest() for columns in ([("a", "text")], [("b", "text")], [("a", "number")])}) == 3
    assert TableDigest([("a", "text"), ("b", "text")]).hexdigest() != TableDigest([("b", "text"), ("a", "text")]).hexdigest()


@given(st.integers(0, 10), st.sampled_from(["float32", "int64", "float64", "bool"]))
def test_the_digest_of_tensors_does_not_depend_on_pieces_order_or_byte_order(cut, dtype):
    a, b = np.arange(30).reshape(10, 3).astype(dtype), np.arange(10).astype(dtype)
    whole = tensors_digest({"a": a, "b": b})
    pieces = TensorDigest()
    for name, part in (("b", b[:cut]), ("a", a[:cut]), ("a", a[cut:]), ("b", b[cut:])):
        pieces.update(name, part)
    assert pieces.hexdigest() == whole
    assert tensors_digest({"b": b.astype(b.dtype.newbyteorder(">")), "a": np.asfortranarray(a)}) == whole


def test_name_type_shape_and_bytes_of_a_tensor_are_part_of_its_digest():
    a = np.zeros((2, 3), np.float32)
    others = [{"b": a}, {"a": a.astype(np.float64)}, {"a": a.reshape(3, 2)}, {"a": a + 1}, {"a": a[:1]}, {"a": np.zeros((2, 3), np.int32)}]
    assert len({tensors_digest(t) for t in [{"a": a}, *others]}) == 7
