"""Stage export: one file that takes raw rows, proven equal to the trained network."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from mlpipe.errors import IntegrityError, MachineError, ParityError
from mlpipe.exporters.parity import Parity
from mlpipe.exporters.targets import HIGHEST_IR
from mlpipe.tasks.regression import Regression
from tests.helpers import CASES, chain, environment, small, small_settings, strict_json, table_csv, write_pipeline


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run with numbers, a category and a time: its run folder."""
    folder = tmp_path_factory.mktemp("export")
    table_csv(folder / "plain.csv")
    lines = (folder / "plain.csv").read_text().splitlines()
    dated = [f"{lines[0]},day", *(f"{line},{i % 28 + 1}/{i % 12 + 1}/20{i % 24:02d}" for i, line in enumerate(lines[1:]))]
    (folder / "train.csv").write_text("\n".join(dated) + "\n")
    features = [
        {"kind": "numeric", "columns": ["x1", "x2"], "scale": "quantile"},
        {"kind": "category", "columns": ["colour"], "min_count": 2},
        {"kind": "datetime", "columns": ["day"], "format": "%d/%m/%Y"},
    ]
    model = {"kind": "mlp", "hidden": [16], "numeric_embedding": "periodic", "frequency_scale": 4.0, "frequencies": 6}
    chain(small(folder, prepare__features=features, train__model=model), folder / "runs")
    return folder / "runs/small"


def test_one_self_contained_file(run: Path) -> None:
    """O01, O03: one file, pinned versions, the full checker passes, nothing says where it was made."""
    export = run / "export"
    assert not list(export.rglob("*.data"))
    model = onnx.load(export / "model.onnx")
    onnx.checker.check_model(model, full_check=True)
    assert model.ir_version == HIGHEST_IR
    assert {(o.domain, o.version) for o in model.opset_import} == {("", 20), ("ai.onnx.ml", 3)}
    assert not model.metadata_props
    assert not any(node.metadata_props or node.doc_string for node in model.graph.node)
    data = (export / "model.onnx").read_bytes()
    for word in (b".py", b"/tmp", b"site-packages", str(run.parent.parent).encode()):
        assert word not in data


def test_no_operator_depends_on_a_locale(run: Path) -> None:
    """O05: no StringNormalizer, and nothing outside the standard operator sets."""
    model = onnx.load(run / "export/model.onnx")
    assert "StringNormalizer" not in {node.op_type for node in model.graph.node}
    assert {node.domain for node in model.graph.node} <= {"", "ai.onnx.ml"}


STRANGER = """
import os, sys, json; os.environ["ORT_DISABLE_TELEMETRY"] = "1"
import numpy as np, onnxruntime as ort
job = json.load(open(sys.argv[1]))
session = ort.InferenceSession(sys.argv[2], providers=["CPUExecutionProvider"])
rows = {n: np.array(v, dtype=object if job["text"][n] else np.float64).reshape(-1, 1) for n, v in job["rows"].items()}
label, probability = session.run(["label", "probability"], rows)
print(json.dumps({"label": label.tolist(), "probability": probability.tolist()}))
assert not {"torch", "pandas", "mlpipe", "onnx"} & set(sys.modules)
"""


