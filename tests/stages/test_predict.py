"""predict answers as evaluate did, from rows as they stand."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest
from pyarrow import parquet as pq

from mlpipe.errors import DataError, IntegrityError, SpecError
from mlpipe.stages.predict import predict
from tests.helpers import chain, small_settings, strict_json, write_pipeline


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose source replaces spellings and has a missing token of its own: the pipeline's folder."""
    folder = tmp_path_factory.mktemp("predict")
    dice = random.Random(1)
    rows = [(f"{dice.random():.3f}", dice.choice(["M", "F", "?"])) for _ in range(200)]
    lines = [f"{i},{x},{c},{'Y' if (c == 'M') != (float(x) > 0.9) else 'N'}" for i, (x, c) in enumerate(rows)]
    (folder / "r.csv").write_text("id,x,c,y\n" + "\n".join(lines) + "\n")
    replace = {"c": {"M": "male", "F": "female"}, "y": {"Y": "yes", "N": "no"}}
    source = {"kind": "csv", "path": "r.csv", "missing": ["", "?"], "replace": replace}
    settings = small_settings(
        task={"kind": "classification", "target": "y"},
        prepare__source=source,
        prepare__keys=["id"],
        prepare__features=[{"kind": "numeric", "columns": ["x"]}, {"kind": "category", "columns": ["c"]}],
        train__epochs=40,
        train__optimiser={"kind": "adamw", "lr": 0.02},
    )
    chain(write_pipeline(folder / "r.yaml", settings), folder / "runs")
    return folder


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl", "tsv"])
def test_rows_as_the_source_has_them_get_the_answers_of_evaluate(run: Path, tmp_path: Path, ending: str) -> None:
    """Replaced spellings and missing tokens mean in predict what they meant in prepare; key columns come along."""
    import csv
    import json

    out = tmp_path / f"out.{ending}"
    assert predict(run / "runs/small/export", run / "r.csv", out).rows == 200
    evaluated = pq.read_table(run / "runs/small/evaluate/predictions.parquet").to_pylist()
    if ending == "parquet":
        found = pq.read_table(out).to_pylist()
    elif ending == "jsonl":
        found = [json.loads(line) for line in out.read_text().splitlines()]
    else:
        found = list(csv.DictReader(out.open(), delimiter="\t" if ending == "tsv" else ","))
    answers = {row["id"]: row for row in found}
    for row in evaluated:
        assert answers[row["id"]]["prediction"] == row["prediction"]
        assert float(answers[row["id"]]["score_yes"]) == pytest.approx(row["score_yes"], abs=1e-5)


def test_the_graph_itself_takes_raw_spellings(run: Path) -> None:
    """`M` is `male` and `?` is missing inside model.onnx; schema.json says so."""
    session = ort.InferenceSession((run / "runs/small/export/model.onnx").read_bytes(), providers=["CPUExecutionProvider"])
    cells = np.array([["M"], ["male"], ["F"], ["female"], ["?"], [""], ["zzz"]], dtype=object)
    scores = session.run(["probability"], {"x": np.full((7, 1), 0.5), "c": cells})[0][:, 1]
    assert scores[0] == scores[1] != scores[2] == scores[3]
    assert scores[4] == scores[5] != scores[6]
    inputs = {entry["name"]: entry for entry in strict_json(run / "runs/small/export/schema.json")["inputs"]}
    assert inputs["c"]["reads_as"] == {"M": "male", "F": "female"}


def test_bad_cell_late_in_the_file_leaves_nothing(run: Path, tmp_path: Path) -> None:
    """A cell that is no number on the last line: named, and no output, half or whole."""
    rows = tmp_path / "rows.csv"
    rows.write_text((run / "r.csv").read_text() + "200,many,M,Y\n")
    with pytest.raises(DataError, match=r"rows\.csv, line 202, column 'x': 'many'"):
        predict(run / "runs/small/export", rows, tmp_path / "out.csv")
    assert [p.name for p in tmp_path.iterdir()] == ["rows.csv"]


def test_output_inside_the_export_and_a_changed_export_are_refused(run: Path, tmp_path: Path) -> None:
    """The export folder holds what its manifest lists; a changed schema.json is not believed."""
    import shutil

    export = shutil.copytree(run / "runs/small/export", tmp_path / "export")
    with pytest.raises(SpecError, match="inside the export folder"):
        predict(export, run / "r.csv", export / "out.csv")
    schema = export / "schema.json"
    text = schema.read_text()
    schema.write_text(text.replace('"no"', '"?"').replace('"yes"', '"no"').replace('"?"', '"yes"'))
    assert schema.read_text() != text
    with pytest.raises(IntegrityError, match=r"schema\.json has"):
        predict(export, run / "r.csv", tmp_path / "out.csv")


def test_values_that_training_did_not_see_are_counted(run: Path, tmp_path: Path) -> None:
    """A value without a code of its own is scored as unknown, and said: it may be a spelling that another format has."""
    rows = tmp_path / "rows.csv"
    rows.write_text("id,x,c\n1,0.5,Mars\n2,0.5,M\n3,0.5,?\n4,0.5,Mars\n5,0.5,\n")
    done = predict(run / "runs/small/export", rows, tmp_path / "out.csv")
    assert done.unseen == {"c": {"Mars": 2}}
    assert predict(run / "runs/small/export", run / "r.csv", tmp_path / "all.csv").unseen == {}
