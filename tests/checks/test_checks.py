"""Checks: each kind passes and fails with exact counts, values and files' lines; all are told together; nothing is published."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlpipe.checks import AnyCheck
from mlpipe.errors import DataError, SpecError
from mlpipe.spec import load_pipeline
from mlpipe.stages.kinds import kind_of, members
from tests.helpers import chain, manifests_of, mlpipe, small, states, table_csv

FAR = "2999-01-01"


def table(folder: Path, rows: int = 120) -> Path:
    """`table_csv` with an id, a postcode and a day; row i stands on line i + 2."""
    text = table_csv(folder / "train.csv", rows).read_text().splitlines()
    day = datetime(2024, 1, 1, tzinfo=UTC)
    lines = [f"{line},{i},{10000 + i},{(day + timedelta(days=i)).date()}" for i, line in enumerate(text[1:])]
    (folder / "train.csv").write_text("\n".join([f"{text[0]},id,zip,day", *lines]) + "\n")
    return folder / "train.csv"


def put(file: Path, line: int, column: str, value: str) -> None:
    """Writes a cell; line 1 is the header."""
    lines = file.read_text().splitlines()
    cells = lines[line - 1].split(",")
    cells[lines[0].split(",").index(column)] = value
    lines[line - 1] = ",".join(cells)
    file.write_text("\n".join(lines) + "\n")


def prepared(folder: Path, *checks: dict[str, Any], **changes: Any) -> list[dict[str, Any]]:
    """What prepare's manifest says of the checks."""
    file = small(folder, prepare__checks=list(checks), **changes)
    return list(chain(file, folder / "runs", until="prepare")["prepare"].manifest.results["checks"])


def refused(folder: Path, *checks: dict[str, Any], **changes: Any) -> str:
    """What prepare says when it refuses."""
    with pytest.raises(DataError) as fault:
        prepared(folder, *checks, **changes)
    assert fault.value.exit_code == 3
    assert not (folder / "runs" / changes.get("name", "small") / "prepare").exists()
    return str(fault.value)


PASSING: list[dict[str, Any]] = [
    {"kind": "unique", "columns": ["id"]},
    {"kind": "unique", "columns": ["colour", "id"]},
    {"kind": "range", "columns": ["x1"], "at_least": 0, "at_most": 9.9},
    {"kind": "range", "columns": "zip", "at_least": 10000, "at_most": 10119},
    {"kind": "range", "column": "day", "at_least": "2024-01-01", "at_most": "2024-04-29"},
    {"kind": "allowed", "columns": ["colour"], "values": ["red", "green", "blue"]},
    {"kind": "pattern", "columns": ["zip"], "pattern": "1[0-9]{4}"},
    {"kind": "missing", "columns": ["x2"], "at_most": 10 / 120},
    {"kind": "not_missing", "columns": ["x1", "label"]},
    {"kind": "rows", "at_least": 120, "at_most": 120},
    {"kind": "balance", "at_least": 0.2, "at_most": 0.8},
    {"kind": "fresh", "columns": ["day"], "max_age": "2d", "as_of": "2024-05-01"},
]


def test_every_kind_is_here_once_at_least() -> None:
    """A new kind is tested the day it is listed."""
    assert {check["kind"] for check in PASSING} == {kind_of(member) for member in members(AnyCheck)}


def test_checks_that_hold_are_in_the_manifest(tmp_path: Path) -> None:
    """With kind, columns, level and figures, in their order; columns that only they name are no features and not written."""
    table(tmp_path)
    found = prepared(tmp_path, *PASSING)
    assert [entry["kind"] for entry in found] == [check["kind"] for check in PASSING]
    assert all(entry["passed"] is True and entry["level"] == "fail" and entry["first"] == [] for entry in found)
    assert found[0]["observed"] == {"rows": 120, "incomplete_keys": 0, "distinct": 120, "repeated": 0}
    assert found[2]["observed"] == {"x1": {"cells": 120, "at_fault": 0}}
    assert found[7]["observed"] == {"x2": {"rows": 120, "missing": 10, "share": 10 / 120}}
    assert found[9]["observed"] == {"rows": 120}
    assert found[11]["observed"]["day"]["newest"] == "2024-04-29T00:00:00"
    from pyarrow import parquet as pq

    assert pq.read_schema(tmp_path / "runs/small/prepare/train.parquet").names == ["x1", "x2", "colour", "label"]


