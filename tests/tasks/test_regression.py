"""Task `regression`: learned scaled, given back in the target's own units."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mlpipe.errors import DataError
from mlpipe.tasks.regression import FittedRegression, Regression


def fit(values: list, **settings) -> FittedRegression:
    return Regression(target="y", **settings).fit(pa.chunked_array([pa.array(values, pa.float64())]))


def back(fitted: FittedRegression, values: list) -> list:
    """Targets encoded, taken for outputs, and decoded."""
    encoded = torch.from_numpy(fitted.encode(pa.array(values, pa.float64())))
    return fitted.decode(fitted.activate(encoded[:, None]).numpy()).tolist()


def test_targets_are_centred_and_scaled_by_the_train_rows():
    fitted = fit([1.0, 3.0, None])
    assert (fitted.mean, fitted.deviation, fitted.raw_mean, fitted.minimum, fitted.maximum) == (2.0, 1.0, 2.0, 1.0, 3.0)
    encoded = fitted.encode(pa.array([1.0, 5.0]))
    assert (encoded.tolist(), encoded.dtype) == ([-1.0, 3.0], np.float32)


@given(
    st.lists(st.floats(0.001, 1e6), min_size=2, max_size=20).filter(lambda v: max(v) > min(v)),
    st.sampled_from(["none", "log", "log1p"]),
    st.sampled_from(["standard", "none"]),
)
def test_a_target_comes_back_in_its_own_units(values, transform, scale):
    fitted = fit(values, transform=transform, scale=scale)
    found = back(fitted, values)
    assert all(isinstance(v, float) for v in found)
    tolerance = {"none": 1e-5 * max(values), "log": 1e-4 * max(values), "log1p": 1e-4 * (1 + max(values))}[transform]
    assert found == pytest.approx(values, abs=tolerance)


def test_predictions_are_float64_so_that_large_targets_keep_their_digits():
    fitted = fit([1e9, 1e9 + 10])
    assert fitted.activate(torch.tensor([[1.0]])).dtype == torch.float64
    assert back(fitted, [1e9, 1e9 + 10]) == [1e9, 1e9 + 10]


@pytest.mark.parametrize(
    ("values", "words"),
    [([None, None], "no value"), ([5.0, 5.0, None], "is 5.0 in every train row"), ([1.7e308, 1.6e308, 0.0], "so large")],
)
def test_targets_that_cannot_be_learned_are_refused(values, words):
    with pytest.raises(DataError, match=words):
        fit(values)


def test_targets_that_differ_in_the_last_place_give_finite_numbers():
    close = [1.0, float(np.nextafter(1, 2))]
    for transform in ("none", "log", "log1p"):
        assert np.isfinite(fit(close, transform=transform).encode(pa.array(close))).all()


@pytest.mark.parametrize(
    ("transform", "good", "bad"), [("none", [-1e9, 0.0], []), ("log", [1e-9, 5.0], [0.0, -1.0]), ("log1p", [0.0, -0.5], [-1.0, -2.0])]
)
def test_a_transform_says_which_targets_it_refuses(transform, good, bad):
    task = Regression(target="y", transform=transform)
    assert [task.refused(value) for value in good] == [None] * len(good)
    assert all(transform in task.refused(value) for value in bad)


def test_the_loss_is_the_mean_square_of_scaled_differences():
    loss = fit([1.0, 3.0]).loss(torch.tensor([[1.0], [2.0]]), torch.tensor([0.0, 4.0]), None)
    assert loss.item() == pytest.approx(2.5)


def test_the_baseline_is_the_train_mean_in_the_targets_own_units():
    assert fit([1.0, 9.0], transform="log").baseline(3).tolist() == [[5.0]] * 3


def test_the_fitted_task_survives_json():
    fitted = fit([0.1, 0.7])
    assert FittedRegression.model_validate_json(fitted.model_dump_json()) == fitted