def test_a_stranger_reproduces_the_predictions(run: Path, tmp_path: Path) -> None:
    """A process with onnxruntime and numpy alone, no locale, no HOME, the model under another name: predictions.parquet again."""
    shutil.copy(run / "export/model.onnx", tmp_path / "renamed.onnx")
    table = pq.read_table(run / "prepare/test.parquet")
    rows = {
        "x1": table["x1"].to_pylist(),
        "x2": [float("nan") if v is None else v for v in table["x2"].to_pylist()],
        "colour": [v or "" for v in table["colour"].to_pylist()],
        "day": [
            v.timestamp() if v.tzinfo else (v - __import__("datetime").datetime(1970, 1, 1)).total_seconds()
            for v in table["day"].to_pylist()
        ],
    }
    (tmp_path / "job.json").write_text(json.dumps({"rows": rows, "text": {n: n == "colour" for n in rows}}))
    command = [sys.executable, "-c", STRANGER, str(tmp_path / "job.json"), str(tmp_path / "renamed.onnx")]
    done = subprocess.run(command, env={"LC_ALL": "C", "PATH": ""}, capture_output=True, text=True, check=True, cwd="/")
    answer = json.loads(done.stdout)
    predictions = pq.read_table(run / "evaluate/predictions.parquet")
    assert answer["label"] == predictions["prediction"].to_pylist()
    scores = np.column_stack([predictions["score_no"], predictions["score_yes"]])
    assert np.abs(np.array(answer["probability"]) - scores).max() <= 1e-5


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_every_batch_size(run: Path, size: int) -> None:
    """O02: inputs and outputs have the named axis, and any number of rows goes."""
    session = ort.InferenceSession((run / "export/model.onnx").read_bytes(), providers=["CPUExecutionProvider"])
    assert {value.shape[0] for value in [*session.get_inputs(), *session.get_outputs()]} == {"batch"}
    rows = {
        i.name: np.full((size, 1), "red" if "string" in i.type else 1.5, dtype=object if "string" in i.type else np.float64)
        for i in session.get_inputs()
    }
    label, probability = session.run(["label", "probability"], rows)
    assert label.shape == (size,)
    assert probability.shape == (size, 2)
    assert np.abs(probability - probability[0]).max() <= 1e-6


def test_parity_report(run: Path) -> None:
    """parity.json: every test row, three small batch sizes, awkward rows, the change in each metric."""
    report = strict_json(run / "export/parity.json")
    assert report["rows"] == strict_json(run / "evaluate/metrics.json")["n"]
    assert report["largest_scaled"] <= 1e-5
    assert report["label_flips"] == 0
    assert report["batches"]["sizes"][:3] == [1, 2, 7]
    assert report["awkward"]["rows"] > 30
    assert all(abs(metric["change"]) <= 1e-6 for metric in report["metrics"].values())
    for name in ("largest_absolute", "largest_relative", "p999_scaled"):
        assert report[name] >= 0


def test_sample_runs_as_written(run: Path) -> None:
    """sample_input.json: its own code gives its own answers."""
    sample = strict_json(run / "export/sample_input.json")
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(sample["python"])],
        cwd=run / "export",
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    for label in sample["outputs"]["label"]:
        assert label in done.stdout


def test_schema_tells_a_stranger_everything(run: Path) -> None:
    """schema.json: each input with type, shape and how missing is sent; the host step of a time; the classes in order."""
    contract = strict_json(run / "export/schema.json")
    inputs = {entry["name"]: entry for entry in contract["inputs"]}
    assert {name: entry["type"] for name, entry in inputs.items()} == {"x1": "double", "x2": "double", "colour": "string", "day": "double"}
    assert inputs["colour"]["missing"] == ""
    assert inputs["x1"]["missing"] == "NaN"
    assert inputs["day"]["host_step"]["settings"] == {"format": "%d/%m/%Y"}
    assert contract["outputs"][1]["columns"] == contract["classes"] == ["no", "yes"]


def test_card_has_front_matter_and_sections(run: Path) -> None:
    """card.md: Hugging Face's front matter is YAML; data, metrics, limits and lineage follow."""
    from ruamel.yaml import YAML

    text = (run / "export/card.md").read_text()
    front = YAML(typ="safe", pure=True).load(text.split("---\n")[1])
    assert front["pipeline_tag"] == "tabular-classification"
    names = {metric["type"] for metric in front["model-index"][0]["results"][0]["metrics"]}
    assert "accuracy" in names
    for heading in ("## Data", "## Metrics", "## Parity", "## Limits", "## Lineage"):
        assert heading in text


