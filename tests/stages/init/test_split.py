"""How `init` parts rows that stand in the order of time."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlpipe.spec import load_pipeline
from mlpipe.splits.order import OrderSplit
from mlpipe.splits.random import RandomSplit
from mlpipe.splits.time import TimeSplit
from mlpipe.stages.init import init


def made(folder: Path, header: str, rows: list[str], target: str = "y"):
    (folder / "x.csv").write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    report = init([folder / "x.csv"], target, output=folder / "x.yaml", force=True)
    return report.text, load_pipeline(folder / "x.yaml").spec.prepare.split


def test_a_series_trains_on_the_past(tmp_path):
    rows = [f"2024-{i // 28 + 1:02}-{i % 28 + 1:02},{i % 7}.5,{i}.25" for i in range(60)]
    text, split = made(tmp_path, "when,x,y", rows)
    assert isinstance(split, TimeSplit) and split.by == "when"
    assert "later moment" in text
    rows = [f"{1 + i // 12}/{1990 + i},{i % 7}.5,{i}.25" for i in range(30)]
    _, split = made(tmp_path, "when,x,y", [f"{i % 12 + 1:02}/{1990 + i // 12},{i % 7}.5,{i}.25" for i in range(30)])
    assert isinstance(split, TimeSplit)


def test_parts_of_a_moment_in_columns_of_their_own(tmp_path):
    rows = [f"{2020 + i // 24},{i // 2 % 12 + 1},{i % 2 * 14 + 1},{i % 7}.5,{i}.25" for i in range(60)]
    _, split = made(tmp_path, "year,month,day,x,y", rows)
    assert isinstance(split, OrderSplit)


def test_several_rows_a_moment_are_parted_at_random_and_it_is_said(tmp_path):
    rows = [f"2024-01-{i // 3 + 1:02},{i % 7}.5,{i}.25" for i in range(60)]
    text, split = made(tmp_path, "when,x,y", rows)
    assert isinstance(split, RandomSplit)
    assert "order of time (when)" in text


@pytest.mark.parametrize("change", [30, 59])
def test_one_row_out_of_order_is_enough(tmp_path, change):
    rows = [f"2024-{i // 28 + 1:02}-{i % 28 + 1:02},{i % 7}.5,{i}.25" for i in range(60)]
    rows[change] = "2023-12-31" + rows[change][10:]
    text, split = made(tmp_path, "when,x,y", rows)
    assert isinstance(split, RandomSplit)
    assert "order of time" not in text


def test_the_order_holds_across_files(tmp_path):
    for name, days in (("a", range(1, 29)), ("b", range(1, 29))):
        lines = [f"2024-{'01' if name == 'a' else '02'}-{i:02},{i % 7}.5,{i}.25" for i in days]
        (tmp_path / f"{name}.csv").write_text("\n".join(["when,x,y", *lines]) + "\n", encoding="utf-8")
    for files, kind in ((("a", "b"), TimeSplit), (("b", "a"), RandomSplit)):
        init([tmp_path / f"{name}.csv" for name in files], "y", output=tmp_path / "x.yaml", force=True)
        assert isinstance(load_pipeline(tmp_path / "x.yaml").spec.prepare.split, kind)


def test_real_series(shared_data, tmp_path):
    for file, target, kind in (
        ("time_series/pollution.csv", "pm2.5", OrderSplit),
        ("time_series/airline-passengers.csv", "passengers", TimeSplit),
        ("bike_sharing/hour.csv", "cnt", RandomSplit),
    ):
        init([shared_data / file], target, output=tmp_path / "x.yaml", force=True)
        assert isinstance(load_pipeline(tmp_path / "x.yaml").spec.prepare.split, kind), file
