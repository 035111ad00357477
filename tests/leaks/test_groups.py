"""Columns that name a person or thing: found by name and by evidence, and no alarm where there is none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv as arrow_csv

from mlpipe.leaks.groups import Crossing, group_columns, names_entity


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("subject#", "certain"),
        ("patient_id", "certain"),
        ("CustomerID", "certain"),
        ("customerid", "certain"),
        ("User No.", "certain"),
        ("id", "certain"),
        ("device_id", "certain"),
        ("user", "perhaps"),
        ("session", "perhaps"),
        ("households", None),
        ("engine_code", None),
        ("user_rating", None),
        ("number_of_customers", None),
        ("idea", None),
        ("age", None),
        ("grid", None),
    ],
)
def test_names(name: str, expected: str | None) -> None:
    """An id says so; a bare word may be a kind; a count, a rating, a code are no names."""
    assert names_entity(name) == expected


def people(rows: int = 600, each: int = 10, name: str = "patient_id") -> pa.Table:
    """Patients with an age and a sex of their own, and a measurement."""
    dice = np.random.default_rng(0)
    who = np.repeat(np.arange(rows // each), each)
    age, sex = dice.integers(20, 40, rows // each)[who], dice.integers(0, 2, rows // each)[who]
    order = dice.permutation(rows)
    columns = {
        name: who[order],
        "age": age[order].astype(float),
        "sex": pa.array(sex[order]).cast(pa.string()),
        "x": dice.normal(size=rows),
    }
    return pa.table(columns)


def test_a_patient_is_found_with_what_it_determines() -> None:
    """By its name; a number, a text or a dictionary."""
    for kind in (pa.float64(), pa.string(), pa.dictionary(pa.int32(), pa.string())):
        table = people()
        column = table.column(0).cast(pa.string()) if "string" in str(kind) else table.column(0).cast(kind)
        table = table.set_column(0, "patient_id", column.dictionary_encode() if pa.types.is_dictionary(kind) else column)
        (found,) = group_columns(table)
        assert (found.column, found.rows, found.groups, found.named, found.determines) == ("patient_id", 600, 60, True, ("age", "sex"))


def test_without_a_telling_name_it_takes_more_evidence() -> None:
    """Two other columns that it determines; then it is found too, and said not to be named."""
    (found,) = group_columns(people(name="code"))
    assert (found.column, found.named) == ("code", False)
    assert group_columns(people(name="code").drop_columns(["sex"])) == []


def test_a_bare_word_that_determines_nothing_is_a_count_or_a_kind() -> None:
    """`household` of 1 to 9 persons."""
    dice = np.random.default_rng(1)
    table = pa.table({"household": dice.integers(1, 10, 500), "x": dice.normal(size=500), "c": dice.integers(0, 3, 500)})
    assert group_columns(table) == []


def test_row_numbers_dates_and_ignored_columns_are_none() -> None:
    """An id with a row each repeats nothing."""
    table = people()
    assert group_columns(table, ignore=["patient_id"]) == []
    once = pa.table({"id": np.arange(200), "x": np.arange(200.0)})
    assert group_columns(once) == []
    days = pa.table({"user": [f"2024-01-{1 + i % 28:02d}" for i in range(400)], "n": [float(i % 28 // 7) for i in range(400)]})
    assert group_columns(days) == []
    assert group_columns([]) == []


@pytest.mark.data
@pytest.mark.parametrize(
    ("file", "delimiter", "expected"),
    [
        ("parkinsons_telemonitoring/parkinsons_updrs.data", "\t", ["subject#"]),
        ("xsid_intents/xsid_intents.csv", ",", ["id"]),
        ("adult/adult-train.csv", ",", []),
        ("ames_housing/ames.csv", ",", []),
        ("california_housing/housing.csv", ",", []),
        ("titanic/titanic.csv", ",", []),
        ("telco_churn/Telco-Customer-Churn.csv", ",", []),
        ("bike_sharing/hour.csv", ",", []),
        ("penguins/penguins.csv", ",", []),
        ("penguins/penguins-raw.csv", ",", []),
        ("time_series/pollution.csv", ",", []),
    ],
)
def test_real_data(file: str, delimiter: str, expected: list[str], shared_data: Path) -> None:
    """42 people and 500 sentences are found; where rows are independent nothing is said."""
    if not (shared_data / file).is_file():
        pytest.skip(f"{file} is absent")
    table = arrow_csv.read_csv(shared_data / file, parse_options=arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True))
    table = table.rename_columns(
        [f"{name}_{i}" if table.column_names.count(name) > 1 else name for i, name in enumerate(table.column_names)]
    )
    assert [found.column for found in group_columns(table)] == expected


def test_crossing_counts_by_hand() -> None:
    """Groups 1 and 2 on both sides, 3 in train, 4 in test; the chunks do not matter."""
    groups = np.array([1, 1, 2, 2, 2, 3, 3, 4, 4, 4], dtype=np.uint64)
    codes = np.array([0, 2, 0, 1, 2, 0, 0, 2, 2, 2], dtype=np.uint8)
    for cuts in ([10], [3, 10], [1, 2, 5, 10]):
        crossing, start = Crossing(), 0
        for end in cuts:
            crossing.add(groups[start:end], codes[start:end])
            start = end
        assert crossing.found() == {"groups": 4, "rows": 10, "groups_on_both_sides": 2, "test_rows": 5, "test_rows_of_them": 2}


def test_crossing_is_bounded_and_its_sample_fair() -> None:
    """40,000 groups in room for 1,000: the figures are within a tenth."""
    from mlpipe.columns import row_hash

    dice = np.random.default_rng(2)
    who = dice.integers(0, 40_000, 400_000)
    codes = (dice.random(400_000) < 0.2).astype(np.uint8) * 2
    crossing = Crossing(most=1000)
    for start in range(0, 400_000, 50_000):
        batch = pa.record_batch({"u": pa.array(who[start : start + 50_000].astype(float))})
        crossing.add(row_hash(batch, ["u"], 0), codes[start : start + 50_000])
        assert len(crossing.keys) <= 1000
    told = crossing.found()
    assert told["groups"] == pytest.approx(40_000, rel=0.1)
    assert told["test_rows"] == pytest.approx(80_000, rel=0.1)
    assert told["test_rows_of_them"] / told["test_rows"] > 0.95
    assert crossing.crosses()
