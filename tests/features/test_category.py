"""Feature `category`: 0 missing, 1 unknown or rare, 2 and up known."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlpipe.columns import Column, convert
from mlpipe.features.category import Category, FittedCategory
from mlpipe.sources.csv import Csv
from tests.features.graphs import run


def fit(values: list, **settings) -> FittedCategory:
    array = pa.array(values, pa.string()).dictionary_encode()
    return Category(columns=("c",), **settings).fit("c", pa.chunked_array([array]))


def codes(fitted: FittedCategory, values: list) -> list[int]:
    found = run(fitted, c=values)
    assert list(found) == ["category"]
    assert found["category"].dtype == np.int64
    return found["category"].ravel().tolist()


def test_missing_unknown_and_known_values_have_codes_of_their_own():
    fitted = fit(["b", "a", None, "b"])
    assert fitted.values == ("a", "b")
    assert codes(fitted, [None, "", "c", "a", "b"]) == [0, 0, 1, 2, 3]
    assert (fitted.missing, fitted.rows, fitted.known()) == (1, 4, {"a", "b"})


def test_o04_only_the_very_same_text_is_the_same_value():
    """The text `nan`, another case, a trailing blank and another Unicode form are values like others."""
    fitted = fit(["red", "nan", "caf\u00e9"])
    assert codes(fitted, ["red", "nan", "Red", "red ", "NaN", "cafe\u0301", "caf\u00e9", "re"]) == [4, 3, 1, 1, 1, 1, 2, 1]


def test_a_zero_byte_inside_a_value_does_not_end_it():
    assert codes(fit(["a", "a\0b"]), ["a", "a\0b", "a\0c", "\0"]) == [2, 3, 1, 1]


def test_rare_values_share_the_code_of_the_unknown_and_are_counted():
    fitted = fit(["a"] * 3 + ["b"] * 2 + ["c", None], min_count=2)
    assert (fitted.values, fitted.rare, fitted.rare_values, fitted.missing) == (("a", "b"), 1, 1, 1)
    assert codes(fitted, ["a", "b", "c", "z", None]) == [2, 3, 1, 1, 0]


def test_beyond_max_size_the_rarest_go_first_and_ties_go_by_code_point():
    fitted = fit(["d"] * 3 + ["c"] * 2 + ["b", "a"], max_size=3)
    assert fitted.values == ("a", "c", "d")
    assert (fitted.rare, fitted.rare_values) == (1, 1)


def test_the_empty_text_is_missing_as_a_client_sends_it():
    fitted = fit(["", "a", None])
    assert (fitted.values, fitted.missing) == (("a",), 2)
    assert codes(fitted, ["", "a"]) == [0, 2]


def test_the_table_does_not_depend_on_the_order_of_rows_or_on_chunks():
    values = ["b", "a", "c", "a", None, "é", "Z"]
    chunks = [pa.array(part, pa.string()).dictionary_encode() for part in (values[4:], values[:4])]
    assert Category(columns=("c",)).fit("c", pa.chunked_array(chunks)) == fit(values)
    assert fit(values).values == ("Z", "a", "b", "c", "é")


@given(st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=4), min_size=1, max_size=20), st.integers(1, 3))
def test_any_text_gets_the_code_that_the_table_says(values, min_count):
    fitted = fit(values, min_count=min_count)
    table = {value: i + 2 for i, value in enumerate(fitted.values)}
    assert codes(fitted, values) == [0 if not v else table.get(v, 1) for v in values]
    assert fitted.rare == sum(1 for v in values if v and v not in table)


def test_t13_columns_that_carry_nothing_are_named():
    assert "no value" in fit([None] * 5).remarks()[0]
    assert "constant" in fit(["a"] * 5).remarks()[0]
    assert "identifies rows" in fit([f"u{i}" for i in range(30)]).remarks()[0]
    assert fit(["a", None]).remarks() == []
    assert fit(["a", "b", "a"]).remarks() == []
    assert codes(fit([None] * 5), [None, "x"]) == [0, 1]


def cells(folder, name: str, column: str) -> pa.ChunkedArray:
    source = Csv(path=name)
    chunks = source.chunks(folder, [column])
    return pa.chunked_array([convert(c.rows.column(column), Column(name=column, type="text"), source.numbers)[0] for c in chunks])


def test_t12_a_value_that_training_never_saw_is_unknown_and_not_missing(cases):
    fitted = Category(columns=("colour",)).fit("colour", cells(cases / "T12", "train.csv", "colour"))
    seen = cells(cases / "T12", "new_category.csv", "colour").to_pylist()
    assert fitted.values == ("blue", "green", "red")
    found = run(fitted, colour=seen)["category"].ravel()
    assert [(value, code) for value, code in zip(seen, found, strict=True) if code < 2] == [("violet", 1), ("violet", 1), (None, 0)]
    assert not fitted.strict()
    assert Category(columns=("colour",), unseen="fail").fit("colour", cells(cases / "T12", "train.csv", "colour")).strict()


def test_t13_one_value_per_row_stays_one_column_of_codes(cases):
    fitted = Category(columns=("row_uid",), min_count=2).fit("row_uid", cells(cases / "T13", "useless.csv", "row_uid"))
    assert (fitted.values, fitted.rare_values) == ((), 1000)
    assert "row_uid" in fitted.remarks()[0]


@pytest.mark.parametrize("settings", [{"min_count": 0}, {"max_size": 0}, {"columns": ()}, {"columns": ("",)}, {"unseen": "drop"}])
def test_settings_of_no_use_are_refused(settings):
    with pytest.raises(ValueError, match="for Category"):
        Category(**{"columns": ("c",), **settings})
