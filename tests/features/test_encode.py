"""features/encode.py: the encoder that works on distinct values gives what the plain graph gives."""

from __future__ import annotations

import datetime as dt

import numpy as np
import onnx
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlpipe.columns import Column, convert
from mlpipe.errors import SpecError
from mlpipe.features.category import Category, FittedCategory
from mlpipe.features.datetime import Datetime
from mlpipe.features.encode import Encoder, feed, session, split_tables
from mlpipe.features.graph import ENCODED, GraphBuilder
from mlpipe.features.numeric import FittedNumeric, Numeric
from mlpipe.sources.csv import Csv
from tests.features.graphs import model_of

COLUMNS = [
    Column(name="n", type="number"),
    Column(name="category", type="text"),
    Column(name="w", type="timestamp", format="iso"),
    Column(name="km/h", type="text"),
]


def batch(rows: list[tuple], *, encode: bool = True) -> pa.RecordBatch:
    n, c, w, k = ([row[i] for row in rows] for i in range(4))
    texts = [pa.array(t, pa.string()) for t in (c, k)]
    c, k = (t.dictionary_encode() if encode else t for t in texts)
    return pa.RecordBatch.from_arrays(
        [pa.array(n, pa.float64()), c, pa.array(w, pa.timestamp("us")), k], names=["n", "category", "w", "km/h"]
    )


TRAIN = batch(
    [
        (1.0, "a", dt.datetime(2020, 1, 1), "x"),  # noqa: DTZ001
        (None, "b", None, "y"),
        (5.0, None, dt.datetime(2021, 6, 5, 4, 3), "x"),  # noqa: DTZ001
        (2.0, "nan", None, None),
    ]
)


def states() -> list:
    features = [
        Numeric(columns=("n",)),
        Category(columns=("category",)),
        Datetime(columns=("w",)),
        Category(columns=("km/h",), min_count=2),
    ]
    return [f.fit(f.columns[0], pa.chunked_array([TRAIN.column(f.columns[0])])) for f in features]


MODEL, PARTS = model_of(states())

ROWS = st.lists(
    st.tuples(
        st.none() | st.floats(allow_nan=False),
        st.none() | st.sampled_from(["a", "b", "nan", "", "A", "a ", "a\0", "é"]),
        st.none() | st.datetimes(),
        st.none() | st.sampled_from(["x", "y", ""]),
    ),
    max_size=12,
)


def plain(rows: pa.RecordBatch) -> dict[str, np.ndarray]:
    opened = session(MODEL, 1)
    names = [output.name for output in opened.get_outputs()]
    return dict(zip([n.removeprefix(ENCODED) for n in names], opened.run(names, feed(rows, COLUMNS)), strict=True))


ENCODER = Encoder(MODEL, COLUMNS, threads=1)


@given(ROWS, st.booleans())
def test_the_encoder_by_distinct_values_equals_the_plain_graph(rows, encode):
    expected = plain(batch(rows))
    found = ENCODER(batch(rows, encode=encode))
    assert list(found) == list(expected) == ["numeric", "plain", "category"]
    for name, tensor in expected.items():
        assert found[name].dtype == tensor.dtype
        assert found[name].shape == tensor.shape == (len(rows), sum(len(p.names) for p in PARTS if p.tensor == name))
        assert found[name].tobytes() == tensor.tobytes()


@given(ROWS.filter(len), st.integers(0, 12))
def test_each_row_is_encoded_by_itself(rows, cut):
    """A row gives the same numbers alone, in a chunk and in a slice of one."""
    whole = ENCODER(batch(rows))
    for part, first in ((batch(rows).slice(0, cut), 0), (batch(rows).slice(cut), cut)):
        for name, tensor in ENCODER(part).items():
            assert tensor.tobytes() == whole[name][first : first + part.num_rows].tobytes()


def test_category_tables_are_cut_out_and_the_rest_takes_their_codes():
    tables, rest = split_tables(onnx.load_model_from_string(MODEL))
    assert set(tables) == {"category", "km/h"}
    assert {value.name for value in rest.graph.input} == {"n", "w", "category/code", "km/h/code"}
    assert "LabelEncoder" not in {node.op_type for node in rest.graph.node}


