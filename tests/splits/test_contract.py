"""What holds for every kind of split. A new kind gets a line in SETTINGS and is tested."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from mlpipe.splits import AnySplit

KINDS = {kind.model_fields["kind"].default for kind in get_args(get_args(AnySplit)[0])}

SETTINGS: dict[str, dict[str, Any]] = {
    "random": {"kind": "random"},
    "random by key": {"kind": "random", "key": ["g"]},
    "random stratified": {"kind": "random", "stratify": True},
    "group": {"kind": "group", "by": ["g"]},
    "time": {"kind": "time", "by": "w"},
    "time fixed": {"kind": "time", "by": "w", "valid_from": "1970-01-03", "test_from": "1970-01-05"},
    "column": {"kind": "column", "by": "part"},
    "order": {"kind": "order"},
}
NAMES = ["x", "y", "g", "w", "part"]
BY_CONTENT = ["random", "random by key", "group", "time fixed", "column"]  # one row decides for itself
ANY_ORDER = [*BY_CONTENT, "random stratified", "time"]
SEEDED = ["random", "random by key", "random stratified", "group"]
DAY = 86_400_000_000


def some_rows(count: int, own_test: bool = False) -> list[tuple]:
    parts = ["train", "train", "train", "valid", "train" if own_test else "test"]
    return [
        (None if i % 17 == 0 else float(i), "yn"[i * 7 % 3 % 2], f"g{i % 23}", i * 7919 % 5003 * DAY // 700, parts[i % 5])
        for i in range(count)
    ]


def batch(rows: list[tuple]) -> pa.RecordBatch:
    columns = [[row[i] for row in rows] for i in range(5)]
    arrays = [
        pa.array(columns[0], pa.float64()),
        pa.array(columns[1], pa.string()).dictionary_encode(),
        pa.array(columns[2], pa.string()).dictionary_encode(),
        pa.array(columns[3], pa.int64()).cast(pa.timestamp("us")),
        pa.array(columns[4], pa.string()).dictionary_encode(),
    ]
    return pa.RecordBatch.from_arrays(arrays, names=NAMES)


def assigned(name: str, rows: pa.RecordBatch, *, seed: int = 7, own_test: bool = False, chunk: int = 1000, hashed=("x", "y", "g", "w")):
    split = TypeAdapter(AnySplit).validate_python(SETTINGS[name])
    assigner = split.assigner(hashed=hashed, target="y", seed=seed, own_test=own_test)
    pieces = [rows.slice(i, chunk) for i in range(0, rows.num_rows, chunk)]
    if assigner.looks:
        for piece in pieces:
            assigner.look(piece)
        assigner.settle()
    codes = [assigner.assign(piece) for piece in pieces]
    assert all(piece.dtype == np.uint8 for piece in codes)
    return np.concatenate(codes)


def test_every_kind_is_here():
    assert {settings["kind"] for settings in SETTINGS.values()} == KINDS


@pytest.mark.parametrize("name", SETTINGS)
def test_every_row_is_in_one_of_three_splits_and_each_has_some(name):
    assert set(assigned(name, batch(some_rows(300))).tolist()) == {0, 1, 2}


@pytest.mark.parametrize("name", SETTINGS)
@given(chunk=st.integers(1, 320))
def test_chunk_boundaries_do_not_matter(name, chunk):
    rows = batch(some_rows(300))
    assert (assigned(name, rows, chunk=chunk) == assigned(name, rows)).all()


@pytest.mark.parametrize("name", SETTINGS)
def test_the_order_of_columns_does_not_matter(name):
    rows = batch(some_rows(300))
    other = assigned(name, rows.select(NAMES[::-1]), hashed=("w", "g", "y", "x"))
    assert (other == assigned(name, rows)).all()


@pytest.mark.parametrize("name", SETTINGS)
def test_how_text_is_dictionary_encoded_does_not_matter(name):
    rows = batch(some_rows(300))
    pieces = [batch(some_rows(300)[i : i + 50]) for i in range(0, 300, 50)]  # a dictionary of its own for each chunk
    split = TypeAdapter(AnySplit).validate_python(SETTINGS[name])
    assigner = split.assigner(hashed=("x", "y", "g", "w"), target="y", seed=7, own_test=False)
    for piece in pieces if assigner.looks else []:
        assigner.look(piece)
    assigner.settle() if assigner.looks else None
    assert np.concatenate([assigner.assign(piece) for piece in pieces]).tolist() == assigned(name, rows).tolist()


@pytest.mark.parametrize("name", ANY_ORDER)
def test_rows_keep_their_split_when_the_table_is_reordered(name):
    rows = some_rows(300)
    order = np.random.default_rng(0).permutation(300)
    assert (assigned(name, batch([rows[i] for i in order])) == assigned(name, batch(rows))[order]).all()


@pytest.mark.parametrize("name", BY_CONTENT)
def test_rows_keep_their_split_when_the_table_grows(name):
    assert (assigned(name, batch(some_rows(300)))[:120] == assigned(name, batch(some_rows(120)))).all()


@pytest.mark.parametrize("name", ANY_ORDER)
def test_exact_duplicates_are_never_on_both_sides(name):
    rows = some_rows(200)
    codes = assigned(name, batch([*rows, *rows[::-1]]))
    assert (codes[:200] == codes[200:][::-1]).all()


@pytest.mark.parametrize("name", SETTINGS)
def test_the_seed_matters_where_chance_does_and_only_there(name):
    rows = batch(some_rows(300))
    assert (assigned(name, rows, seed=7) == assigned(name, rows, seed=7)).all()
    assert (assigned(name, rows, seed=7) != assigned(name, rows, seed=8)).any() == (name in SEEDED)


@pytest.mark.parametrize("name", SETTINGS)
def test_with_a_test_source_of_its_own_no_row_is_a_test_row(name):
    codes = assigned(name, batch(some_rows(300, own_test=True)), own_test=True)
    assert set(codes.tolist()) == {0, 1}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_round_trip(name):
    adapter = TypeAdapter(AnySplit)
    split = adapter.validate_python(SETTINGS[name])
    assert adapter.validate_python(split.model_dump(mode="json")) == split
    assert set(split.columns()) <= set(NAMES)
