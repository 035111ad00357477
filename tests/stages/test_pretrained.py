"""The four stages on a pretrained encoder: ids at the door in one way everywhere, an export that stands alone, ids that name files."""

from __future__ import annotations

import csv
import json
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import csv as pa_csv

from mlpipe.base import read_json
from mlpipe.errors import DataError, SpecError
from mlpipe.spec import load_pipeline
from mlpipe.stages.check import check_sources
from tests.helpers import chain, clean_failure, environment, mlpipe, states, write_pipeline
from tests.small_bert import TEXTS, small_bert, wordpiece


def rows() -> list[tuple[str, float, str]]:
    """Two classes by their words; every 23rd text is missing, one is longer than is read."""
    draw, found = random.Random(1), []
    for i in range(140):
        words = draw.choice(TEXTS[:4] if i % 2 == 0 else TEXTS[4:]).split()
        draw.shuffle(words)
        found.append((" ".join(words) if i % 23 else "", i * 37 % 100 / 10, "rate" if i % 2 else "card"))
    return [*found, ("card " * 40, 1.0, "card")]


def settings(**model: Any) -> dict[str, Any]:
    return {
        "name": "p",
        "seed": 3,
        "task": {"kind": "classification", "target": "label"},
        "prepare": {
            "source": {"kind": "csv", "path": "t.csv"},
            "split": {"kind": "random", "valid": 0.2, "test": 0.2},
            "features": [
                {"kind": "tokens", "columns": ["text"], "tokeniser": "bert", "max_length": 16},
                {"kind": "numeric", "columns": ["n"]},
            ],
        },
        "train": {
            "model": {"kind": "pretrained", "path": "bert", **model},
            "optimiser": {"lr": 0.01},
            "epochs": 30,
            "batch_size": 16,
            "device": "cpu",
            "patience": None,
        },
    }


