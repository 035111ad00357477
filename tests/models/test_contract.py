"""What holds for every kind of model: it builds from plain numbers and gives [B, outputs]. A new kind gets a line in SETTINGS."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest
import torch
from pydantic import TypeAdapter

from mlpipe.errors import SpecError
from mlpipe.features.base import TextSequence
from mlpipe.models import AnyModel
from mlpipe.schema import Tensors
from tests.small_bert import small_bert

KINDS = {kind.model_fields["kind"].default for kind in get_args(get_args(AnyModel)[0])}

NET = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, tensors, outputs, width=4):
        super().__init__()
        self.cardinalities = tensors.cardinalities
        size = len(tensors.numeric) + len(tensors.plain) + sum(tensors.cardinalities) + bool(tensors.text)
        self.layers = nn.Sequential(nn.Linear(size, width), nn.Tanh(), nn.Linear(width, outputs))

    def forward(self, numeric=None, plain=None, category=None, text=None):
        parts = [part for part in (numeric, plain) if part is not None]
        if text is not None:
            parts.append(text.float().mean(1, keepdim=True))
        if category is not None:
            parts += [nn.functional.one_hot(category[:, i], n).float() for i, n in enumerate(self.cardinalities)]
        return self.layers(torch.cat(parts, dim=1))
"""

SETTINGS: dict[str, dict[str, Any]] = {
    "linear": {"kind": "linear"},
    "mlp": {"kind": "mlp", "hidden": [8, 8]},
    "mlp without hidden layers": {"kind": "mlp", "hidden": []},
    "mlp periodic": {"kind": "mlp", "hidden": [8], "numeric_embedding": "periodic", "embedding_width": 3, "frequencies": 5},
    "mlp piecewise linear": {"kind": "mlp", "hidden": [8], "numeric_embedding": "piecewise_linear", "embedding_width": 3, "bins": 4},
    "mlp batch": {"kind": "mlp", "hidden": [8], "normalisation": "batch", "activation": "gelu"},
    "mlp layer": {"kind": "mlp", "hidden": [8], "normalisation": "layer", "activation": "silu", "dropout": 0},
    "mlp embedded": {"kind": "mlp", "hidden": [8], "one_hot_up_to": 0, "category_width": 3},
    "mlp mixed": {"kind": "mlp", "hidden": [8], "one_hot_up_to": 4, "category_width": 3},
    "text_bag": {"kind": "text_bag", "width": 6},
    "text_bag with hidden layers": {"kind": "text_bag", "width": 6, "hidden": [5], "forget": 0.2},
    "text_cnn": {"kind": "text_cnn", "width": 6, "channels": 4, "windows": [1, 3]},
    "text_cnn of characters": {"kind": "text_cnn", "unit": "characters", "width": 6, "channels": 4},
    "transformer": {"kind": "transformer", "width": 8, "layers": 2, "heads": 2, "max_length": 4},
    "pretrained": {"kind": "pretrained", "path": "bert", "freeze": False},
    "pretrained with hidden layers": {"kind": "pretrained", "path": "bert", "freeze": False, "pooling": "first", "hidden": [5]},
    "python": {"kind": "python", "object": "net.py:Net", "options": {"width": 6}},
}
TEXT = (
    TextSequence(column="t", unit="words", length=5, size=7),
    TextSequence(column="t", unit="words", order=2, length=4, size=4),
    TextSequence(column="u", unit="words", length=3, size=5),
    TextSequence(column="u", unit="characters", length=9, size=12),
)
TABLES = {
    "all": Tensors(numeric=("a", "b"), plain=("p",), category=("c", "d"), cardinalities=(4, 9), text=TEXT),
    "text": Tensors(text=TEXT),
    "text and numbers": Tensors(numeric=("a", "b"), text=TEXT[:2]),
    "numeric": Tensors(numeric=("a", "b")),
    "plain": Tensors(plain=("p", "q")),
    "category": Tensors(category=("c", "d"), cardinalities=(4, 9)),
    "no numeric": Tensors(plain=("p",), category=("c",), cardinalities=(2,)),
}


def table(name: str, key: str) -> Tensors:
    """A table; its texts as tokens for a model that reads those."""
    tensors = TABLES[key]
    if not name.startswith("pretrained"):
        return tensors
    tokens = tuple(s.model_copy(update={"unit": "tokens"}) for s in tensors.text if s.order == 1)
    return tensors.model_copy(update={"text": tokens})