def test_repeated_keys_are_named_with_both_lines(tmp_path: Path) -> None:
    """Two repeats of one id, one of another; a missing id is no repeat."""
    file = table(tmp_path)
    for line, value in ((9, "3"), (100, "3"), (101, "50"), (110, ""), (111, "")):
        put(file, line, "id", value)
    told = refused(tmp_path, {"kind": "unique", "columns": ["id"]})
    assert "1 check of the data failed" in told
    assert "unique (id): 3 of 118 rows repeat the key (id) of an earlier row" in told
    assert "train.csv, line 9: id = '3' as in train.csv, line 5" in told
    assert "train.csv, line 100: id = '3' as in train.csv, line 5" in told
    assert "train.csv, line 101: id = '50' as in train.csv, line 52" in told


def test_a_compound_key_repeats_only_as_a_whole(tmp_path: Path) -> None:
    """Equal parts apart do not count."""
    file = table(tmp_path)
    put(file, 3, "id", "0")
    prepared(tmp_path, {"kind": "unique", "columns": ["id", "zip"]})
    put(file, 3, "zip", "10000")
    (told,) = [
        line for line in refused(tmp_path / ".", {"kind": "unique", "columns": ["id", "zip"]}, name="other").splitlines() if "as in" in line
    ]
    assert told.strip() == "train.csv, line 3: id = '0', zip = '10000' as in train.csv, line 2"


def test_cells_out_of_range_are_counted_and_named(tmp_path: Path) -> None:
    """A feature, a column that is only checked (with a cell that is no number), and times."""
    file = table(tmp_path)
    put(file, 7, "x1", "-1")
    put(file, 8, "x1", "10.5")
    put(file, 9, "zip", "many")
    put(file, 10, "zip", "")
    put(file, 11, "day", "2031-01-01")
    put(file, 12, "day", "yesterday")
    told = refused(
        tmp_path,
        {"kind": "range", "columns": ["x1"], "at_least": 0, "at_most": 9.9},
        {"kind": "range", "columns": ["zip"], "at_least": 1},
        {"kind": "range", "columns": ["day"], "at_most": "2024-12-31"},
    )
    assert "3 checks of the data failed" in told
    assert "2 of 120 cells of 'x1' are below 0.0 or above 9.9" in told
    assert "train.csv, line 7: column 'x1': -1.0" in told
    assert "train.csv, line 8: column 'x1': 10.5" in told
    assert "1 of 119 cells of 'zip'" in told
    assert "train.csv, line 9: column 'zip': 'many'" in told
    assert "2 of 120 cells of 'day'" in told
    assert "train.csv, line 11: column 'day': '2031-01-01'" in told
    assert "train.csv, line 12: column 'day': 'yesterday'" in told


def test_values_and_patterns(tmp_path: Path) -> None:
    """What is not listed; what does not match as a whole."""
    file = table(tmp_path)
    put(file, 5, "colour", "mauve")
    put(file, 6, "zip", "100001")
    put(file, 7, "zip", "x10001")
    told = refused(
        tmp_path,
        {"kind": "allowed", "columns": ["colour"], "values": ["red", "green", "blue"]},
        {"kind": "pattern", "columns": ["zip"], "pattern": "[0-9]{5}"},
    )
    assert "1 of" in told and "cells of 'colour' are none of the 3 allowed values" in told
    assert "train.csv, line 5: column 'colour': 'mauve'" in told
    assert "2 of 120 cells of 'zip' do not match '[0-9]{5}'" in told
    assert "train.csv, line 6: column 'zip': '100001'" in told


def test_allowed_numbers_are_compared_as_what_the_column_is(tmp_path: Path) -> None:
    """1 is `1` in a text and 1.0 in a number."""
    file = table(tmp_path)
    for line in range(2, 122):
        put(file, line, "zip", str(line % 3))
        put(file, line, "x1", str(line % 3))
    both = {"kind": "allowed", "columns": ["zip", "x1"], "values": [0, 1, 2]}
    assert prepared(tmp_path, both, prepare__leaks={"giveaway": "off"})[0]["passed"]
    told = refused(tmp_path, {**both, "values": [0, 1]}, name="other")
    assert "40 of 120 cells of 'zip'" in told
    assert "40 of 120 cells of 'x1'" in told


def test_missing_cells_sizes_and_balance(tmp_path: Path) -> None:
    """Shares are shown beside what is allowed."""
    file = table(tmp_path)
    classes = [line.split(",")[3] for line in file.read_text().splitlines()[1:]]
    yes = classes.count("yes")
    told = refused(
        tmp_path,
        {"kind": "missing", "columns": ["x2"], "at_most": 0.05},
        {"kind": "not_missing", "columns": ["x2"]},
        {"kind": "rows", "at_least": 121},
        {"kind": "rows", "at_most": 100},
        {"kind": "balance", "at_least": 0.499},
    )
    assert "5 checks of the data failed" in told
    assert "10 of 120 cells of 'x2' are missing (0.08333); at most 0.05 may be" in told
    assert "train.csv, line 2: column 'x2' is missing" in told
    assert "120 rows; wanted: at least 121" in told
    assert "120 rows; wanted: at most 100" in told
    assert f"({min(yes, 120 - yes)} of 120 rows), below 0.499" in told


