"""Metrics of numbers: scikit-learn's, and null with a reason where there is none."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.metrics as theirs

from mlpipe.metrics import METRICS
from mlpipe.metrics.base import Outcome, measured

NAMES = [name for name, metric in METRICS.items() if metric.task == "regression"]


def value(name: str, truth: list, predicted: list):
    return measured(METRICS[name], Outcome(np.array(truth, dtype=np.float64), np.array(predicted, dtype=np.float64).reshape(-1, 1)))


def test_every_metric_is_scikit_learns():
    random = np.random.default_rng(0)
    y = random.gamma(2, 10, 300)
    p = y * random.uniform(0.7, 1.3, 300)
    expected = {
        "rmse": theirs.mean_squared_error(y, p) ** 0.5,
        "rmse_log": theirs.mean_squared_error(np.log(y), np.log(p)) ** 0.5,
        "mae": theirs.mean_absolute_error(y, p),
        "median_ae": theirs.median_absolute_error(y, p),
        "mape": theirs.mean_absolute_percentage_error(y, p),
        "r2": theirs.r2_score(y, p),
    }
    assert set(expected) == set(NAMES)
    assert {name: value(name, y, p).value for name in NAMES} == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_a_perfect_model_has_the_best_value_and_a_worse_one_a_worse(name):
    perfect, worse = value(name, [1, 2, 4], [1, 2, 4]).value, value(name, [1, 2, 4], [2, 2.5, 3]).value
    assert perfect == (1.0 if METRICS[name].higher_is_better else 0.0)
    assert (worse < perfect) == METRICS[name].higher_is_better


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.parametrize(
    ("name", "truth", "predicted", "reason"),
    [
        ("rmse_log", [1, 0, -1], [1, 1, 1], "2 rows have a value of 0 or below, which has no logarithm"),
        ("rmse_log", [1, 2], [1, 0], "1 rows have a value of 0 or below, which has no logarithm"),
        ("mape", [1, 0], [1, 1], "1 rows have a target of 0"),
        ("r2", [3, 3], [1, 2], "the target does not vary in these rows"),
        ("r2", [3], [1], "the target does not vary in these rows"),
        ("rmse", [1e300, -1e300], [-1e300, 1e300], "the value is inf"),
    ],
)
def test_undefined_values_are_null_with_the_reason(name, truth, predicted, reason):
    assert value(name, truth, predicted).as_json() == {"value": None, "reason": reason}


@pytest.mark.parametrize("name", NAMES)
def test_no_rows_and_predictions_that_are_not_finite_give_null_and_a_reason(name):
    assert value(name, [], []).reason == "there are no rows"
    assert value(name, [1, 2], [np.inf, 1]).reason == "1 rows have a score that is not finite"
