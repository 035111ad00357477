"""Texts through the four stages: raw rows in the exported file, parity, and a process with onnxruntime and numpy alone."""

from __future__ import annotations

import csv
import json
import os
import random
import subprocess
import sys

import pytest

from mlpipe.base import read_json
from tests.helpers import chain, mlpipe, write_pipeline

SUBJECTS = {"sport": ["match", "goal", "Läufer", "試合"], "food": ["soup", "bread", "Käse", "料理"], "sky": ["star", "moon", "Wolke", "星"]}
FILLERS = ["the", "a", "very", "and", "in", "Über", "on", "e\u0301tude"]
ODD = ["", " ", "\U0001f600", "e\u0301 É", "x" * 100_000, "\u05e9\u05dc\u05d5\u05dd", "a\u0000b", "THE MATCH", "我要听音乐", "nan"]


def table(path, rows=180, seed=1):
    draw = random.Random(seed)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["title", "body", "size", "shop", "subject"])
        for _ in range(rows):
            subject = draw.choice(list(SUBJECTS))
            words = draw.choices(SUBJECTS[subject], k=3) + draw.choices(FILLERS, k=6)
            draw.shuffle(words)
            title = draw.choice(SUBJECTS[subject]) if draw.random() < 0.7 else ""
            writer.writerow([title, " ".join(words), draw.randint(1, 9), draw.choice("abc"), subject])


MODELS = {
    "text_bag": {"kind": "text_bag", "width": 8},
    "mlp": {"kind": "mlp", "hidden": [16], "text_width": 8},
    "text_cnn": {"kind": "text_cnn", "width": 8, "channels": 8},
    "transformer": {"kind": "transformer", "width": 8, "heads": 2, "layers": 1},
    "linear": {"kind": "linear"},
}


def pipeline(folder, model, **train):
    table(folder / "rows.csv")
    return {
        "name": "texts",
        "task": {"kind": "classification", "target": "subject"},
        "prepare": {
            "source": {"kind": "csv", "path": "rows.csv"},
            "features": [
                {"kind": "text", "columns": ["title", "body"]},
                {"kind": "numeric", "columns": ["size"]},
                {"kind": "category", "columns": ["shop"]},
            ],
        },
        "train": {"model": model, "epochs": 12, "batch_size": 16, "optimiser": {"kind": "adamw", "lr": 0.02}, **train},
        "evaluate": {"slices": ["shop"]},
    }


def run(folder, model):
    chain(write_pipeline(folder / "p.yaml", pipeline(folder, model)), folder / "runs")
    return folder / "runs" / "texts"


@pytest.mark.parametrize("name", MODELS)
def test_two_texts_beside_numbers_and_categories_in_one_model(tmp_path, name):
    """Every model that takes texts learns from them, and answers in the exported file as it did in training."""
    found = run(tmp_path, MODELS[name])
    report = read_json(found / "evaluate" / "metrics.json")
    assert report["accuracy"] > 0.8
    assert sum(part["n"] for part in report["slices"]["shop"]["slices"].values()) == report["n"]
    parity = read_json(found / "export" / "parity.json")
    assert parity["worst_scaled"] <= 1e-5
    assert parity["awkward"]["rows"] > 60
    contract = read_json(found / "export" / "schema.json")
    assert {entry["name"]: entry["type"] for entry in contract["inputs"]} == {
        "title": "string",
        "body": "string",
        "size": "double",
        "shop": "string",
    }


STRANGER = """
import os; os.environ["ORT_DISABLE_TELEMETRY"] = "1"
import json, sys
import numpy, onnxruntime
rows = json.load(open(sys.argv[2], encoding="utf-8"))
dtypes = {"title": object, "body": object, "size": numpy.float64, "shop": object}
feed = {name: numpy.array([[row[name]] for row in rows], dtype) for name, dtype in dtypes.items()}
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
label, probability = session.run(["label", "probability"], feed)
loaded = [name for name in ("torch", "mlpipe", "pandas", "onnx", "pyarrow", "transformers") if name in sys.modules]
print(json.dumps({"label": label.tolist(), "probability": probability.tolist(), "loaded": loaded}))
"""


def test_a_process_with_onnxruntime_alone_and_no_locale_gives_the_same_answers(tmp_path):
    found = run(tmp_path, MODELS["text_bag"])
    rows = [{"title": text, "body": other, "size": 3.0, "shop": "a"} for text in ODD for other in (*ODD[:4], "star and moon", "SOUP")]
    (tmp_path / "odd.json").write_text(json.dumps(rows), encoding="utf-8")
    (tmp_path / "stranger.py").write_text(STRANGER, encoding="utf-8")
    answers = []
    for environment in ({"LC_ALL": "C"}, {"LC_ALL": "C.UTF-8", "LANG": "tr_TR.UTF-8"}, None):
        outcome = subprocess.run(
            [sys.executable, "stranger.py", str(found / "export" / "model.onnx"), "odd.json"],
            cwd=tmp_path,
            env=environment if environment is not None else dict(os.environ),
            capture_output=True,
            text=True,
            check=False,
        )
        assert outcome.returncode == 0, outcome.stderr
        answers.append(json.loads(outcome.stdout))
    assert answers[0] == answers[1] == answers[2]
    assert answers[0]["loaded"] == []
    assert len(answers[0]["label"]) == len(rows)
    # and the command that reads files agrees
    with (tmp_path / "odd.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(row for row in rows if "\u0000" not in row["title"])
    told = mlpipe("predict", found / "export", "odd.csv", "-o", "out.csv", cwd=tmp_path)
    assert told.rc == 0, told.err
    assert "title: 6 texts are longer than 64 characters; the rest of them is not read" in told.out
    with (tmp_path / "out.csv").open(encoding="utf-8") as file:
        labels = [row["prediction"] for row in csv.DictReader(file)]
    assert labels == [label for label, row in zip(answers[0]["label"], rows, strict=True) if "\u0000" not in row["title"]]


def test_a_model_of_texts_without_a_text_is_refused_before_anything_runs(tmp_path):
    spec = pipeline(tmp_path, MODELS["text_cnn"])
    spec["prepare"]["features"] = spec["prepare"]["features"][1:]
    path = write_pipeline(tmp_path / "p.yaml", spec)
    told = mlpipe("check", path, cwd=tmp_path)
    assert told.rc == 2
    assert "text_cnn reads text; give it a feature: {kind: text or tokens, columns: [...]}" in told.err


@pytest.mark.parametrize(("column", "why"), [("size", "holds numbers, not text"), ("shape", "carry it along under prepare.keys")])
def test_slices_are_columns_of_text_that_are_read(tmp_path, column, why):
    spec = pipeline(tmp_path, MODELS["text_bag"])
    spec["evaluate"]["slices"] = [column]
    told = mlpipe("check", write_pipeline(tmp_path / "p.yaml", spec), cwd=tmp_path)
    assert told.rc == 2
    assert f"evaluate.slices.0: {column!r}" in told.err
    assert why in told.err