def test_a_row_without_a_target_is_seen_by_the_checks(tmp_path: Path) -> None:
    """They look before rows are dropped."""
    file = table(tmp_path)
    put(file, 20, "label", "")
    drop = {"task": {"kind": "classification", "target": "label", "missing_target": "drop"}}
    assert prepared(tmp_path, {"kind": "rows", "at_least": 120}, **drop)[0]["observed"] == {"rows": 120}
    assert "1 of 120 cells of 'label' are missing" in refused(tmp_path, {"kind": "not_missing", "columns": ["label"]}, name="other", **drop)


def test_rows_of_two_files_are_one_table_with_places_of_their_own(tmp_path: Path) -> None:
    """A key that stands in both."""
    lines = table(tmp_path).read_text().splitlines()
    (tmp_path / "a.csv").write_text("\n".join(lines[:61]) + "\n")
    (tmp_path / "b.csv").write_text("\n".join([lines[0], *lines[61:]]) + "\n")
    put(tmp_path / "b.csv", 4, "id", "7")
    told = refused(tmp_path, {"kind": "unique", "columns": ["id"]}, prepare__source={"kind": "csv", "path": ["a.csv", "b.csv"]})
    assert "b.csv, line 4: id = '7' as in a.csv, line 9" in told


@pytest.mark.parametrize("split", [{"kind": "random", "stratify": True}, {"kind": "order"}])
def test_checks_see_the_same_rows_under_every_split(tmp_path: Path, split: dict[str, Any]) -> None:
    """Also where the rows come from the spool of a first look."""
    file = table(tmp_path)
    put(file, 30, "id", "3")
    told = refused(tmp_path, {"kind": "unique", "columns": ["id"]}, prepare__split=split)
    assert "train.csv, line 30: id = '3' as in train.csv, line 5" in told


def test_a_test_source_is_checked_apart(tmp_path: Path) -> None:
    """Each finding says which; what the test source lacks is said; sizes and ages are those of the source."""
    table(tmp_path)
    lines = (tmp_path / "train.csv").read_text().splitlines()
    (tmp_path / "test.csv").write_text("\n".join([lines[0].replace(",id", ",nr"), *lines[1:30]]) + "\n")
    put(tmp_path / "test.csv", 3, "x1", "77")
    checks = [{"kind": "range", "columns": ["x1"], "at_most": 10}, {"kind": "unique", "columns": ["id"]}, {"kind": "rows", "at_least": 100}]
    test = {"kind": "csv", "path": "test.csv"}
    told = refused(tmp_path, *checks, prepare__test=test)
    assert "range (x1) in the test source: 1 of 29 cells" in told
    assert "test.csv, line 3: column 'x1': 77.0" in told
    checks[0]["level"] = "warn"
    file = small(tmp_path, prepare__checks=checks, prepare__test=test)
    results = chain(file, tmp_path / "runs", until="prepare")["prepare"].manifest.results
    made = [(entry["kind"], entry["source"], entry["passed"]) for entry in results["checks"]]
    assert made == [("range", "source", True), ("unique", "source", True), ("rows", "source", True), ("range", "test source", False)]
    assert any("unique (id) is not made on the test source, which has no 'id'" in note for note in results["notes"])


