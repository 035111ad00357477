"""Model `pretrained`: the encoder of a folder, pooled, frozen or not; what does not fit is refused before training."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from mlpipe.errors import DataError, SpecError
from mlpipe.features.base import TextSequence
from mlpipe.features.tokeniser import tokeniser_of, vocabulary_digest
from mlpipe.models import pretraining
from mlpipe.models.pretrained import Pretrained
from mlpipe.schema import Tensors
from tests.small_bert import small_bert, wordpiece

TOKENS = Tensors(numeric=("n",), text=(TextSequence(column="t", unit="tokens", length=12, size=100),))


@pytest.fixture(scope="module")
def bert(tmp_path_factory) -> Path:
    return small_bert(tmp_path_factory.mktemp("hub") / "bert")


def model(folder: Path, **settings: object) -> Pretrained:
    return Pretrained.model_validate({"path": folder.name, **settings}).resolved_against(folder.parent)


def network(folder: Path, tensors: Tensors = TOKENS, outputs: int = 2, **settings: object) -> torch.nn.Module:
    made = model(folder, **settings)
    torch.manual_seed(5)
    net = made.build(tensors, outputs, made.measure({}))
    made.load(net)
    return net


def ids(rows: int, length: int = 12, seed: int = 0) -> torch.Tensor:
    random = np.random.default_rng(seed)
    ends = random.integers(0, length + 1, (rows, 1))
    return torch.from_numpy(np.where(np.arange(length) < ends, random.integers(1, 100, (rows, length)), 0))


def numbers(rows: int) -> torch.Tensor:
    return torch.linspace(-1, 1, rows)[:, None]


@pytest.mark.parametrize(
    ("kind", "pad"), [("bert", 0), ("distilbert", 0), ("electra", 0), ("roberta", 1), ("xlm-roberta", 1), ("mpnet", 1)]
)
@pytest.mark.parametrize("pooling", ["mean", "first"])
def test_a_vector_is_what_transformers_gives_pooled(tmp_path, kind, pad, pooling):
    """Of each text alone, whatever architecture counts positions in whatever way, and whatever id pads."""
    from transformers import AutoModel

    folder = small_bert(tmp_path / "m", kind=kind, tokeniser=False, pad_token_id=pad)
    tensors = Tensors(numeric=("n",), text=(TOKENS.text[0].model_copy(update={"pad": pad}),))
    texts = pretraining.texts_of(network(folder, tensors, pooling=pooling))
    plain = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    codes = ids(9)
    codes[0] = 0
    with torch.no_grad():
        found = texts(codes)
        for row, code in enumerate(codes):
            own = code[code > 0][None]  # alone, without padding
            own = torch.where(own == pad, 0, own)  # exchanged at the door
            expected = torch.zeros(32)
            if own.numel():
                states = plain(input_ids=own).last_hidden_state[0]
                expected = states.mean(0) if pooling == "mean" else states[0]
            assert found[row].numpy() == pytest.approx(expected.numpy(), abs=2e-6)


def test_vectors_made_ahead_give_the_same_answers(bert):
    made = model(bert)
    net = network(bert).eval()
    tensors = {"numeric": numbers(50), "text": ids(50).to(torch.int32), "target": torch.zeros(50)}
    ahead = made.ahead(net, tensors)
    assert set(ahead) == set(tensors)
    assert (ahead["text"].dtype, list(ahead["text"].shape)) == (torch.float32, [50, 32])
    with torch.no_grad():
        direct = net(numeric=tensors["numeric"], text=tensors["text"].long())
        assert net(numeric=ahead["numeric"], text=ahead["text"]).numpy() == pytest.approx(direct.numpy(), abs=1e-5)
    assert model(bert, freeze=False).ahead(net, tensors) is tensors


def test_a_frozen_encoder_neither_learns_nor_drops(bert):
    net = network(bert, dropout=0.0)
    net.train()
    texts = pretraining.texts_of(net)
    before = {name: weight.clone() for name, weight in texts.encoder.state_dict().items()}
    assert not texts.encoder.training
    assert torch.equal(texts(ids(20)), texts(ids(20)))
    step = torch.optim.AdamW(net.parameters(), lr=0.1)
    net(numeric=numbers(20), text=ids(20)).square().sum().backward()
    step.step()
    assert all(torch.equal(before[name], weight) for name, weight in texts.encoder.state_dict().items())
    assert [name for name, p in net.named_parameters() if p.requires_grad] == ["layers.0.weight", "layers.0.bias"]


def test_an_encoder_that_is_trained_on_changes_in_all_its_layers(bert):
    net = network(bert, freeze=False)
    net.train()
    texts = pretraining.texts_of(net)
    before = {name: weight.clone() for name, weight in texts.encoder.named_parameters()}
    step = torch.optim.AdamW(net.parameters(), lr=0.01)
    net(numeric=numbers(40), text=ids(40)).square().sum().backward()
    step.step()
    assert [name for name, weight in texts.encoder.named_parameters() if torch.equal(before[name], weight)] == []


def test_two_columns_share_one_encoder(bert):
    pair = Tensors(text=tuple(TextSequence(column=c, unit="tokens", length=12, size=100) for c in "ab"))
    net = network(bert, pair)
    texts = pretraining.texts_of(net)
    one, two = ids(6, seed=1), ids(6, seed=2)
    both = texts(torch.cat([one, two], 1))
    assert both.shape == (6, 64)
    assert both[:, :32].numpy() == pytest.approx(texts(torch.cat([two, one], 1))[:, 32:].numpy(), abs=2e-6)


def test_ids_that_were_exchanged_at_the_door_come_back(tmp_path):
    """A padding token other than 0, as RoBERTa has it: code 1 is id 0 there, and code 0 nothing."""
    folder = small_bert(tmp_path / "m", tokeniser=False, pad_token_id=1)
    swapped = Tensors(text=(TextSequence(column="t", unit="tokens", length=4, size=100, pad=1),))
    texts = pretraining.texts_of(network(folder, swapped))
    with torch.no_grad():
        expected = texts.encoder(input_ids=torch.tensor([[0, 7, 9]])).last_hidden_state.mean(1)
        assert texts(torch.tensor([[1, 7, 9, 0]])).numpy() == pytest.approx(expected.numpy(), abs=2e-6)


def test_settings_and_weights_rebuild_it_without_the_folder(bert, tmp_path):
    """What model.json and weights.safetensors hold is enough."""
    folder = shutil.copytree(bert, tmp_path / "bert")
    net = network(folder).eval()
    arguments = json.loads(json.dumps(model(folder).measure({})))
    shutil.rmtree(folder)
    again = model(folder).build(TOKENS, 2, arguments)
    again.load_state_dict(net.state_dict())
    again.eval()
    with torch.no_grad():
        assert torch.equal(again(numeric=numbers(9), text=ids(9)), net(numeric=numbers(9), text=ids(9)))


# ---- what is refused


def test_files_are_named_and_missing_ones_refused(bert, tmp_path):
    assert [shown for shown, _ in model(bert).files(bert.parent)] == [
        f"bert/{name}" for name in ("config.json", "model.safetensors", "tokenizer.json")
    ]
    with pytest.raises(DataError, match="there is no folder gone"):
        model(tmp_path / "gone").files(tmp_path)
    folder = shutil.copytree(bert, tmp_path / "bert")
    (folder / "config.json").unlink()
    with pytest.raises(DataError, match=r"bert holds no config\.json"):
        model(folder).files(tmp_path)


def test_weights_in_a_pickle_are_refused_by_name(bert, tmp_path):
    folder = shutil.copytree(bert, tmp_path / "bert")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(DataError, match=r"its weights as pytorch_model\.bin, a pickle, which can run any code; not read"):
        model(folder).files(tmp_path)
    (folder / "pytorch_model.bin").unlink()
    with pytest.raises(DataError, match=r"holds no model\.safetensors"):
        model(folder).files(tmp_path)
    (folder / "model-00001-of-00002.safetensors").write_bytes(b"")
    with pytest.raises(DataError, match="in several files"):
        model(folder).files(tmp_path)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("{", "is no config of a model"),
        ("[]", "is no config of a model"),
        ('{"hidden_size": 3}', "is no config of a model"),
        ('{"model_type": "nobodys-net", "auto_map": {"AutoModel": "x.py"}}', "kind 'nobodys-net', which transformers does not know"),
        ('{"model_type": "t5"}', "cannot build the t5 of bert"),
        ('{"model_type": "vit"}', "cannot build the vit of bert"),
        ('{"model_type": "bert", "hidden_size": 30, "num_attention_heads": 4}', "cannot build the bert of bert"),
    ],
)
def test_a_config_of_what_is_no_encoder_of_texts_is_refused(bert, tmp_path, config, words):
    folder = shutil.copytree(bert, tmp_path / "bert")
    (folder / "config.json").write_text(config, encoding="utf-8")
    with pytest.raises(SpecError, match=words):
        network(folder)


def test_weights_that_do_not_fit_the_config_are_refused(bert, tmp_path):
    folder = shutil.copytree(bert, tmp_path / "bert")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    for changes in ({"num_hidden_layers": 3}, {"intermediate_size": 40}):
        (folder / "config.json").write_text(json.dumps({**config, **changes}), encoding="utf-8")
        with pytest.raises(SpecError, match=r"lacks|cannot be read"):
            network(folder)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    data = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(data[: len(data) // 2])
    with pytest.raises(SpecError, match="the weights in bert cannot be read"):
        network(folder)


def test_weights_that_nothing_takes_are_named(bert, tmp_path, capsys):
    """A config with fewer layers than the file would else cut the encoder without a word."""
    folder = shutil.copytree(bert, tmp_path / "bert")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 1}), encoding="utf-8")
    network(folder)
    assert "bert: 16 weights are not used: encoder.layer.1." in capsys.readouterr().err


def test_weights_that_are_not_finite_are_refused(bert, tmp_path):
    from safetensors.torch import load_file, save_file

    folder = shutil.copytree(bert, tmp_path / "bert")
    weights = load_file(folder / "model.safetensors")
    name = next(name for name in weights if name.endswith("LayerNorm.weight"))
    weights[name] = weights[name] * float("nan")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(SpecError, match=r"are not finite: .*LayerNorm\.weight"):
        network(folder)


def sequence(**changes: object) -> Tensors:
    return Tensors(text=(TOKENS.text[0].model_copy(update=changes),))


def test_tokens_that_do_not_fit_the_encoder_are_refused(bert, tmp_path):
    cases = [
        ({"size": 121}, "has ids up to 120, and bert knows 120 tokens"),
        ({"pad": 3}, "pads with id 3, and bert with 0"),
        ({"length": 65}, r"bert cannot read 65 tokens of 't' \(it has 64 places\)"),
        ({"unit": "words"}, "reads tokens, and 't' gives words and characters"),
    ]
    for changes, words in cases:
        with pytest.raises(SpecError, match=words):
            network(bert, sequence(**changes))
    with pytest.raises(SpecError, match="no feature gives any"):
        network(bert, Tensors(numeric=("n",)))


def test_another_tokeniser_of_the_same_size_is_refused(bert, tmp_path):
    """Its ids would all be valid, and all mean other words."""
    own, other = (
        vocabulary_digest(tokeniser_of(file.read_bytes(), "t"))
        for file in (bert / "tokenizer.json", wordpiece(tmp_path, ["some other words altogether"]))
    )
    network(bert, sequence(vocabulary=own))
    with pytest.raises(SpecError, match="is not that of bert: the same ids would mean other words"):
        network(bert, sequence(vocabulary=other))
