"""What `init` makes of columns that belong together: names of persons and things, formulas of the target."""

from __future__ import annotations

import csv
import random
from pathlib import Path

from mlpipe.spec import load_pipeline
from mlpipe.stages.init import init


def made(folder: Path, columns: dict[str, list], target: str):
    with (folder / "x.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    report = init([folder / "x.csv"], target, output=folder / "x.yaml", force=True)
    return report, load_pipeline(folder / "x.yaml").spec


def test_the_id_of_a_person_with_several_rows_is_a_key_and_a_group_is_named(tmp_path):
    rng = random.Random(1)
    patients = [i % 25 for i in range(500)]
    columns = {
        "patient_id": [p + 100 for p in patients],
        "age": [40 + p for p in patients],
        "dose": [rng.random() for _ in patients],
        "y": [rng.random() + p for p in patients],
    }
    report, spec = made(tmp_path, columns, "y")
    assert spec.prepare.keys == ("patient_id",)
    assert spec.feature_columns() == ("age", "dose")
    assert "{kind: group, by: [patient_id], valid: 0.1, test: 0.2}" in report.text
    assert any("same patient_id" in line for line in report.summary)


def test_the_parts_that_a_target_is_made_of_are_left_out(tmp_path):
    rng = random.Random(2)
    casual, members = ([rng.randrange(500) for _ in range(300)] for _ in range(2))
    columns = {
        "hour": [rng.randrange(24) for _ in casual],
        "casual": casual,
        "members": members,
        "total": [a + b for a, b in zip(casual, members, strict=True)],
    }
    report, spec = made(tmp_path, columns, "total")
    assert spec.feature_columns() == ("hour",)
    assert "casual + members" in spec.prepare.ignore["casual"] or "members + casual" in spec.prepare.ignore["casual"]
    assert any("left out" in line and "total is" in line for line in report.summary)


def test_tables_without_groups_are_not_shouted_at(shared_data, tmp_path):
    for file, target in (
        ("ames_housing/ames.csv", "price"),
        ("california_housing/housing.csv", "median_house_value"),
        ("titanic/titanic.csv", "Survived"),
        ("telco_churn/Telco-Customer-Churn.csv", "Churn"),
        ("adult/adult-train.csv", "column_15"),
    ):
        report = init([shared_data / file], target, output=tmp_path / "x.yaml", force=True)
        assert "kind: group" not in report.text, file


def test_parkinsons_points_at_its_subjects(shared_data, tmp_path):
    file = shared_data / "parkinsons_telemonitoring" / "parkinsons_updrs.data"
    report = init([file], "motor_UPDRS", output=tmp_path / "x.yaml")
    assert 'by: ["subject#"]' in report.text
    assert load_pipeline(tmp_path / "x.yaml").spec.prepare.keys == ("subject#",)