def test_a_warning_is_said_and_noted_and_does_not_end_prepare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With its level in the manifest."""
    file = table(tmp_path)
    put(file, 7, "x1", "-1")
    (entry,) = prepared(tmp_path, {"kind": "range", "columns": ["x1"], "at_least": 0, "level": "warn"})
    assert (entry["passed"], entry["level"], entry["at_least"]) == (False, "warn", 0.0)
    assert entry["first"] == ["train.csv, line 7: column 'x1': -1.0"]
    assert "warning: check range (x1): 1 of 120 cells of 'x1'" in capsys.readouterr().err


def test_a_failed_check_leaves_the_old_result(tmp_path: Path) -> None:
    """To the byte; and a changed check re-runs prepare alone."""
    file = table(tmp_path)
    first = {"kind": "unique", "columns": ["id"]}
    chain(small(tmp_path, prepare__checks=[first]), tmp_path / "runs", until="train")
    before = manifests_of(tmp_path / "runs/small")
    put(file, 30, "id", "3")
    with pytest.raises(DataError, match="check"):
        chain(small(tmp_path, prepare__checks=[first]), tmp_path / "runs", until="train")
    assert manifests_of(tmp_path / "runs/small") == before
    outcomes = chain(small(tmp_path, prepare__checks=[{**first, "level": "warn"}]), tmp_path / "runs", until="train")
    assert states(outcomes) == {"prepare": "ran", "train": "moved"}


# ---- fresh


def test_what_is_too_old_fails_also_when_nothing_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The manifest has no clock: it is fresh, and the run ends with 3 all the same."""
    from mlpipe.stages import watch

    table(tmp_path)
    file = small(tmp_path, prepare__checks=[{"kind": "fresh", "column": "day", "max_age": "2d"}])
    monkeypatch.setattr(watch, "_now", lambda: "2024-04-30T12:00:00+00:00")
    manifest = chain(file, tmp_path / "runs", until="prepare")["prepare"].manifest
    assert manifest.results["checks"][0]["passed"] is None
    bytes_before = manifests_of(tmp_path / "runs/small")
    monkeypatch.setattr(watch, "_now", lambda: "2024-05-01T00:00:00+00:00")
    assert states(chain(file, tmp_path / "runs", until="prepare")) == {"prepare": "fresh"}
    monkeypatch.setattr(watch, "_now", lambda: "2024-05-01T00:00:01+00:00")
    with pytest.raises(DataError, match="the data are too old") as fault:
        chain(file, tmp_path / "runs", until="prepare")
    assert "the newest 'day' is 2024-04-29T00:00:00, 2.00001d before now (2024-05-01T00:00:01+00:00); allowed is 2d" in str(fault.value)
    assert manifests_of(tmp_path / "runs/small") == bytes_before
    with pytest.raises(DataError, match="allowed is 2d"):
        chain(file, tmp_path / "runs", until="prepare", force=True)


