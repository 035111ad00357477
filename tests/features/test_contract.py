"""What holds for every kind of feature. A new kind gets a line in VALUES and is tested."""

from __future__ import annotations

import datetime as dt
import functools
import json
import tempfile
from pathlib import Path
from typing import Any, get_args

import numpy as np
import onnx
import pyarrow as pa
import pytest
from pydantic import TypeAdapter

from mlpipe.columns import arrow_type
from mlpipe.features import AnyFeature, AnyFitted
from mlpipe.features.base import Feature, Fitted
from mlpipe.features.encode import Encoder
from mlpipe.features.graph import CODES, TENSORS
from mlpipe.features.subwords import FittedTokens
from mlpipe.features.tokeniser import Tokeniser, tokeniser_of
from tests.features.graphs import model_of
from tests.small_bert import wordpiece

FEATURES = {kind.model_fields["kind"].default: kind for kind in get_args(get_args(AnyFeature)[0])}
FITTED = {kind.model_fields["kind"].default for kind in get_args(get_args(AnyFitted)[0])}

VALUES: dict[str, list[Any]] = {
    "numeric": [1.5, None, -2.0, 1e9],
    "category": ["a", None, "b", "a"],
    "datetime": [dt.datetime(2020, 2, 29, 12, 30), None, dt.datetime(1950, 1, 1), dt.datetime(9999, 12, 31)],  # noqa: DTZ001
    "text": ["one two", None, "two one two", "eins zwei"],
    "tokens": ["my new card", None, "the rate of the rate", "a word it lacks: Zwölf"],
}
OTHER: dict[str, list[Any]] = {
    "numeric": [7e300],
    "category": ["never seen"],
    "text": ["never \U0001f600"],
    "tokens": ["never \U0001f600 " * 99],
    "datetime": [dt.datetime(1, 1, 1)],  # noqa: DTZ001
}


def test_every_kind_has_a_fitted_state_and_values_here():
    assert set(FEATURES) == FITTED == set(VALUES) == set(OTHER)


def feature(kind: str) -> Feature:
    more = {"tokeniser": str(tokeniser()), "max_length": 9} if kind == "tokens" else {}
    return TypeAdapter(AnyFeature).validate_python({"kind": kind, "columns": ["c"], **more})


@functools.cache
def tokeniser() -> Path:
    return wordpiece(Path(tempfile.mkdtemp()))


def column(kind: str, values: list) -> pa.Array:
    made = arrow_type(feature(kind).raw("c").type)
    return pa.array(values, pa.string()).dictionary_encode() if pa.types.is_dictionary(made) else pa.array(values, made)


def fit(kind: str, values: list) -> Fitted:
    return feature(kind).fit("c", pa.chunked_array([column(kind, values)]))


def encoded(kind: str, state: Fitted, values: list) -> dict[str, np.ndarray]:
    rows = pa.RecordBatch.from_arrays([column(kind, values)], names=["c"])
    steps = (
        {"c": Tokeniser(tokeniser_of(tokeniser().read_bytes(), "t"), state.length, state.pad)} if isinstance(state, FittedTokens) else {}
    )
    return Encoder(model_of([state])[0], [feature(kind).raw("c")], steps=steps)(rows)


@pytest.mark.parametrize("kind", VALUES)
def test_the_state_survives_json_and_gives_the_same_graph(kind):
    state = fit(kind, VALUES[kind])
    read = TypeAdapter(AnyFitted).validate_python(json.loads(json.dumps(state.model_dump(mode="json"), allow_nan=False)))
    assert read == state
    assert model_of([read])[0] == model_of([state])[0]


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("values", ["some", "all missing", "one", "none"])
def test_tensors_are_finite_and_as_wide_as_their_names(kind, values):
    train = {"some": VALUES[kind], "all missing": [None] * 3, "one": VALUES[kind][:1], "none": []}[values]
    state = fit(kind, train)
    found = encoded(kind, state, [*VALUES[kind], *OTHER[kind], None])
    _, parts = model_of([state])
    assert set(found) == {part.tensor for part in parts} <= set(TENSORS)
    for name, tensor in found.items():
        mine = [part for part in parts if part.tensor == name]
        assert tensor.shape == (len(VALUES[kind]) + 2, sum(part.width for part in mine))
        assert np.isfinite(tensor).all()
        assert tensor.dtype == (np.int64 if name in CODES else np.float32)
        if name == "category":
            assert (tensor >= 0).all()
            assert (tensor < [part.cardinality for part in mine for _ in part.names]).all()
        if name == "text":
            assert (tensor >= 0).all()
            assert (tensor < [part.sequence.size for part in mine for _ in range(part.width)]).all()
    assert all(isinstance(remark, str) and remark.startswith("c:") for remark in state.remarks())


@pytest.mark.parametrize("kind", VALUES)
def test_a_fit_does_not_depend_on_the_order_of_rows_or_on_chunks(kind):
    one = fit(kind, VALUES[kind])
    chunks = pa.chunked_array([column(kind, VALUES[kind][2:]), column(kind, []), column(kind, VALUES[kind][:2])])
    two = feature(kind).fit("c", chunks)
    assert two.model_dump(exclude={"mean", "deviation"}) == one.model_dump(exclude={"mean", "deviation"})
    for name in ("mean", "deviation"):
        if hasattr(one, name):
            assert getattr(two, name) == pytest.approx(getattr(one, name), rel=1e-12)


@pytest.mark.parametrize("kind", VALUES)
def test_a_missing_cell_differs_from_every_value(kind):
    found = encoded(kind, fit(kind, VALUES[kind]), [VALUES[kind][0], None])
    rows = np.concatenate([tensor.astype(np.float64) for tensor in found.values()], axis=1)
    assert (rows[0] != rows[1]).any()


@pytest.mark.parametrize("kind", VALUES)
def test_a_state_is_a_graph_that_the_full_checker_admits_with_a_free_batch(kind):
    model = onnx.load_model_from_string(model_of([fit(kind, VALUES[kind])])[0])
    onnx.checker.check_model(model, full_check=True)
    assert {value.type.tensor_type.shape.dim[0].dim_param for value in [*model.graph.input, *model.graph.output]} == {"batch"}
    assert encoded(kind, fit(kind, VALUES[kind]), []) is not None


@pytest.mark.parametrize("kind", VALUES)
def test_known_values_are_those_with_a_code_of_their_own(kind):
    state = fit(kind, VALUES[kind])
    assert state.known() in (None, frozenset(v for v in VALUES[kind] if v is not None))
    assert state.strict() is False