def test_text_and_gaps_mean_the_same_inside_the_graph(tmp_path: Path) -> None:
    """O04: known, unseen, empty, `nan`, other case, trailing blank, empty number: codes apart, finite scores, a wrong type is named."""
    (tmp_path / "train.csv").write_bytes((CASES / "O04/train.csv").read_bytes())
    features = [{"kind": "category", "columns": ["colour"]}, {"kind": "numeric", "columns": ["x"]}]
    chain(write_pipeline(tmp_path / "p.yaml", small_settings(prepare__features=features, train__epochs=30)), tmp_path / "runs")
    from mlpipe.base import NumberFormat
    from mlpipe.columns import Column, convert
    from mlpipe.features.encode import Encoder, feed
    from mlpipe.schema import load_schema
    from mlpipe.sources.csv import Csv

    base = tmp_path / "runs/small"
    schema = load_schema(base / "prepare/schema.json")
    (chunk,) = Csv(path="probe.csv").chunks(CASES / "O04", ["colour", "x"])
    import pyarrow as pa

    typed = [convert(chunk.rows.column(c.name), Column(name=c.name, type=c.type), NumberFormat())[0] for c in schema.columns]
    rows = pa.RecordBatch.from_arrays(typed, names=[c.name for c in schema.columns])
    codes = Encoder((base / "prepare/encoder.onnx").read_bytes(), schema.columns)(rows)["category"][:, 0]
    named = dict(zip(rows.column("colour").to_pylist(), codes.tolist(), strict=True))
    assert named[None] == 0
    assert named["violet"] == 1
    assert named["red"] > 1
    session = ort.InferenceSession((base / "export/model.onnx").read_bytes(), providers=["CPUExecutionProvider"])
    scores = session.run(["probability"], feed(rows, schema.columns))[0]
    assert scores.shape == (7, 2)
    assert np.isfinite(scores).all()
    with pytest.raises(Exception, match="x"):  # an integer where a double is wanted: the message names the input
        session.run(None, {"colour": np.array([["red"]], dtype=object), "x": np.array([[1]], dtype=np.int64)})


def test_disagreement_publishes_nothing(tmp_path: Path) -> None:
    """Beyond the tolerance: exit code 8, the figures, and no export; the old one stays."""
    (tmp_path / "net.py").write_text(
        "import torch\nfrom torch import nn\n\n\n"
        "class Net(nn.Module):\n"
        "    def __init__(self, tensors, outputs):\n"
        "        super().__init__()\n"
        "        self.out = nn.Linear(len(tensors.numeric), outputs)\n\n"
        "    def forward(self, numeric=None, plain=None, category=None):\n"
        "        tracing = torch.compiler.is_compiling() or torch.compiler.is_exporting()\n"
        "        return self.out(numeric) + (0.01 if tracing else 0.0)\n"
    )
    file = small(tmp_path, train__model={"kind": "python", "object": "net.py:Net"})
    with pytest.raises(ParityError, match="nothing is published") as fault:
        chain(file, tmp_path / "runs")
    assert fault.value.exit_code == 8
    assert not (tmp_path / "runs/small/export").exists()


def test_batch_size_frozen_by_a_model_is_refused(tmp_path: Path) -> None:
    """O02: a module that bakes the example's size into the graph cannot be exported, and the message says so."""
    (tmp_path / "net.py").write_text(
        "import torch\nfrom torch import nn\n\n\n"
        "class Net(nn.Module):\n"
        "    def __init__(self, tensors, outputs):\n"
        "        super().__init__()\n"
        "        self.out = nn.Linear(len(tensors.numeric), outputs)\n\n"
        "    def forward(self, numeric=None, plain=None, category=None):\n"
        "        return self.out(numeric.reshape(int(numeric.shape[0]), -1))\n"
    )
    file = small(tmp_path, train__model={"kind": "python", "object": "net.py:Net"})
    with pytest.raises(ParityError, match="batch"):
        chain(file, tmp_path / "runs")
    assert not (tmp_path / "runs/small/export").exists()


