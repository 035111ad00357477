"""PSI, Kolmogorov-Smirnov and chi-square: by hand, and as scipy has them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mlpipe.metrics.shift import chi_square, kolmogorov_smirnov, psi


def test_psi_by_hand() -> None:
    """Shares 1/2, 1/2 and 1/4, 3/4: 1/4 ln 2 - 1/4 ln (2/3) = 1/4 ln 3."""
    assert psi(np.array([50, 50]), np.array([10, 30])) == pytest.approx(0.25 * math.log(3))


def test_psi_of_equal_shares_is_zero_and_of_no_rows_none() -> None:
    """Whatever the numbers of rows; a cell that both lack is no cell."""
    assert psi(np.array([1, 2, 0, 3]), np.array([10, 20, 0, 30])) == 0.0
    assert psi(np.array([0, 0]), np.array([1, 1])) is None
    assert psi(np.array([1, 1]), np.array([0, 0])) is None


def test_a_cell_without_rows_counts_half_a_row() -> None:
    """(0.5/10 - 0.5) ln (0.05/0.5) + (1 - 0.5) ln 2."""
    assert psi(np.array([5, 5]), np.array([0, 10])) == pytest.approx((0.05 - 0.5) * math.log(0.1) + 0.5 * math.log(2))


@given(st.integers(2, 8).flatmap(lambda n: st.tuples(*[st.lists(st.integers(1, 50), min_size=n, max_size=n)] * 2)))
def test_psi_is_symmetric_and_never_negative(pair: tuple[list[int], list[int]]) -> None:
    """As its formula says."""
    one, two = map(np.array, pair)
    there, back = psi(one, two), psi(two, one)
    assert there is not None and back is not None
    assert there == pytest.approx(back)
    assert there >= -1e-15


@given(st.integers(2, 8).flatmap(lambda n: st.tuples(*[st.lists(st.integers(0, 50), min_size=n, max_size=n)] * 2)))
def test_chi_square_is_scipys(pair: tuple[list[int], list[int]]) -> None:
    """`chi2_contingency` without Yates' correction, empty cells left out."""
    one, two = map(np.array, pair)
    there = one + two > 0
    if there.sum() < 2 or not one.sum() or not two.sum():
        assert chi_square(one, two) is None
        return
    expected = stats.chi2_contingency(np.stack([one[there], two[there]]), correction=False)
    assert chi_square(one, two) == pytest.approx((expected.statistic, expected.pvalue))


def knots(values: np.ndarray, at: np.ndarray) -> np.ndarray:
    ordered = np.sort(values)
    return np.stack([np.searchsorted(ordered, at, "left"), np.searchsorted(ordered, at, "right")])


@given(st.lists(st.integers(0, 20), min_size=1, max_size=60), st.lists(st.integers(-3, 25), min_size=1, max_size=60))
@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")  # scipy about samples of one row
def test_kolmogorov_smirnov_is_scipys(one: list[int], two: list[int]) -> None:
    """Exact where every distinct value is a knot, values outside included; the p-value is the asymptotic two-sample one."""
    then, now = np.array(one, dtype=float), np.array(two, dtype=float)
    at = np.unique(then)
    found = kolmogorov_smirnov(knots(then, at), knots(now, at), (len(then), len(now)))
    expected = stats.ks_2samp(then, now, method="asymp")
    assert found is not None
    assert found[0] == pytest.approx(expected.statistic)
    if len(then) > 1 and len(now) > 1:  # scipy rounds the size of two single rows to none
        assert found[1] == pytest.approx(expected.pvalue, abs=1e-9)


def test_kolmogorov_smirnov_by_hand() -> None:
    """1 2 3 4 and 3 4 5 6: half of the first lies below all of the second."""
    then, now = np.array([1.0, 2, 3, 4]), np.array([3.0, 4, 5, 6])
    found = kolmogorov_smirnov(knots(then, then), knots(now, then), (4, 4))
    assert found is not None and found[0] == 0.5
    assert kolmogorov_smirnov(knots(then, then), knots(then, then), (4, 4)) == (0.0, 1.0)
    assert kolmogorov_smirnov(knots(then, then), knots(now[:0], then), (4, 0)) is None
