"""Splits whose shares are far from those asked for say why."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from mlpipe.errors import DataError
from tests.helpers import chain, small


def prepared(folder: Path, rows: list[str], features: list[dict], **changes):
    (folder / "x.csv").write_text("\n".join(["a,b,row,label", *rows]) + "\n", encoding="utf-8")
    file = small(folder, prepare__source={"kind": "csv", "path": "x.csv"}, prepare__features=features, **changes)
    return chain(file, folder / "runs", until="prepare")["prepare"].manifest.results


WORDS = [{"kind": "category", "columns": ["a", "b"]}]


def test_few_different_rows_are_named(tmp_path):
    rng = random.Random(1)
    rows = [f"{rng.choice('xy')},u,{i},{rng.choice('pn')}" for i in range(2000)]
    asked = {"kind": "random", "valid": 0, "test": 0.4}  # what four kinds of rows cannot give
    notes = " ".join(prepared(tmp_path, rows, WORDS, prepare__split=asked)["notes"])
    assert "2,000 rows have only 4 different rows in the columns of features and target" in notes
    assert "asked for" in notes
    keyed = prepared(tmp_path, rows, WORDS, prepare__split={**asked, "key": ["row"]})
    assert "different rows" not in " ".join(keyed["notes"])


def test_an_empty_split_names_the_cause(tmp_path):
    rows = [f"x,u,{i},{'pn'[i % 2]}" for i in range(100)]
    with pytest.raises(DataError, match="is empty") as caught:
        prepared(tmp_path, rows, WORDS)
    assert "100 rows have only 2 different rows" in caught.value.faults[0]


def test_ordinary_tables_are_not_spoken_of(tmp_path):
    rng = random.Random(2)
    rows = [f"{rng.random():.5f},{rng.random():.5f},{i},{rng.choice('pn')}" for i in range(120)]
    notes = " ".join(prepared(tmp_path, rows, [{"kind": "numeric", "columns": ["a", "b"]}])["notes"])
    assert "different rows" not in notes
