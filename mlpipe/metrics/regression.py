"""Metrics of numbers, computed by scikit-learn on whole arrays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mlpipe.metrics.base import Metric, Undefined


def _rmse(y: np.ndarray, p: np.ndarray) -> float:
    from sklearn.metrics import root_mean_squared_error

    return float(root_mean_squared_error(y, p))


def _rmse_log(y: np.ndarray, p: np.ndarray) -> float:
    if (bad := int((y <= 0).sum())) or (bad := int((p <= 0).sum())):
        raise Undefined(f"{bad:,} rows have a value of 0 or below, which has no logarithm")
    return _rmse(np.log(y), np.log(p))


def _mae(y: np.ndarray, p: np.ndarray) -> float:
    from sklearn.metrics import mean_absolute_error

    return float(mean_absolute_error(y, p))


def _median_ae(y: np.ndarray, p: np.ndarray) -> float:
    from sklearn.metrics import median_absolute_error

    return float(median_absolute_error(y, p))


def _mape(y: np.ndarray, p: np.ndarray) -> float:
    from sklearn.metrics import mean_absolute_percentage_error

    if zeros := int((y == 0).sum()):
        raise Undefined(f"{zeros:,} rows have a target of 0")
    return float(mean_absolute_percentage_error(y, p))


def _r2(y: np.ndarray, p: np.ndarray) -> float:
    from sklearn.metrics import r2_score

    if len(y) < 2 or y.min() == y.max():
        raise Undefined("the target does not vary in these rows")
    return float(r2_score(y, p))


def _metric(name: str, higher: bool, meaning: str, compute: Callable[[np.ndarray, np.ndarray], float]) -> Metric:
    return Metric(name, "regression", higher, meaning, lambda outcome: compute(outcome.truth, outcome.scores[:, 0]))


METRICS = (
    _metric("rmse", False, "root mean squared error", _rmse),
    _metric("rmse_log", False, "root mean squared error of the natural logarithms", _rmse_log),
    _metric("mae", False, "mean absolute error", _mae),
    _metric("median_ae", False, "median absolute error", _median_ae),
    _metric("mape", False, "mean absolute error as a share of the target", _mape),
    _metric("r2", True, "coefficient of determination", _r2),
)
