"""Model `linear`: one linear layer over numbers and one-hot categories."""

from __future__ import annotations

import torch

from mlpipe.models.linear import Linear
from mlpipe.schema import Tensors


def test_the_output_is_the_weighted_sum_worked_out_by_hand():
    tensors = Tensors(numeric=("x",), plain=("p",), category=("c", "d"), cardinalities=(2, 200))
    net = Linear().build(tensors, 1, {})
    assert [tuple(p.shape) for p in net.parameters()] == [(1, 204), (1,)]
    weight, bias = net.layers[0].weight[0], net.layers[0].bias[0]
    out = net(numeric=torch.tensor([[2.0]]), plain=torch.tensor([[3.0]]), category=torch.tensor([[1, 150]]))
    assert torch.allclose(out[0, 0], 2 * weight[0] + 3 * weight[1] + weight[2 + 1] + weight[4 + 150] + bias)


def test_there_is_nothing_to_choose_or_to_measure():
    assert Linear().candidates() == ()
    assert Linear().measure({}) == {}