def test_cells_are_fed_as_the_contract_says():
    """One input a source column, `[rows, 1]`: strings with "" for missing, doubles with NaN, times in seconds."""
    arrays = feed(TRAIN, COLUMNS)
    assert [(name, a.dtype.kind, a.shape) for name, a in arrays.items()] == [
        ("n", "f", (4, 1)), ("category", "O", (4, 1)), ("w", "f", (4, 1)), ("km/h", "O", (4, 1))]  # fmt: skip
    assert arrays["category"].ravel().tolist() == ["a", "b", "", "nan"]
    assert np.isnan(arrays["n"].ravel()).tolist() == [False, True, False, False]
    assert arrays["w"][0, 0] == 1577836800.0
    opened = session(MODEL, 1)
    assert [(i.name, i.type) for i in opened.get_inputs()] == [
        ("n", "tensor(double)"), ("category", "tensor(string)"), ("w", "tensor(double)"), ("km/h", "tensor(string)")]  # fmt: skip


@pytest.mark.parametrize("name", ["numeric", "plain", "category", "label", "a b", "größe", "x/code", "x/missing"])
def test_a_column_may_be_called_what_it_likes(name):
    numeric = Numeric(columns=(name,)).fit(name, pa.chunked_array([[1.0, 2.0]]))
    category = Category(columns=(f"{name}2",)).fit(f"{name}2", pa.chunked_array([pa.array(["u"])]))
    model, _ = model_of([numeric, category])
    rows = pa.RecordBatch.from_arrays([pa.array([2.0]), pa.array(["u"]).dictionary_encode()], names=[name, f"{name}2"])
    found = Encoder(model, [Column(name=name, type="number"), Column(name=f"{name}2", type="text")])(rows)
    assert (found["numeric"].tolist(), found["category"].tolist()) == ([[1.0]], [[2]])


def test_two_edges_of_one_name_are_refused_with_the_name():
    """A column that is called what another column's nodes are: never one value under the other's name."""
    numeric = FittedNumeric(column="x", fill=0.0, indicator=False, scale="none")
    for other in ("x/missing", "x/fill", "x", f"{ENCODED}numeric"):
        with pytest.raises(SpecError, match=other):
            model_of([numeric, FittedCategory(column=other, values=("a",))])


def test_the_same_state_gives_the_same_bytes():
    assert model_of(states())[0] == MODEL


def test_a_graph_needs_no_locale_and_no_operator_of_onnxruntime_alone():
    """O05."""
    nodes = onnx.load_model_from_string(MODEL).graph.node
    assert {node.domain for node in nodes} <= {"", "ai.onnx.ml"}
    assert "StringNormalizer" not in {node.op_type for node in nodes}


def test_constants_may_be_asked_for_twice_and_nodes_not():
    graph = GraphBuilder()
    graph.constant("a", 1.0)
    graph.constant("a", 1.0)
    graph.node("Neg", ["a"], "b")
    with pytest.raises(SpecError, match="'b'"):
        graph.node("Neg", ["a"], "b")


def test_o04_known_unseen_empty_and_lookalike_cells_have_their_own_answers(cases):
    """Gaps in text and numbers, the text `nan`, another case and a trailing blank."""
    columns = [Column(name="colour", type="text"), Column(name="x", type="number")]

    def rows(name: str) -> pa.RecordBatch:
        source = Csv(path=name)
        (chunk,) = source.chunks(cases / "O04", ["colour", "x"])
        return pa.RecordBatch.from_arrays(
            [convert(chunk.rows.column(c.name), c, source.numbers)[0] for c in columns], names=["colour", "x"]
        )

    train, probe = rows("train.csv"), rows("probe.csv")
    states = [Category(columns=("colour",)).fit("colour", pa.chunked_array([train.column("colour")]))]
    states.append(Numeric(columns=("x",)).fit("x", pa.chunked_array([train.column("x")])))
    model, _ = model_of(states)
    found = Encoder(model, columns, threads=1)(probe)
    table = {value: code + 2 for code, value in enumerate(states[0].values)}
    cells = probe.column("colour").to_pylist()
    assert len(cells) == 7
    assert found["category"].ravel().tolist() == [0 if cell is None else table.get(cell, 1) for cell in cells]
    assert {0, 1} < set(found["category"].ravel().tolist())
    assert found["plain"].ravel().tolist() == [float(x is None) for x in probe.column("x").to_pylist()]
    direct = session(model, 1).run(None, feed(probe, columns))
    assert [tensor.tobytes() for tensor in direct] == [tensor.tobytes() for tensor in found.values()]