def test_missing_exporter_package_is_named_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """O03c: without onnxscript the run ends at its start, not after training."""
    import importlib.util

    whole = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "onnxscript" else whole(name, *rest))
    with pytest.raises(MachineError, match="onnxscript"):
        chain(small(tmp_path), tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_format_newer_than_the_runtime_gives_both_versions(run: Path, tmp_path: Path) -> None:
    """O03b: a file with format version 99 is refused with both numbers; so is such a setting."""
    from mlpipe.errors import SpecError
    from mlpipe.spec import load_pipeline
    from mlpipe.stages.scoring import load_exported

    model = onnx.load(run / "export/model.onnx")
    model.ir_version = 99
    (tmp_path / "new.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(IntegrityError, match="99") as fault:
        load_exported(tmp_path / "new.onnx")
    assert str(HIGHEST_IR) in str(fault.value)
    with pytest.raises(SpecError, match="ir_version 99 is newer than 10"):
        load_pipeline(small(tmp_path), ["export.targets=[{kind: onnx, ir_version: 99}]"])


def test_older_operator_set(tmp_path: Path) -> None:
    """opset 18 and format 8 export as well, and parity holds."""
    file = small(tmp_path, export__targets=[{"kind": "onnx", "opset": 18, "ir_version": 8}])
    outcome = chain(file, tmp_path / "runs")
    model = onnx.load(outcome["export"].manifest.path("model"))
    assert model.ir_version == 8
    assert [o.version for o in model.opset_import if not o.domain] == [18]


def test_parity_counts_what_differs() -> None:
    """NaN on both sides agrees, on one side does not; labels between equal scores may differ."""
    parity = Parity(1e-5)
    labels = np.array(["a", "b"], dtype=object)
    rows, one = np.array([[np.nan, 0.5], [0.2, 0.8]]), np.ones((1, 2))
    first, second = np.array(["a"], dtype=object), np.array(["b"], dtype=object)
    parity.add(rows, rows.copy(), labels, labels, np.ones((2, 2)))
    assert parity.holds
    assert parity.not_finite == 1
    parity.add(np.array([[0.5, 0.5]]), np.array([[0.5, 0.5]]), first, second, one)
    assert parity.holds
    flipped = Parity(1e-5)
    flipped.add(np.array([[0.4, 0.6]]), np.array([[0.4, 0.6]]), first, second, one)
    assert not flipped.holds
    broken = Parity(1e-5)
    broken.add(np.array([[np.nan]]), np.array([[1.0]]), None, None, np.ones((1, 1)))
    assert not broken.holds
    assert broken.as_dict()["largest_scaled"] is None
    relative = Parity(1e-5)
    relative.add(np.array([[200_000.5]]), np.array([[200_000.0]]), None, None, np.array([[200_000.0]]))
    assert relative.holds
    assert relative.largest_absolute == 0.5


def test_differences_are_measured_by_the_size_of_the_target() -> None:
    """Of a target around 1e-7 an error of 1e-8 is large; of one that spreads over hundreds, 2e-5 at a prediction near 0 is none."""
    values = np.linspace(1, 3, 50)
    small, wide = (Regression(target="y").fit(pa.chunked_array([values * unit])) for unit in (1e-7, 300.0))
    for task, trained, error, holds in (
        (small, 1e-7, 1e-8, False),
        (small, 1e-7, 1e-13, True),
        (wide, 1e-3, 2e-5, True),
        (wide, 1e-3, 2e-2, False),
    ):
        parity, scores = Parity(1e-5), np.array([[trained]])
        parity.add(scores + error, scores, None, None, task.size(scores))
        assert parity.holds is holds, (error, parity.largest_scaled)
    logarithm = Regression(target="y", transform="log").fit(pa.chunked_array([values * 1e-9]))
    assert logarithm.size(np.array([[2e-9]])) == np.array([[2e-9]])