def test_a_stale_warning_keeps_the_clock_out_of_the_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is said on stderr each time; equal work gives equal bytes."""
    from mlpipe.stages import watch

    table(tmp_path)
    seen = []
    for year in (2030, 2031):
        monkeypatch.setattr(watch, "_now", lambda year=year: f"{year}-01-01T00:00:00+00:00")
        file = small(tmp_path, prepare__checks=[{"kind": "fresh", "column": "day", "max_age": "2d", "level": "warn"}])
        chain(file, tmp_path / "runs", until="prepare", force=True)
        assert f"before now ({year}" in capsys.readouterr().err
        chain(file, tmp_path / "runs", until="prepare")
        assert f"before now ({year}" in capsys.readouterr().err
        seen.append(manifests_of(tmp_path / "runs/small"))
    assert seen[0] == seen[1]


def test_a_fixed_moment_and_cells_that_are_no_times(tmp_path: Path) -> None:
    """`as_of` needs no clock; a cell that is no time is a fault of its own."""
    file = table(tmp_path)
    told = refused(tmp_path, {"kind": "fresh", "column": "day", "max_age": "36h", "as_of": "2024-05-01"})
    assert "before 2024-05-01; allowed is 36h" in told
    put(file, 9, "day", "soon")
    told = refused(tmp_path, {"kind": "fresh", "column": "day", "max_age": "9w", "as_of": "2024-05-01"})
    assert "1 of 120 cells of 'day' are no times of the form 'iso'" in told
    assert "train.csv, line 9: column 'day': 'soon'" in told


def test_the_command_line_ends_with_3_when_nothing_changed_and_nothing_arrives(tmp_path: Path) -> None:
    """What cron sees; the data are of 2024."""
    table(tmp_path)
    file = small(tmp_path, prepare__checks=[{"kind": "fresh", "column": "day", "max_age": "20000d"}])
    assert mlpipe("prepare", file, "--runs", tmp_path / "runs").rc == 0
    file = small(tmp_path, prepare__checks=[{"kind": "fresh", "column": "day", "max_age": "2d"}])
    done = mlpipe("prepare", file, "--runs", tmp_path / "runs", "--json")
    assert done.rc == 3
    assert '"exit_code": 3' in done.out
    assert "the newest 'day' is 2024-04-29" in done.err


# ---- what the pipeline file may not say


@pytest.mark.parametrize(
    ("check", "words"),
    [
        ({"kind": "range", "columns": ["x1"]}, "at_least or at_most"),
        ({"kind": "range", "columns": ["x1"], "at_least": 3, "at_most": 2}, "no value would pass"),
        ({"kind": "range", "columns": ["x1"], "at_least": "2024-01-01"}, "its bounds must be numbers"),
        ({"kind": "range", "columns": ["x1"], "at_least": "soon"}, "neither a number nor a time"),
        ({"kind": "pattern", "columns": ["colour"], "pattern": "(a"}, "no regular expression"),
        ({"kind": "pattern", "columns": ["colour"], "pattern": "(?=a)a"}, "no regular expression"),
        ({"kind": "pattern", "columns": ["x1"], "pattern": "a"}, "a pattern is for text"),
        ({"kind": "allowed", "columns": ["x1"], "values": ["many"]}, "'many' is none"),
        ({"kind": "missing", "columns": ["x1"], "at_most": 1.5}, "less than or equal to 1"),
        ({"kind": "unique", "columns": ["x1", "x1"]}, "stands twice"),
        ({"kind": "unique", "columns": []}, "at least 1"),
        ({"kind": "rows"}, "at_least or at_most"),
        ({"kind": "fresh", "columns": ["day"], "max_age": "soon"}, "no span of time"),
        ({"kind": "fresh", "columns": ["x1"], "max_age": "2d"}, "fresh is for times"),
        ({"kind": "fresh", "columns": ["day"], "max_age": "2d", "as_of": "tomorrow"}, "no date or time"),
        ({"kind": "uniqe", "columns": ["x1"]}, "did you mean 'unique'"),
    ],
)
def test_checks_that_cannot_be_made_are_refused_with_the_file(tmp_path: Path, check: dict[str, Any], words: str) -> None:
    """By `mlpipe check`, before anything runs."""
    with pytest.raises(SpecError) as fault:
        load_pipeline(small(tmp_path, prepare__checks=[check]))
    assert words in str(fault.value)
    assert "prepare.checks" in str(fault.value)


def test_a_balance_of_numbers_is_refused(tmp_path: Path) -> None:
    """Only classes have one."""
    task = {"kind": "regression", "target": "x1"}
    features = [{"kind": "numeric", "columns": ["x2"]}]
    with pytest.raises(SpecError, match="only classes have a balance"):
        load_pipeline(small(tmp_path, task=task, prepare__features=features, prepare__checks=[{"kind": "balance", "at_least": 0.1}]))


def test_a_checked_column_that_is_not_there_is_named(tmp_path: Path) -> None:
    """By prepare and by check."""
    table(tmp_path)
    assert "column 'nr' is not in train.csv" in refused(tmp_path, {"kind": "unique", "columns": ["nr"]})


def test_an_expression_that_runs_for_hours_elsewhere_is_quick(tmp_path: Path) -> None:
    """RE2 takes time in proportion to the text: (a+)+b on 5,000 letters."""
    file = table(tmp_path)
    put(file, 4, "zip", "a" * 5000)
    told = refused(tmp_path, {"kind": "pattern", "columns": ["zip"], "pattern": "(a+)+b|[0-9]+"})
    assert "1 of 120 cells of 'zip'" in told


@given(st.lists(st.integers(0, 12), max_size=60), st.integers(1, 7))
def test_repeats_are_those_of_a_plain_count(values: list[int], size: int) -> None:
    """Whatever the chunks; the first rows at fault and the rows that had their keys first, by a dictionary."""
    import pyarrow as pa

    from mlpipe.base import NumberFormat
    from mlpipe.checks.base import SHOWN, Setting
    from mlpipe.checks.keys import Unique

    tally = Unique(columns=("k",)).tally(Setting("y", NumberFormat()))
    for start in range(0, len(values), size):
        chunk = pa.record_batch({"k": pa.array(values[start : start + size], pa.float64())})
        tally.look(chunk, "f", start)
    first: dict[int, int] = {}
    repeats = [(first[v], i) for i, v in enumerate(values) if first.setdefault(v, i) != i]
    finding = tally.finding()
    assert finding.observed == {"rows": len(values), "incomplete_keys": 0, "distinct": len(first), "repeated": len(repeats)}
    assert [(at.like, at.row) for at in finding.rows] == [(("f", before), row) for before, row in repeats[:SHOWN]]
    assert finding.passed is not bool(repeats)


def test_check_names_a_checked_column_that_the_source_lacks(tmp_path: Path) -> None:
    """Before anything runs."""
    from mlpipe.stages.check import check_sources

    table(tmp_path)
    with pytest.raises(DataError, match=r"'nr' is not in train\.csv"):
        check_sources(load_pipeline(small(tmp_path, prepare__checks=[{"kind": "unique", "columns": ["nr"]}])))
