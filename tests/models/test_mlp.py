"""Model `mlp`: one-hot or embedded categories, embedded numbers, candidates for what is `auto`."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from mlpipe.models.mlp import Mlp, bin_edges
from mlpipe.models.network import Embeddings, OneHot
from mlpipe.schema import Tensors


def test_one_hot_puts_a_one_at_each_columns_code_behind_the_columns_before_it():
    found = OneHot([2, 3])(torch.tensor([[0, 0], [1, 2]]))
    assert found.tolist() == [[1, 0, 1, 0, 0], [0, 1, 0, 0, 1]]


def test_embeddings_of_missing_and_unknown_start_at_zero_and_columns_have_rows_of_their_own():
    table = Embeddings([4, 5], 3)
    found = table(torch.tensor([[0, 0], [1, 1], [2, 2]]))
    assert found.shape == (3, 6)
    assert found[:2].abs().sum() == 0
    assert found[2].abs().min() > 0
    assert not torch.equal(found[2, :3], found[2, 3:])


def test_small_categories_are_one_hot_and_large_ones_embedded():
    tensors = Tensors(category=("a", "b", "c"), cardinalities=(3, 100, 4))
    net = Mlp(hidden=(), one_hot_up_to=4, category_width=5, dropout=0).build(tensors, 1, {})
    assert net.layers[0].in_features == 3 + 4 + 5
    codes = torch.tensor([[2, 99, 3], [0, 2, 0]])
    assert net.one_hot(codes[:, net.low]).argmax(dim=1).tolist() == [2, 0]
    assert net(category=codes).shape == (2, 1)


def test_auto_frequencies_offer_candidates_and_anything_else_none():
    auto = Mlp(numeric_embedding="periodic")
    offered = auto.candidates()
    assert [(m.numeric_embedding, m.frequency_scale) for m in offered] == [
        ("none", "auto"), ("periodic", 0.1), ("periodic", 1.0), ("periodic", 4.0), ("periodic", 16.0)]  # fmt: skip
    assert all(not m.candidates() for m in (*offered, Mlp(), Mlp(numeric_embedding="piecewise_linear")))


def test_bin_edges_are_increasing_float32_quantiles():
    column = np.random.default_rng(0).normal(size=1000).astype(np.float32)
    edges = bin_edges(column, 10)
    assert len(edges) == 11
    assert (edges[0], edges[-1]) == (column.min(), column.max())
    assert edges[5] == pytest.approx(np.median(column), abs=1e-6)
    assert all(np.float32(edge) == edge for edge in edges)


@pytest.mark.filterwarnings("ignore:The 0-th feature has just two bin edges")
@pytest.mark.parametrize("column", [[3.0] * 9, [0.0] * 99 + [1.0], [0.0], [1e9] * 3])
def test_columns_that_hardly_vary_still_have_a_bin(column):
    edges = bin_edges(np.array(column, np.float32), 48)
    assert len(edges) >= 2
    assert all(np.diff(edges) > 0)
    tensors = Tensors(numeric=("x",))
    model = Mlp(numeric_embedding="piecewise_linear", hidden=())
    net = model.build(tensors, 1, model.measure({"numeric": np.array(column, np.float32)[:, None]}))
    assert torch.isfinite(net(numeric=torch.tensor([[0.0], [1e6], [-1e6]]))).all()


def test_measure_finds_bins_for_each_column_and_nothing_where_none_are_needed():
    numeric = np.random.default_rng(0).normal(size=(50, 2)).astype(np.float32)
    assert [len(edges) for edges in Mlp(numeric_embedding="piecewise_linear", bins=4).measure({"numeric": numeric})["bins"]] == [5, 5]
    assert Mlp(numeric_embedding="piecewise_linear").measure({"category": np.zeros((3, 1), np.int64)}) == {}
    assert Mlp().measure({"numeric": numeric}) == {}


@pytest.mark.parametrize(
    "settings", [{"hidden": [0]}, {"dropout": 1.0}, {"bins": 1}, {"activation": "tanh"}, {"frequency_scale": 0}, {"frequency_scale": "a"}]
)
def test_settings_of_no_use_are_refused(settings):
    with pytest.raises(ValidationError):
        Mlp(**settings)
