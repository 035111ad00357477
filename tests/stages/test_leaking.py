"""Leaks in prepare: what is on both sides of a split is counted and named, with what to do; a sound split says nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlpipe.errors import DataError
from mlpipe.spec import load_pipeline
from tests.helpers import chain, small, states, table_csv, write_pipeline


def results(file: Path, folder: Path) -> dict[str, Any]:
    """Of prepare."""
    return dict(chain(file, folder / "runs", until="prepare")["prepare"].manifest.results)


def people(folder: Path, **changes: Any) -> Path:
    """40 patients with 6 rows each, a sex of their own, a measurement and a label."""
    dice = np.random.default_rng(3)
    lines = ["patient_id,sex,x,label"]
    for i in range(240):
        lines.append(f"p{i % 40:02d},{'fm'[i % 40 % 2]},{dice.normal():.5f},{'no' if dice.random() < 0.6 else 'yes'}")
    (folder / "train.csv").write_text("\n".join(lines) + "\n")
    features = [{"kind": "numeric", "columns": ["x"]}, {"kind": "category", "columns": ["sex"]}]
    return small(folder, prepare__features=features, **changes)


def test_rows_of_one_patient_on_both_sides_are_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Although the pipeline does not use the column; the advice can be pasted, and then nothing is said."""
    told = results(people(tmp_path), tmp_path)
    (fault,) = told["leaks"]["groups"]["found"]
    assert "rows of the same patient_id are in train and test" in fault
    assert "patient_id determines sex" in fault
    assert fault.endswith("use split: {kind: group, by: [patient_id]}")
    figures = told["leaks"]["groups"]["patient_id"]
    assert (figures["groups"], figures["rows"]) == (40, 240)
    assert "warning: leak? rows of the same patient_id" in capsys.readouterr().err
    again = results(people(tmp_path, prepare__split={"kind": "group", "by": ["patient_id"], "valid": 0.2, "test": 0.2}), tmp_path)
    assert again["leaks"]["groups"]["found"] == []
    assert "leak?" not in capsys.readouterr().err


def test_levels(tmp_path: Path) -> None:
    """`fail` ends with 3 and leaves the old result; `off` does not look; a change re-runs prepare alone."""
    chain(people(tmp_path), tmp_path / "runs", until="train")
    file = people(tmp_path, prepare__leaks={"groups": "fail"})
    with pytest.raises(DataError, match="the test would look better") as fault:
        chain(file, tmp_path / "runs", until="train")
    assert fault.value.exit_code == 3
    assert "groups: rows of the same patient_id" in str(fault.value)
    assert (tmp_path / "runs/small/prepare/manifest.json").is_file()
    outcomes = chain(people(tmp_path, prepare__leaks={"groups": "off"}), tmp_path / "runs", until="train")
    assert states(outcomes) == {"prepare": "ran", "train": "moved"}
    assert outcomes["prepare"].manifest.results["leaks"]["groups"] == {"level": "off"}


