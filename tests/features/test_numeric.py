"""Feature `numeric`: what the graph gives equals numbers worked out by hand from the fitted state."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from mlpipe.features.numeric import FittedNumeric, Numeric, quantile_knots
from tests.features.graphs import run

HUGE = np.finfo(np.float64).max
TINY = 5e-324
FINITE = st.floats(allow_nan=False, allow_infinity=False)


def fit(values: list, **settings) -> FittedNumeric:
    return Numeric(columns=("x",), **settings).fit("x", pa.chunked_array([pa.array(values, pa.float64())]))


def test_values_are_centred_and_scaled_by_the_train_rows():
    fitted = fit([1.0, 2.0, 3.0, 6.0])
    assert (fitted.mean, fitted.deviation, fitted.fill) == (3.0, np.sqrt(3.5), 2.5)
    found = run(fitted, x=[3.0, 6.0, -1.0])
    assert list(found) == ["numeric"]
    assert found["numeric"].dtype == np.float32
    assert found["numeric"].ravel() == pytest.approx(np.array([0, 3, -4]) / np.sqrt(3.5), rel=1e-6)


@pytest.mark.parametrize(("fill", "settings"), [("median", {}), ("mean", {}), ("constant", {"fill_value": -5.0})])
def test_gaps_become_what_was_asked_for_and_are_marked(fill, settings):
    fitted = fit([1.0, None, 3.0, 8.0], fill=fill, **settings)
    number = {"median": 3.0, "mean": 4.0, "constant": -5.0}[fill]
    found = run(fitted, x=[None, 3.0])
    assert found["numeric"][0, 0] == pytest.approx((number - 4.0) / fitted.deviation, rel=1e-6)
    assert found["plain"].tolist() == [[1.0], [0.0]]


@pytest.mark.parametrize(
    ("indicator", "values", "shown"),
    [
        ("auto", [1.0, 2.0], False),
        ("auto", [1.0, None], True),
        ("auto", [None, None], False),
        ("always", [1.0, 2.0], True),
        ("never", [1.0, None], False),
    ],
)
def test_a_gap_has_a_mark_of_its_own_where_train_rows_have_gaps(indicator, values, shown):
    fitted = fit(values, indicator=indicator)
    assert ("plain" in run(fitted, x=[None])) == shown
    assert np.isfinite(run(fitted, x=[None])["numeric"]).all()


def test_e04_t13_a_constant_column_becomes_0_and_not_nan_and_is_named():
    """14.62 stored a thousand times has a computed spread of 3.6e-15, which is none."""
    fitted = fit([14.62] * 1000)
    assert (fitted.mean, fitted.deviation) == (14.62, 1.0)
    assert run(fitted, x=[14.62, None, 15.62])["numeric"].ravel() == pytest.approx([0, 0, 1], abs=1e-6)
    assert run(fitted, x=[14.62])["numeric"].tolist() == [[0.0]]
    assert "constant" in fitted.remarks()[0]
    assert fit([14.62] * 999 + [np.nextafter(14.62, 15)]).deviation == 1.0


def test_a_small_spread_of_large_numbers_is_a_spread():
    """Moments in microseconds, all within a thousandth of a second."""
    values = [1.7e15 + i for i in range(1000)]
    fitted = fit(values)
    assert fitted.deviation == pytest.approx(np.sqrt((1000**2 - 1) / 12))
    assert run(fitted, x=[values[0], values[-1]])["numeric"].ravel() == pytest.approx([-1.7303, 1.7303], abs=1e-3)


def test_t13_a_column_without_any_value_is_harmless_and_named():
    for scale in ("standard", "quantile", "none"):
        fitted = fit([None] * 30, scale=scale)
        assert run(fitted, x=[None, 5.0])["numeric"][0, 0] == 0.0
        assert np.isfinite(run(fitted, x=[None, 5.0])["numeric"]).all()
        assert "no value" in fitted.remarks()[0]


def test_values_are_held_within_clip_deviations():
    fitted = fit([0.0, 1.0], clip=2.0)
    assert run(fitted, x=[1e9, -1e9, 0.5])["numeric"].ravel().tolist() == [2.0, -2.0, 0.0]
    assert run(fit([0.0, 1.0], clip=None), x=[1e9])["numeric"][0, 0] == pytest.approx(2e9)


def test_scale_none_leaves_numbers_as_they_are():
    assert run(fit([1.0, 2.0], scale="none"), x=[-3.5, 1e9])["numeric"].ravel().tolist() == [-3.5, 1e9]


@pytest.mark.parametrize("scale", ["standard", "quantile", "none"])
@pytest.mark.parametrize(
    "train",
    [
        [0.0, 1.0],
        [HUGE, -HUGE],
        [HUGE, HUGE * 0.9],
        [-HUGE, -HUGE, 0.0, HUGE],
        [TINY, -TINY],
        [TINY, 0.0, 1.0],
        [0.0, TINY, HUGE],
        [HUGE],
        [1e300, 1.0, -1e300],
        [5.0],
    ],
)
def test_huge_tiny_and_infinite_numbers_stay_finite(scale, train):
    """At serving time anything may come; nothing that is not finite leaves the encoder."""
    fitted = fit(train, scale=scale)
    found = run(fitted, x=[*train, None, 0.0, HUGE, -HUGE, TINY, np.inf, -np.inf])["numeric"]
    assert np.isfinite(found).all(), found
    low, high = run(fitted, x=[min(train), max(train)])["numeric"].ravel()
    assert low <= high
    assert low < high or scale != "quantile" or len(set(train)) == 1


@given(st.lists(FINITE, min_size=1, max_size=30), st.sampled_from(["standard", "quantile", "none"]))
def test_any_training_column_gives_finite_numbers_in_order(train, scale):
    found = run(fit(train, scale=scale, clip=None), x=sorted(train))["numeric"].ravel()
    assert np.isfinite(found).all()
    assert (np.diff(found.astype(np.float64)) >= 0).all()


def test_the_quantile_map_is_piecewise_linear_through_its_knots():
    values = np.random.default_rng(0).exponential(size=500)
    fitted = fit(values.tolist(), scale="quantile", knots=16)
    probe = np.concatenate([values[:50], np.array(fitted.knots), [-1.0, 100.0]])
    expected = np.interp(probe, fitted.knots, fitted.normal)
    assert run(fitted, x=probe.tolist())["numeric"].ravel() == pytest.approx(expected, abs=1e-5)
    assert run(fitted, x=[float(np.median(values))])["numeric"][0, 0] == pytest.approx(0, abs=0.2)


def test_the_quantile_map_is_that_of_scikit_learn():
    from sklearn.preprocessing import QuantileTransformer

    values = np.random.default_rng(1).gamma(2, size=2000)
    theirs = QuantileTransformer(n_quantiles=64, output_distribution="normal", subsample=None).fit(values[:, None])
    found = run(fit(values.tolist(), scale="quantile", knots=64), x=values.tolist())["numeric"]
    inside = (values > np.quantile(values, 0.02)) & (values < np.quantile(values, 0.98))
    assert np.abs(found - theirs.transform(values[:, None]))[inside].max() < 0.06  # they map ranks, we interpolate the normal


def test_a_value_that_fills_several_quantiles_has_their_mean_rank():
    knots, normal = quantile_knots(np.array([0.0] * 50 + list(range(1, 51))), 101)
    assert knots[0] == 0.0
    assert normal[0] == pytest.approx(NormalDist().inv_cdf(0.245), abs=1e-9)
    assert all(np.diff(knots) > 0)
    assert all(np.diff(normal) > 0)
    assert normal[-1] == pytest.approx(NormalDist().inv_cdf(1 - 1e-4))


def test_a_constant_column_is_0_in_the_quantile_map():
    fitted = fit([3.0] * 10, scale="quantile")
    assert run(fitted, x=[3.0, 9.0, None, np.inf])["numeric"].ravel().tolist() == [0.0] * 4


def test_e04_a_fit_sees_the_rows_it_is_given_and_nothing_else(cases):
    from mlpipe.columns import Column, convert
    from mlpipe.sources.csv import Csv

    source = Csv(path="outlier_at_end.csv")
    (chunk,) = source.chunks(cases / "E04", ["x"])
    values, _ = convert(chunk.rows.column("x"), Column(name="x", type="number"), source.numbers)
    fitted = Numeric(columns=("x",)).fit("x", pa.chunked_array([values[:80]]))
    assert fitted.mean == pytest.approx(6.4, abs=0.01)
    assert fitted.maximum < 1_000_000


@pytest.mark.parametrize(
    "settings",
    [
        {"fill": "constant"},
        {"fill_value": 1.0},
        {"clip": 0.0},
        {"knots": 1},
        {"scale": "robust"},
        {"fill": "constant", "fill_value": float("nan")},
    ],
)
def test_settings_that_contradict_each_other_are_refused(settings):
    with pytest.raises(ValidationError):
        Numeric(columns=("x",), **settings)
