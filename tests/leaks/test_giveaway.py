"""Features that give the target away are found on held-out rows; names that know the train rows by heart are not."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from mlpipe.leaks.duplicates import Duplicates, conflicts
from mlpipe.leaks.giveaway import formulas, giveaways


def halves(columns: dict[str, object], train: int = 700) -> tuple[pa.Table, pa.Table]:
    table = pa.table(columns)
    return table.slice(0, train), table.slice(train)


def found(columns: dict[str, object], features: list[str], task: str) -> list[str]:
    return [one.column for one in giveaways(*halves(columns), features, "y", task)]  # type: ignore[arg-type]


DICE = np.random.default_rng(0)
N = 1000
CLASSES = np.array(["a", "b", "c"])[DICE.integers(0, 3, N)]
TWO = np.where(DICE.random(N) < 0.3, "yes", "no")
NUMBER = DICE.normal(size=N)


def test_a_code_of_the_class_is_found_and_its_score_exact() -> None:
    """As text, as dictionary, as number; with the share of the most common class beside it."""
    code = {"a": "1", "b": "2", "c": "3"}
    text = [code[c] for c in CLASSES]
    columns = {"y": CLASSES, "t": text, "d": pa.array(text).dictionary_encode(), "n": [float(t) for t in text], "x": NUMBER}
    assert found(columns, ["t", "d", "n", "x"], "classification") == ["d", "n", "t"]
    (one, *_) = giveaways(*halves(columns), ["t"], "y", "classification")
    assert (one.score, one.rows) == (1.0, 300)
    common = max(set(CLASSES[:700]), key=list(CLASSES[:700]).count)
    assert one.baseline == pytest.approx(np.mean(CLASSES[700:] == common))


def test_names_of_rows_do_not_count() -> None:
    """A different text in each row says all of the train rows and nothing of the others; a row number neither."""
    columns = {"y": CLASSES, "name": [f"r{i}" for i in range(N)], "nr": np.arange(N, dtype=float), "x": NUMBER}
    assert found(columns, ["name", "nr", "x"], "classification") == []


def test_a_threshold_and_a_gap_give_two_classes_away() -> None:
    """One cut of a number; a cell that is filled in only after the answer."""
    after = pa.array([float(i % 50) if c == "yes" else None for i, c in enumerate(TWO)])
    columns = {"y": TWO, "cut": np.where(TWO == "yes", 3.0, -3.0) + NUMBER * 0.5, "after": after, "x": NUMBER}
    assert sorted(found(columns, ["cut", "after", "x"], "classification")) == ["after", "cut"]


def test_a_strong_feature_is_no_giveaway() -> None:
    """Nine of ten rows right is what a good feature does."""
    noisy = np.where(DICE.random(N) < 0.9, TWO, np.where(TWO == "yes", "no", "yes"))
    assert found({"y": TWO, "f": noisy}, ["f"], "classification") == []


def test_numbers_that_are_the_target_in_other_units() -> None:
    """Equal, scaled, reversed, curved, and rounded to text; noise of a fifth is no giveaway."""
    y = np.exp(NUMBER)
    columns = {"y": y, "same": y, "scaled": y * 3 - 5, "reversed": -y, "curved": np.log(y), "x": DICE.normal(size=N)}
    columns["noisy"] = y + DICE.normal(size=N) * y.std() / 5
    assert sorted(found(columns, ["same", "scaled", "reversed", "curved", "noisy", "x"], "regression")) == [
        "curved",
        "reversed",
        "same",
        "scaled",
    ]


def test_sums_differences_products_and_quotients() -> None:
    """Exact ones alone; gaps in a column are no match."""
    a, b = DICE.integers(0, 500, N).astype(float), DICE.integers(1, 900, N).astype(float)
    for operation, y in (("+", a + b), ("-", a - b), ("*", a * b), ("/", a / b)):
        table = pa.table({"a": a, "b": b, "c": DICE.integers(0, 9, N).astype(float), "y": y})
        (one,) = formulas(table, ["a", "b", "c"], "y")
        assert (one.left, one.operation, one.right, one.share) == ("a", operation, "b", 1.0)
    assert formulas(pa.table({"a": a, "b": b, "y": a + b + DICE.normal(size=N)}), ["a", "b"], "y") == []
    assert formulas(pa.table({"a": a, "b": b, "y": np.where(np.arange(N) % 10 == 0, 0, a + b)}), ["a", "b"], "y") == []


def test_few_rows_say_nothing() -> None:
    """29 held-out rows."""
    assert giveaways(*halves({"y": CLASSES[:129], "t": CLASSES[:129]}, 100), ["t"], "y", "classification") == []


# ---- duplicates


def test_twins_are_counted_by_hand() -> None:
    """Two test rows in train (one of them twice there), one valid row in train."""
    hashes = np.array([5, 6, 7, 7, 8, 9, 7, 6, 9, 4], dtype=np.uint64)
    codes = np.array([0, 0, 0, 0, 1, 1, 2, 2, 2, 2], dtype=np.uint8)
    for cut in (3, 10):
        duplicates = Duplicates()
        duplicates.add(hashes[:cut], codes[:cut])
        duplicates.add(hashes[cut:], codes[cut:])
        told = {(t.earlier, t.later): (t.rows, t.of, t.first) for t in duplicates.twins()}
        assert told == {
            ("train", "test"): (2, 4, [(0, 2), (1, 1)]),
            ("train", "valid"): (0, 2, []),
            ("valid", "test"): (1, 4, [(2, 1)]),
        }


def test_conflicts_are_rows_that_differ_in_nothing_but_the_target() -> None:
    """Rows 1, 3 and 4 have one set of features and two answers; equal answers are no conflict."""
    rows = pa.record_batch(
        {
            "x": [1.0, 2.0, 1.0, 2.0, 2.0, 3.0],
            "c": pa.array(["a", "b", "a", "b", "b", "a"]).dictionary_encode(),
            "y": pa.array(["n", "n", "n", "n", "j", "j"]).dictionary_encode(),
        }
    )
    assert conflicts(rows, ["x", "c"], "y") == (3, (1, 4))
    assert conflicts(rows.slice(0, 4), ["x", "c"], "y") == (0, None)
    assert conflicts([], ["x"], "y") == (0, None)
