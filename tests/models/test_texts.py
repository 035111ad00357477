"""Networks on sequences of codes: what they compute, by hand, and what they must not depend on."""

from __future__ import annotations

import pytest
import torch

from mlpipe.features.base import TextSequence
from mlpipe.models.texts import Bag, Convolution, Texts, Transformer, bags, ordered

WORDS = TextSequence(column="t", unit="words", length=6, size=5)
PAIRS = TextSequence(column="t", unit="words", order=2, length=5, size=4)
SIGNS = TextSequence(column="u", unit="characters", length=8, size=9)
CODES = torch.tensor([[2, 3, 1, 0, 0, 0], [4, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0]])


@pytest.mark.parametrize(("pooling", "divisor"), [("mean", 4), ("sqrt", 2)])
def test_a_bag_averages_the_rows_of_its_table(pooling, divisor):
    """Each sequence has rows of its own; code 0 has none, and an empty text is 0."""
    bag = Bag([WORDS, PAIRS], width=3, forget=0.0, pooling=pooling).eval()
    pairs = torch.tensor([[3, 0, 0, 0, 0], [0, 0, 0, 0, 0], [0, 0, 0, 0, 0]])
    found = bag(torch.cat([CODES, pairs], 1))
    table = bag.table
    assert table.shape == (1 + 4 + 3, 3)
    assert torch.allclose(found[0], (table[2] + table[3] + table[1] + table[4 + 3]) / divisor)
    assert torch.allclose(found[1], table[4])
    assert (found[2] == 0).all()


def test_a_bag_forgets_tokens_while_it_trains_and_never_later():
    torch.manual_seed(1)
    bag = Bag([WORDS], width=3, forget=0.5)
    assert not torch.equal(bag(CODES), bag(CODES))
    bag.eval()
    assert torch.equal(bag(CODES), bag(CODES))


def test_padding_learns_nothing():
    bag = Bag([WORDS], width=3, forget=0.0)
    bag(CODES).sum().backward()
    assert (bag.table.grad[0] == 0).all()
    assert (bag.table[0] == 0).all()


@pytest.mark.parametrize("make", [lambda s: Convolution(s, 4, 3, (2, 3), 0.0), lambda s: Transformer(s, 4, 1, 2, 100, 0.0)])
def test_what_lies_behind_the_end_says_nothing(make):
    """A text gives the same alone, where the padding is cut off, and beside a longer one."""
    torch.manual_seed(2)
    net = make(WORDS).eval()
    longest = torch.cat([CODES, torch.tensor([[1, 2, 3, 4, 1, 2]])])
    with torch.no_grad():
        together = net(longest)
        for i in range(4):
            assert torch.allclose(net(longest[i : i + 1])[0], together[i], atol=1e-6)
        assert not torch.allclose(together[0], together[3])
        assert torch.isfinite(together).all()


def test_a_convolution_answers_for_windows_that_begin_at_a_token():
    net = Convolution(WORDS, 2, 1, (2,), 0.0).eval()
    with torch.no_grad():
        tokens = net.table(CODES[:1])[0].T
        layer = net.filters[0]
        answers = [torch.relu((layer.weight[0] * tokens[:, i : i + 2]).sum() + layer.bias[0]) for i in range(3)]
        assert torch.allclose(net(CODES[:1])[0, 0], torch.stack(answers).max(), atol=1e-6)
        assert net(CODES[2:])[0, 0] == 0


def test_the_order_of_words_matters_to_those_that_read_in_order():
    torch.manual_seed(3)
    turned = torch.tensor([[1, 3, 2, 0, 0, 0]])
    for net, same in (
        (Bag([WORDS], 4, 0.0), True),
        (Convolution(WORDS, 4, 3, (2,), 0.0), False),
        (Transformer(WORDS, 4, 1, 2, 9, 0.0), False),
    ):
        net.eval()
        assert torch.allclose(net(CODES[:1]), net(turned), atol=1e-6) is same


def test_each_column_has_an_encoder_of_its_own():
    net = bags([WORDS, PAIRS, SIGNS], width=3, forget=0.0).eval()
    assert isinstance(net, Texts)
    assert net.width == 6
    codes = torch.zeros(1, 19, dtype=torch.int64)
    codes[0, 11] = 5  # the first sign of column u
    found = net(codes)[0]
    assert (found[:3] == 0).all()
    assert torch.allclose(found[3:], net.encoders[1].table[5])


def test_a_column_without_the_unit_asked_for_has_its_first_sequence_read():
    net = ordered([WORDS, PAIRS, SIGNS], "words", lambda sequence: Convolution(sequence, 2, 1, (1,), 0.0))
    assert net.bounds == [(0, 6), (11, 19)]
    net = ordered([SIGNS.model_copy(update={"column": "t"}), WORDS], "words", lambda sequence: Convolution(sequence, 2, 1, (1,), 0.0))
    assert net.bounds == [(8, 14)]