def write(folder: Path, table: list[tuple[str, float, str]] | None = None, **model: Any) -> Path:
    with (folder / "t.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "n", "label"])
        writer.writerows(table or rows())
    return write_pipeline(folder / "p.yaml", settings(**model))


@pytest.fixture(scope="module")
def done(tmp_path_factory) -> Path:
    """A folder with a finished run."""
    folder = tmp_path_factory.mktemp("work")
    small_bert(folder / "bert")
    assert set(states(chain(write(folder), folder / "runs")).values()) == {"ran"}
    return folder


@pytest.fixture
def copy(done, tmp_path) -> Path:
    return shutil.copytree(done, tmp_path / "work")


def test_it_learns_and_parity_holds(done):
    run = done / "runs" / "p"
    assert read_json(run / "evaluate" / "metrics.json")["accuracy"] >= 0.8
    parity = read_json(run / "export" / "parity.json")
    assert parity["worst_scaled"] <= 1e-5
    assert parity["awkward"]["rows"] > 20
    assert parity["batches"]["rows"] > 0


def test_the_contract_names_the_step_and_the_file_is_there(done):
    export = done / "runs" / "p" / "export"
    entry = next(entry for entry in read_json(export / "schema.json")["inputs"] if entry["name"] == "text")
    assert (entry["type"], entry["shape"], entry["missing"]) == ("int64", ["batch", 16], "all 0")
    step = entry["host_step"]
    assert (step["step"], step["version"]) == ("text to token ids", 1)
    assert (export / step["settings"]["tokeniser"]).read_bytes() == (done / "bert" / "tokenizer.json").read_bytes()
    roles = {output["role"]: output["path"] for output in read_json(export / "manifest.json")["outputs"]}
    assert roles["tokeniser"] == "tokeniser"
    assert "cut" not in json.dumps(entry)


def test_the_sample_runs_with_onnxruntime_and_numpy_alone(done, tmp_path):
    export = done / "runs" / "p" / "export"
    for name in ("model.onnx", "sample_input.json"):
        shutil.copy(export / name, tmp_path / name)
    code = [
        *read_json(tmp_path / "sample_input.json")["python"],
        "import sys; assert not {'torch', 'transformers', 'tokenizers', 'onnx', 'mlpipe'} & set(sys.modules)",
    ]
    ran = subprocess.run(
        [sys.executable, "-c", "\n".join(code)], cwd=tmp_path, env=environment(clean=True), capture_output=True, text=True, check=True
    )
    expected = read_json(tmp_path / "sample_input.json")["outputs"]["label"]
    assert re.findall("card|rate", ran.stdout) == expected


def test_the_cards_code_makes_the_samples_ids(done, monkeypatch):
    export = done / "runs" / "p" / "export"
    card, sample = (export / "card.md").read_text(encoding="utf-8"), read_json(export / "sample_input.json")
    assert "text is the exception: the graph takes token ids there, not text." in card
    (code,) = re.findall(r"```python\n(.*?)```", card, re.DOTALL)
    monkeypatch.chdir(export)
    found: dict[str, Any] = {"texts": sample["texts"]["text"]}
    exec(code, found)
    assert found["rows_1"].tolist() == sample["inputs"]["text"]["data"]


def test_predict_takes_texts_and_neither_torch_nor_transformers(done, tmp_path):
    """And gives what evaluate gave."""
    export, out = done / "runs" / "p" / "export", tmp_path / "out.csv"
    shutil.copy(done / "t.csv", tmp_path / "t.csv")
    code = (
        "import sys; from pathlib import Path; from mlpipe.stages.predict import predict;"
        f"d = predict(Path({str(export)!r}), Path('t.csv'), Path('out.csv'), carry_all=True); print(d.cut);"
        "assert not {'torch', 'transformers'} & set(sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True)
    assert "{'text': (1, 16, 'tokens')}" in ran.stdout
    scored = pa_csv.read_csv(out).to_pylist()
    by_row = {(row["text"] or "", row["n"]): row for row in scored}
    sample = read_json(export / "sample_input.json")
    for text, n, scores in zip(sample["texts"]["text"], sample["inputs"]["n"]["data"], sample["outputs"]["probability"], strict=True):
        row = by_row[(text, n[0])]
        assert [row["score_card"], row["score_rate"]] == pytest.approx(scores, abs=1e-6)


def test_a_tokeniser_that_was_changed_in_the_export_is_found(copy):
    export = copy / "runs" / "p" / "export"
    file = export / "tokeniser" / "tokenizer.json"
    file.write_text(file.read_text(encoding="utf-8").replace("card", "cord"), encoding="utf-8")
    result = mlpipe("predict", export, copy / "t.csv", "-o", copy / "out.csv")
    assert result.rc == 7
    clean_failure(result, "tokeniser")
    (export / "manifest.json").unlink()  # the file's digest stands in the contract, too
    clean_failure(mlpipe("predict", export, copy / "t.csv", "-o", copy / "out.csv"), "is not the tokeniser that the model was made with")


def test_nothing_runs_twice_and_each_file_decides_its_stage(copy):
    file, runs = copy / "p.yaml", copy / "runs"
    assert set(states(chain(file, runs)).values()) == {"fresh"}
    weights = copy / "bert" / "model.safetensors"
    small_bert(copy / "other", initializer_range=0.1)
    weights.write_bytes((copy / "other" / "model.safetensors").read_bytes())
    small_bert(copy / "bert", tokeniser=False, hidden_act="relu")
    after = chain(file, runs, until="train")
    assert states(after) == {"prepare": "fresh", "train": "ran"}
    wordpiece(copy / "bert", [*TEXTS, "a word more"])
    after = chain(file, runs, until="train")
    assert states(after) == {"prepare": "ran", "train": "ran"}
    assert "tokeniser bert/tokenizer.json changed" in after["prepare"].reason


def test_equal_work_gives_equal_bytes(done, tmp_path):
    folder = tmp_path / "again"
    folder.mkdir()
    shutil.copytree(done / "bert", folder / "bert")
    chain(write(folder), folder / "runs")
    for path in ("prepare/encoded/train/text.npy", "train/weights.safetensors", "export/model.onnx", "export/manifest.json"):
        assert (folder / "runs" / "p" / path).read_bytes() == (done / "runs" / "p" / path).read_bytes(), path


def test_evaluate_and_export_need_the_folder_no_more(copy):
    """All of the encoder is in weights.safetensors and model.json, and the tokeniser in prepare's result."""
    before = (copy / "runs" / "p" / "export" / "model.onnx").read_bytes()
    shutil.rmtree(copy / "bert")
    for stage in ("evaluate", "export"):
        result = mlpipe(stage, copy / "p.yaml", "--runs", copy / "runs", "--force")
        assert result.rc == 0, result.text
        assert "result is taken as recorded" in result.err
    assert (copy / "runs" / "p" / "export" / "model.onnx").read_bytes() == before


def test_a_run_that_was_stopped_goes_on_to_the_same_weights(done, tmp_path, monkeypatch):
    """The vectors that a frozen encoder makes ahead are the same in both processes."""
    from mlpipe.errors import StoppedError
    from mlpipe.stages import train as stage

    folder = tmp_path / "stopped"
    folder.mkdir()
    shutil.copytree(done / "bert", folder / "bert")
    file = write(folder)
    judge = stage._Training._judge

    def stop(self: Any, epoch: Any, *rest: Any) -> str:
        if epoch.number == 4:
            raise StoppedError(15, "stopped")
        return str(judge(self, epoch, *rest))

    monkeypatch.setattr(stage._Training, "_judge", stop)
    with pytest.raises(StoppedError):
        chain(file, folder / "runs", until="train")
    monkeypatch.undo()
    chain(file, folder / "runs", until="train")
    path = "runs/p/train/weights.safetensors"
    assert (folder / path).read_bytes() == (done / path).read_bytes()


def test_an_encoder_is_trained_on_and_exported(copy):
    file = write(copy, freeze=False, pooling="first", hidden=[8])
    outcomes = chain(file, copy / "runs", overrides=["train.optimiser.lr=0.001"])
    assert states(outcomes)["prepare"] == "fresh"
    assert read_json(copy / "runs" / "p" / "export" / "parity.json")["worst_scaled"] <= 1e-5
    from safetensors.numpy import load_file

    before, after = load_file(copy / "bert" / "model.safetensors"), load_file(copy / "runs" / "p" / "train" / "weights.safetensors")
    name = next(name for name in before if name.endswith("attention.self.query.weight"))
    assert not np.array_equal(before[name], after[f"texts.encoder.{name}"])


@pytest.mark.parametrize(
    "model",
    [{"kind": "text_bag", "width": 8}, {"kind": "text_cnn", "width": 8, "channels": 8}, {"kind": "mlp", "hidden": [8], "text_width": 8}],
)
def test_other_models_read_tokens_too(copy, model):
    """Also of a tokeniser that pads with 1."""
    wordpiece(copy / "own", special=("[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]"))
    changed = settings()
    changed["prepare"]["features"][0]["tokeniser"] = "own"
    changed["train"]["model"] = model
    write_pipeline(copy / "p.yaml", changed)
    chain(copy / "p.yaml", copy / "runs")
    assert read_json(copy / "runs" / "p" / "evaluate" / "metrics.json")["accuracy"] > 0.8
    assert read_json(copy / "runs" / "p" / "export" / "parity.json")["worst_scaled"] <= 1e-5


def test_two_tokenisers_have_two_files(copy):
    wordpiece(copy / "own", ["other words"], size=60)
    changed = settings()
    changed["prepare"]["features"][1] = {"kind": "tokens", "columns": ["n"], "tokeniser": "own/tokenizer.json", "max_length": 6}
    changed["train"]["model"] = {"kind": "text_bag", "width": 4}
    write_pipeline(copy / "p.yaml", changed)
    chain(copy / "p.yaml", copy / "runs")
    export = copy / "runs" / "p" / "export"
    assert sorted(path.name for path in (export / "tokeniser").iterdir()) == ["tokenizer-2.json", "tokenizer.json"]
    assert (export / "tokeniser" / "tokenizer-2.json").read_bytes() == (copy / "own" / "tokenizer.json").read_bytes()
    result = mlpipe("predict", export, copy / "t.csv", "-o", copy / "out.csv")
    assert result.rc == 0, result.text


def test_faults_are_found_by_check(copy):
    lines = check_sources(load_pipeline(copy / "p.yaml"))
    assert [line.split(",")[0] for line in lines if line.startswith("pretrained")] == [
        f"pretrained: bert/{name}" for name in ("config.json", "model.safetensors", "tokenizer.json")
    ]
    (copy / "bert" / "model.safetensors").rename(copy / "bert" / "pytorch_model.bin")
    with pytest.raises(DataError, match="a pickle"):
        check_sources(load_pipeline(copy / "p.yaml"))
    result = mlpipe("run", copy / "p.yaml", "--runs", copy / "elsewhere")
    assert result.rc == 3
    clean_failure(result, "pytorch_model.bin", "hint")


def test_pretrained_needs_tokens(tmp_path):
    changed = settings()
    changed["prepare"]["features"][0] = {"kind": "text", "columns": ["text"]}
    with pytest.raises(SpecError, match=r"give it a feature: \{kind: tokens"):
        load_pipeline(write_pipeline(tmp_path / "p.yaml", changed))


def test_another_tokeniser_than_the_encoders_is_refused_before_training(copy):
    wordpiece(copy / "own", ["other words"])
    changed = settings()
    changed["prepare"]["features"][0]["tokeniser"] = "own"
    write_pipeline(copy / "p.yaml", changed)
    with pytest.raises(SpecError, match="the same ids would mean other words"):
        chain(copy / "p.yaml", copy / "runs")