def encoded(tensors: Tensors, rows: int, seed: int = 0) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    found: dict[str, np.ndarray] = {}
    if tensors.numeric:
        found["numeric"] = random.normal(size=(rows, len(tensors.numeric))).astype(np.float32)
    if tensors.plain:
        found["plain"] = random.normal(size=(rows, len(tensors.plain))).astype(np.float32)
    if tensors.category:
        found["category"] = np.stack([random.integers(0, n, rows) for n in tensors.cardinalities], axis=1)
    if tensors.text:  # codes, and 0 behind the end of each text, which may be empty
        ends = [random.integers(0, sequence.length + 1, (rows, 1)) for sequence in tensors.text]
        codes = [
            np.where(np.arange(s.length) < end, random.integers(1, s.size, (rows, s.length)), 0)
            for s, end in zip(tensors.text, ends, strict=True)
        ]
        found["text"] = np.concatenate(codes, axis=1)
    return found


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return small_bert(tmp_path_factory.mktemp("hub") / "bert")


@pytest.fixture
def build(tmp_path, bert):
    (tmp_path / "bert").symlink_to(bert)
    (tmp_path / "net.py").write_text(NET)

    def builder(name: str, tensors: Tensors, outputs: int, seed: int = 7) -> torch.nn.Module:
        model = TypeAdapter(AnyModel).validate_python(SETTINGS[name]).resolved_against(tmp_path)
        arguments = model.measure(encoded(tensors, 50))
        torch.manual_seed(seed)
        return model.build(tensors, outputs, arguments)

    return builder


def call(net: torch.nn.Module, arrays: dict[str, np.ndarray]) -> torch.Tensor:
    return net(**{name: torch.from_numpy(array) for name, array in arrays.items()})


def test_every_kind_is_here():
    assert {settings["kind"] for settings in SETTINGS.values()} == KINDS


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("key", TABLES)
@pytest.mark.parametrize("name", SETTINGS)
def test_a_model_gives_one_row_of_outputs_a_row(build, name, key, outputs):
    tensors = table(name, key)
    if name.startswith(("text", "transformer", "pretrained")) and not tensors.text:
        with pytest.raises(SpecError, match="reads text, and no feature gives any"):
            build(name, tensors, outputs)
        return
    assert set(encoded(tensors, 1)) == set(tensors.present)
    net = build(name, tensors, outputs).eval()
    for rows in (1, 2, 7):
        out = call(net, encoded(tensors, rows))
        assert out.shape == (rows, outputs)
        assert out.dtype == torch.float32
        assert torch.isfinite(out).all()


@pytest.mark.parametrize("name", SETTINGS)
def test_rows_do_not_touch_each_other_once_trained(build, name):
    net = build(name, table(name, "all"), 2).eval()
    arrays = encoded(table(name, "all"), 9)
    alone = torch.cat([call(net, {k: v[i : i + 1] for k, v in arrays.items()}) for i in range(9)])
    assert call(net, arrays).detach().numpy() == pytest.approx(alone.detach().numpy(), abs=1e-5)


@pytest.mark.parametrize("name", SETTINGS)
def test_weights_come_from_the_seed_alone(build, name):
    one, two, other = (build(name, table(name, "all"), 2, seed).state_dict() for seed in (7, 7, 8))
    assert list(one) == list(two)
    assert all(torch.equal(one[key], two[key]) for key in one)
    assert any(not torch.equal(one[key], other[key]) for key in one)


@pytest.mark.parametrize("name", SETTINGS)
def test_every_weight_takes_part_and_every_tensor_matters(build, name):
    """A model that never looks at a tensor would pass every test of shapes."""
    net = build(name, table(name, "all"), 2).eval()
    arrays = encoded(table(name, "all"), 64)
    call(net, arrays).square().sum().backward()
    for key, parameter in net.named_parameters():
        assert parameter.grad is not None, key
        assert torch.isfinite(parameter.grad).all()
    before = call(net, arrays)
    for tensor in arrays:
        changed = {**arrays, tensor: np.roll(arrays[tensor], 1, axis=0)}
        assert not torch.equal(before, call(net, changed)), tensor


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_round_trip(name):
    adapter = TypeAdapter(AnyModel)
    model = adapter.validate_python(SETTINGS[name])
    assert adapter.validate_python(model.model_dump(mode="json")) == model
