"""Stage evaluate: whole arrays, undefined values, gates, predictions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet as pq

from mlpipe.errors import GateError, SpecError
from mlpipe.metrics.base import Value
from mlpipe.spec import Gate, load_pipeline
from mlpipe.stages.evaluate import judge_gate
from tests.helpers import CASES, chain, small, small_settings, strict_json, table_csv, write_pipeline

NET = {"kind": "mlp", "hidden": [8], "dropout": 0.3, "normalisation": "batch"}


def test_metrics_do_not_depend_on_the_batch_size_and_weights_stay(tmp_path: Path) -> None:
    """E01: the same metrics for batches of 1, 7, 64 and all, equal to those of the written predictions; the digest holds."""
    from sklearn.metrics import accuracy_score, f1_score

    file, seen = small(tmp_path, train__model=NET), []
    for size in (1, 7, 64, 10_000):
        manifest = chain(file, tmp_path / "runs", until="evaluate", overrides=[f"evaluate.batch_size={size}"])["evaluate"].manifest
        report = strict_json(manifest.path("metrics"))
        weights = manifest.results["weights"]
        assert weights["before"] == weights["after"]
        seen.append(report)
    for name in ("accuracy", "f1", "roc_auc", "log_loss"):
        assert np.ptp([report[name] for report in seen]) <= 1e-6
    table = pq.read_table(manifest.path("predictions")).to_pydict()
    assert accuracy_score(table["label"], table["prediction"]) == report["accuracy"]
    assert f1_score(table["label"], table["prediction"], pos_label="yes") == report["f1"]
    assert report["n"] == len(table["label"])


def test_predictions_have_keys_target_prediction_and_scores(tmp_path: Path) -> None:
    """predictions.parquet: key columns, target, prediction, a score for each class, in the order of the test rows."""
    split = {"kind": "random", "key": ["x1"]}
    settings = small_settings(prepare__keys=["x1"], prepare__split=split, prepare__features=[{"kind": "category", "columns": ["colour"]}])
    table_csv(tmp_path / "train.csv")
    outcome = chain(write_pipeline(tmp_path / "p.yaml", settings), tmp_path / "runs", until="evaluate")
    table = pq.read_table(outcome["evaluate"].manifest.path("predictions"))
    assert table.column_names == ["x1", "label", "prediction", "score_no", "score_yes"]
    rows = pq.read_table(outcome["prepare"].manifest.path("test-rows"))
    assert table["label"].to_pylist() == rows["label"].to_pylist()
    scores = np.column_stack([table["score_no"], table["score_yes"]])
    assert np.allclose(scores.sum(axis=1), 1)


def one_class(tmp_path: Path, **gate: object) -> Path:
    """The case E03: test rows of one class only."""
    for name in ("train.csv", "one_class_test.csv"):
        (tmp_path / name).write_bytes((CASES / "E03" / name).read_bytes())
    settings = small_settings(
        prepare__test={"kind": "csv", "path": "one_class_test.csv"},
        prepare__features=[{"kind": "numeric", "columns": ["x"]}],
        evaluate__gates=[{"metric": "roc_auc", **gate}],
    )
    return write_pipeline(tmp_path / "e03.yaml", settings)


def test_undefined_metric_is_null_with_its_reason_and_fails_its_gate(tmp_path: Path) -> None:
    """E03: the area under the curve of one class is neither 0 nor NaN; the gate fails and says why; metrics.json is strict JSON."""
    file = one_class(tmp_path, at_least=0.8)
    with pytest.raises(GateError, match="undefined: only class no present"):
        chain(file, tmp_path / "runs")
    report = strict_json(tmp_path / "runs/small/evaluate/metrics.json")
    assert report["roc_auc"] is None
    assert report["undefined"]["roc_auc"] == "only class no present"
    assert report["n"] == 30


@pytest.mark.parametrize("text", ["nan", ".nan", "inf", ".inf", "high"])
def test_threshold_that_is_no_finite_number_is_refused_at_the_start(tmp_path: Path, text: str) -> None:
    """A gate at NaN would pass or fail everything."""
    file = one_class(tmp_path, at_least=0.5)
    with pytest.raises(SpecError, match="at_least"):
        load_pipeline(file, [f"evaluate.gates.0.at_least={text}"])


@pytest.mark.parametrize(
    ("gate", "value", "baseline", "passed"),
    [
        ({"metric": "accuracy", "at_least": 0.5}, 0.5, 0.1, True),
        ({"metric": "accuracy", "at_least": 0.5}, 0.49, 0.1, False),
        ({"metric": "log_loss", "at_most": 0.5}, 0.5, 0.1, True),
        ({"metric": "log_loss", "at_most": 0.5}, 0.51, 0.1, False),
        ({"metric": "accuracy", "better_than": "baseline"}, 0.6, 0.5, True),
        ({"metric": "accuracy", "better_than": "baseline"}, 0.5, 0.5, False),
        ({"metric": "log_loss", "better_than": "baseline"}, 0.4, 0.5, True),
        ({"metric": "rmse", "better_than": "baseline"}, 0.6, 0.5, False),
        ({"metric": "accuracy", "at_least": 0.5}, None, 0.5, False),
        ({"metric": "accuracy", "better_than": "baseline"}, 0.6, None, False),
    ],
)
def test_gates(gate: dict[str, object], value: float | None, baseline: float | None, passed: bool) -> None:
    """A bound includes its limit, a baseline must be beaten, what is undefined fails."""
    judged = judge_gate(Gate(**gate), Value(value, None if value is not None else "why"), Value(baseline, None if baseline else "why"))
    assert [entry["passed"] for entry in judged] == [passed]


def test_class_that_train_lacks_counts_as_wrong(tmp_path: Path) -> None:
    """A test row of an unknown class does not crash; it is counted, named, and wrong."""
    table_csv(tmp_path / "train.csv")
    (tmp_path / "test.csv").write_text("x1,x2,colour,label\n0.0,-30,red,no\n9.9,40,red,perhaps\n0.1,-39,blue,no\n")
    file = small(tmp_path, prepare__test={"kind": "csv", "path": "test.csv"}, train__epochs=40)
    outcome = chain(file, tmp_path / "runs")
    assert outcome["prepare"].manifest.results["unseen"]["test"]["label"] == {"rows": 1, "values": {"perhaps": 1}}
    report = outcome["evaluate"].manifest.results
    assert report["accuracy"] <= 2 / 3 + 1e-9
    assert report["confusion_matrix"]["classes"] == ["no", "yes", "perhaps"]
    assert report["confusion_matrix"]["rows"][2][2] == 0


def test_column_order_and_extra_columns_do_not_matter(tmp_path: Path) -> None:
    """T11: reordered and extra columns give exactly the same metrics; a missing column is named."""
    from mlpipe.errors import DataError

    for name in ("train.csv", "reordered.csv", "extra_column.csv", "missing_column.csv"):
        (tmp_path / name).write_bytes((CASES / "T11" / name).read_bytes())
    features = [{"kind": "numeric", "columns": ["x1", "x2"]}]
    reports = []
    for name in ("train.csv", "reordered.csv", "extra_column.csv"):
        settings = small_settings(name=name[:-4], prepare__features=features, prepare__test={"kind": "csv", "path": name})
        outcome = chain(write_pipeline(tmp_path / "p.yaml", settings), tmp_path / "runs")
        reports.append(outcome["evaluate"].manifest.path("metrics").read_bytes())
    assert reports[0] == reports[1] == reports[2]
    assert any("note" in line for line in outcome["prepare"].manifest.results["notes"])
    settings = small_settings(prepare__features=features, prepare__test={"kind": "csv", "path": "missing_column.csv"})
    with pytest.raises(DataError, match=r"'x2' is not in missing_column\.csv"):
        chain(write_pipeline(tmp_path / "p.yaml", settings), tmp_path / "runs")


def test_unseen_categories_are_reported_and_may_be_refused(tmp_path: Path) -> None:
    """T12: `violet` twice and one empty cell: counted apart, parity holds; `unseen: fail` refuses."""
    from mlpipe.errors import DataError

    for name in ("train.csv", "new_category.csv"):
        (tmp_path / name).write_bytes((CASES / "T12" / name).read_bytes())
    features = [{"kind": "category", "columns": ["colour"]}, {"kind": "numeric", "columns": ["x"]}]
    settings = small_settings(prepare__features=features, prepare__test={"kind": "csv", "path": "new_category.csv"})
    outcome = chain(write_pipeline(tmp_path / "p.yaml", settings), tmp_path / "runs")
    assert "test: colour: 2 rows with unseen values (violet)" in outcome["prepare"].manifest.results["notes"]
    assert outcome["export"].manifest.results["parity"]["largest_scaled"] <= 1e-5
    settings["prepare"]["features"][0]["unseen"] = "fail"
    with pytest.raises(DataError, match=r"colour.*2 rows.*violet"):
        chain(write_pipeline(tmp_path / "p.yaml", settings), tmp_path / "runs")


@pytest.mark.parametrize("cuts", [[10], [3, 3, 4], [1] * 10, [9, 1]])
@pytest.mark.parametrize("rows", [1, 3, 4, 10, 11])
def test_slices_have_their_size_however_batches_were_cut(cuts: list[int], rows: int) -> None:
    """Row groups of predictions.parquet do not depend on how test rows come; no more than a slice and a batch is drawn ahead."""
    import pyarrow as pa

    from mlpipe.stages.evaluate import in_slices

    drawn = 0

    def batches():
        nonlocal drawn
        for size in cuts:
            yield pa.record_batch({"x": list(range(drawn, drawn + size))})
            drawn += size

    seen: list[int] = []
    sizes = []
    for part in in_slices(batches(), rows):
        seen += part.column("x").to_pylist()
        sizes.append(part.num_rows)
        assert drawn <= len(seen) + max(cuts)
    assert seen == list(range(10))
    assert sizes == [rows] * (10 // rows) + ([10 % rows] if 10 % rows else [])
