"""profile.json: what drift needs of each column, by hand."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from mlpipe.stages.profile import profile_column


def profile(values: list[object], kind: pa.DataType | None = None) -> dict[str, object]:
    return profile_column(pa.chunked_array([pa.array(values, kind)]))


def test_numbers() -> None:
    """1 to 100, one missing: ranges of ten, every value a knot."""
    found = profile([*map(float, range(1, 101)), None])
    assert (found["rows"], found["missing"], found["kind"], found["distinct"]) == (101, 1, "number", 100)
    assert found["mean"] == 50.5
    assert found["deviation"] == pytest.approx(np.arange(1, 101).std())
    quantiles = found["quantiles"]
    assert (quantiles["0.0"], quantiles["0.5"], quantiles["1.0"]) == (1.0, 50.5, 100.0)
    assert len(quantiles) == 103
    ranges = found["ranges"]
    assert ranges["edges"] == [10, 20, 30, 40, 50, 60, 70, 80, 90]
    assert ranges["counts"] == [10] * 10
    assert found["distribution"] == {"at": list(range(1, 101)), "below": list(range(100)), "upto": list(range(1, 101))}


def test_numbers_of_few_values_have_fewer_ranges_and_no_row_is_lost() -> None:
    """Nine of ten are 0; a constant has one range."""
    found = profile([0.0] * 90 + [5.0] * 10)
    assert found["ranges"] == {"edges": [0.0], "counts": [90, 10]}
    assert profile([3.0] * 7)["ranges"] == {"edges": [], "counts": [7]}
    assert "ranges" not in profile([None, None], pa.float64())


def test_many_values_have_bounded_knots() -> None:
    """At most 256, the ends among them; the counts are exact."""
    numbers = np.random.default_rng(0).normal(size=5000)
    found = profile(numbers.tolist())
    knots = found["distribution"]
    assert len(knots["at"]) == 256
    assert (knots["at"][0], knots["at"][-1]) == (numbers.min(), numbers.max())
    assert knots["upto"] == [int((numbers <= x).sum()) for x in knots["at"]]
    assert knots["below"] == [int((numbers < x).sum()) for x in knots["at"]]
    assert sum(found["ranges"]["counts"]) == 5000


def test_text() -> None:
    """Values that stand once, or are long, are not written down but counted."""
    long = "x" * 101
    found = profile(["a", "a", "a", "bb", "bb", "c", None, long, long])
    assert (found["rows"], found["missing"], found["distinct"]) == (9, 1, 4)
    assert found["top"] == [["a", 3], ["bb", 2]]
    assert found["other"] == 3
    assert found["lengths"] == {"min": 1, "median": 1, "p95": 101, "max": 101}
    assert profile([None], pa.string()) == {"rows": 1, "missing": 1, "kind": "text", "distinct": 0, "top": [], "other": 0}


def test_times_are_seconds() -> None:
    """Since 1970."""
    found = profile([0, 60_000_000], pa.timestamp("us"))
    assert (found["kind"], found["quantiles"]["1.0"]) == ("timestamp", 60.0)