def test_twins_in_a_test_source_are_counted_and_placed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Five copied rows, by their lines in both files; a random split alone keeps equal rows together."""
    table_csv(tmp_path / "train.csv", 200)
    table_csv(tmp_path / "test.csv", 50, start=500)
    lines = (tmp_path / "train.csv").read_text().splitlines()
    old = {row for row in (tmp_path / "test.csv").read_text().splitlines()[1:] if row in set(lines)}
    source = [f"{i + 0.123},{i},red,no" for i in range(5)]
    (tmp_path / "train.csv").write_text("\n".join([lines[0], *source, *lines[1:]]) + "\n")
    text = [row for row in (tmp_path / "test.csv").read_text().splitlines() if row not in old]
    (tmp_path / "test.csv").write_text("\n".join([*text, *source]) + "\n")
    test = {"kind": "csv", "path": "test.csv"}
    file = small(tmp_path, prepare__test=test, prepare__split={"kind": "random", "valid": 0.0})
    found = results(file, tmp_path)["leaks"]["duplicates"]
    assert found["test_rows_in_train"] == 5
    assert f"5 of {len(text) + 4} test rows" in found["found"][0]
    assert found["first"][0] == f"test.csv, line {len(text) + 1} (test) equals train.csv, line 2 (train)"
    assert "leak? 5 of" in capsys.readouterr().err
    with pytest.raises(DataError, match="duplicates: 5 of"):
        chain(file, tmp_path / "runs", until="prepare", overrides=["prepare.leaks.duplicates=fail"])


@pytest.mark.parametrize("split", [{"kind": "random"}, {"kind": "random", "stratify": True}])
def test_a_random_split_of_repeated_rows_has_no_twins(tmp_path: Path, split: dict[str, Any]) -> None:
    """Every row four times: none crosses, and nothing is said."""
    lines = table_csv(tmp_path / "train.csv", 100).read_text().splitlines()
    (tmp_path / "train.csv").write_text("\n".join([lines[0], *lines[1:] * 4]) + "\n")
    assert results(small(tmp_path, prepare__split=split), tmp_path)["leaks"]["duplicates"]["found"] == []
    found = results(small(tmp_path, prepare__split={"kind": "order"}), tmp_path)["leaks"]["duplicates"]
    assert found["test_rows_in_train"] == 80


def test_rows_that_differ_in_nothing_but_their_class_are_a_note(tmp_path: Path) -> None:
    """Counted, with two lines."""
    lines = table_csv(tmp_path / "train.csv", 100).read_text().splitlines()
    pair = ["77.5,3,red,no", "77.5,3,red,yes"]
    (tmp_path / "train.csv").write_text("\n".join([lines[0], *pair, *lines[1:]]) + "\n")
    told = results(small(tmp_path, prepare__split={"kind": "order"}), tmp_path)
    (note,) = [note for note in told["notes"] if "another class" in note]
    assert note.startswith(
        "2 of 72 train rows have the same features as a row of another class, such as train.csv, line 2 and train.csv, line 3"
    )


def test_test_rows_before_train_rows(tmp_path: Path) -> None:
    """A test file that overlaps in time is told, with counts and lines; a time split has no future in train."""
    head = "day,x,y"
    rows = [f"2024-{1 + i // 28:02d}-{1 + i % 28:02d},{i % 7},{(i * 37) % 11}" for i in range(200)]
    (tmp_path / "train.csv").write_text("\n".join([head, *rows[:150]]) + "\n")
    (tmp_path / "test.csv").write_text("\n".join([head, *rows[140:]]) + "\n")
    base: dict[str, Any] = {
        "task": {"kind": "regression", "target": "y"},
        "prepare__features": [{"kind": "numeric", "columns": ["x"]}, {"kind": "datetime", "columns": ["day"]}],
        "prepare__leaks": {"duplicates": "off"},
    }
    split = {"kind": "time", "by": "day", "valid": 0.0}
    found = results(small(tmp_path, **base, prepare__test={"kind": "csv", "path": "test.csv"}, prepare__split=split), tmp_path)["leaks"][
        "time"
    ]
    assert found["day"] == {"newest_train": "2024-06-10T00:00:00", "test_rows": 60, "test_rows_before_it": 9}
    assert found["found"][0].startswith("9 of 60 test rows are earlier in 'day' than the newest train row (2024-06-10T00:00:00)")
    assert found["first"] == ["test.csv, line 2", "test.csv, line 3", "test.csv, line 4"]
    alone = results(small(tmp_path, **base, prepare__split={"kind": "time", "by": "day"}), tmp_path)["leaks"]["time"]
    assert alone["found"] == []
    assert alone["day"]["test_rows_before_it"] == 0
    shuffled = results(small(tmp_path, **base, prepare__split={"kind": "random"}), tmp_path)
    assert shuffled["leaks"]["time"]["found"] == []
    assert any("split: {kind: time, by: day}" in note for note in shuffled["notes"])


def test_features_that_give_the_target_away(tmp_path: Path) -> None:
    """A code of the label; two columns that add up to the target."""
    lines = table_csv(tmp_path / "train.csv", 400).read_text().splitlines()
    coded = [f"{line},{'J' if line.endswith('yes') else 'N'}" for line in lines[1:]]
    (tmp_path / "train.csv").write_text("\n".join([lines[0] + ",paid", *coded]) + "\n")
    features = [{"kind": "numeric", "columns": ["x1", "x2"]}, {"kind": "category", "columns": ["colour", "paid"]}]
    (fault,) = results(small(tmp_path, prepare__features=features), tmp_path)["leaks"]["giveaway"]["found"]
    assert fault.startswith("paid alone tells 100.00% of")
    dice = np.random.default_rng(0)
    rows = [(a, b, a + b) for a, b in dice.integers(0, 300, (400, 2)).tolist()]
    (tmp_path / "train.csv").write_text("a,b,n\n" + "".join(f"{a},{b},{n}\n" for a, b, n in rows))
    file = small(tmp_path, task={"kind": "regression", "target": "n"}, prepare__features=[{"kind": "numeric", "columns": ["a", "b"]}])
    (fault,) = results(file, tmp_path)["leaks"]["giveaway"]["found"]
    assert fault.startswith("n = a + b in 100.0% of")


def test_a_column_of_lists_that_is_not_used_is_no_trouble(tmp_path: Path) -> None:
    """The search reads along what is called like an id; it does not fail on what it cannot read."""
    import pyarrow as pa
    from pyarrow import parquet as pq

    columns = {"document": [[1, 2]] * 100, "x1": [float(i % 9) for i in range(100)], "label": ["no", "yes"] * 50}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    features = [{"kind": "numeric", "columns": ["x1"]}]
    results(small(tmp_path, prepare__source={"kind": "parquet", "path": "t.parquet"}, prepare__features=features), tmp_path)


def test_equal_work_gives_equal_bytes(tmp_path: Path) -> None:
    """With everything looked for."""
    from tests.helpers import manifests_of

    file = people(tmp_path)
    results(file, tmp_path)
    before = manifests_of(tmp_path / "runs/small")
    chain(file, tmp_path / "runs", until="prepare", force=True)
    assert manifests_of(tmp_path / "runs/small") == before


# ---- real data


@pytest.mark.data
def test_a_random_split_of_the_parkinsons_data_warns(tmp_path: Path, shared_data: Path) -> None:
    """42 people, 5,875 recordings."""
    source = {"kind": "csv", "path": str(shared_data / "parkinsons_telemonitoring/parkinsons_updrs.data"), "delimiter": "\t"}
    settings = {
        "name": "p",
        "task": {"kind": "regression", "target": "total_UPDRS"},
        "prepare": {"source": source, "features": [{"kind": "numeric", "columns": ["age", "sex", "HNR", "PPE"]}]},
    }
    file = write_pipeline(tmp_path / "p.yaml", settings)
    (fault,) = results(file, tmp_path)["leaks"]["groups"]["found"]
    assert "rows of the same subject# are in train and test" in fault
    advice = fault.partition("use split: ")[2]
    load_pipeline(file, [f"prepare.split={advice}"])
    manifest = chain(file, tmp_path / "runs", until="prepare", overrides=[f"prepare.split={advice}"])["prepare"].manifest
    assert manifest.results["leaks"]["groups"]["found"] == []


@pytest.mark.data
def test_a_time_split_of_the_pollution_data_has_no_future_in_train(tmp_path: Path, shared_data: Path) -> None:
    """Its four columns of time made one."""
    lines = (shared_data / "time_series/pollution.csv").read_text().splitlines()
    cells = [line.split(",") for line in lines[1:] if line.split(",")[5] != "NA"]
    made = [f"{c[1]}-{int(c[2]):02d}-{int(c[3]):02d}T{int(c[4]):02d}:00:00,{c[5]},{c[6]},{c[7]}" for c in cells]
    (tmp_path / "p.csv").write_text("at,pm,dewp,temp\n" + "\n".join(made) + "\n")
    settings = {
        "name": "p",
        "task": {"kind": "regression", "target": "pm"},
        "prepare": {
            "source": {"kind": "csv", "path": "p.csv"},
            "split": {"kind": "time", "by": "at"},
            "features": [{"kind": "numeric", "columns": ["dewp", "temp"]}, {"kind": "datetime", "columns": ["at"]}],
        },
    }
    told = results(write_pipeline(tmp_path / "p.yaml", settings), tmp_path)
    assert told["leaks"]["time"]["at"]["test_rows_before_it"] == 0
    assert told["leaks"]["time"]["at"]["test_rows"] > 8000
    assert all(told["leaks"][name]["found"] == [] for name in ("duplicates", "groups", "time", "giveaway"))


@pytest.mark.data
@pytest.mark.parametrize("name", ["adult", "ames", "auto_mpg", "bike", "breast_cancer", "california", "penguins"])
def test_the_pipelines_that_ship_raise_no_alarm(name: str, tmp_path: Path, shared_data: Path) -> None:
    """A wrong alarm is worse than none."""
    root = Path(__file__).resolve().parents[2]
    (tmp_path / "pipelines").mkdir()
    file = tmp_path / "pipelines" / f"{name}.yaml"
    file.write_text((root / "pipelines" / f"{name}.yaml").read_text())
    (tmp_path / "data").mkdir()
    for folder in [*(root / "data").iterdir(), *shared_data.iterdir()]:
        if folder.is_dir() and not (tmp_path / "data" / folder.name).exists():
            (tmp_path / "data" / folder.name).symlink_to(folder)
    for kind, found in results(file, tmp_path)["leaks"].items():
        assert found["found"] == [], kind


@pytest.mark.data
def test_titanic_is_quiet_and_bike_with_its_parts_is_not(tmp_path: Path, shared_data: Path) -> None:
    """casual + registered = cnt."""
    base = {"name": "t", "task": {"kind": "classification", "target": "Survived"}}
    features = [
        {"kind": "numeric", "columns": ["Age", "Fare", "Pclass"]},
        {"kind": "category", "columns": ["Sex", "Embarked", "Ticket", "Cabin"]},
    ]
    source = {"kind": "csv", "path": str(shared_data / "titanic/titanic.csv")}
    told = results(write_pipeline(tmp_path / "t.yaml", {**base, "prepare": {"source": source, "features": features}}), tmp_path)
    assert all(found["found"] == [] for found in told["leaks"].values())
    base = {"name": "b", "task": {"kind": "regression", "target": "cnt"}}
    features = [{"kind": "numeric", "columns": ["temp", "hr", "casual", "registered"]}]
    source = {"kind": "csv", "path": str(shared_data / "bike_sharing/hour.csv")}
    told = results(write_pipeline(tmp_path / "b.yaml", {**base, "prepare": {"source": source, "features": features}}), tmp_path)
    assert "cnt = casual + registered in 100.0%" in told["leaks"]["giveaway"]["found"][0]
