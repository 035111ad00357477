"""Task `classification`: labels are names; a class that train lacks is wrong and never crashes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import torch

from mlpipe.errors import DataError
from mlpipe.tasks.classification import Classification, FittedClassification


def column(labels: list) -> pa.Array:
    return pa.array(labels, pa.string()).dictionary_encode()


def fit(labels: list, **settings) -> FittedClassification:
    return Classification(target="y", **settings).fit(pa.chunked_array([column(labels)]))


def test_classes_come_in_order_of_code_points_with_their_counts():
    fitted = fit(["b", "a", "b", None, "C"])
    assert (fitted.classes, fitted.counts) == (("C", "a", "b"), (1, 1, 2))
    assert fitted.summary() == {"classes": {"C": 1, "a": 1, "b": 2}}


def test_classes_that_are_whole_numbers_come_in_order_of_number_and_stay_text():
    assert fit(["10", "9", "-1", "100"]).classes == ("-1", "9", "10", "100")
    assert fit(["10", "9", "1.5"]).classes == ("1.5", "10", "9")
    assert fit(["1", "01", "1"]).classes == ("01", "1")


def test_the_positive_class_is_the_second():
    assert fit(["no", "yes"]).classes == ("no", "yes")
    assert fit(["no", "yes"], positive="no").classes == ("yes", "no")


@pytest.mark.parametrize(
    ("labels", "settings", "words"),
    [
        (["a", "a"], {}, "only one class: a"),
        ([None, None], {}, "no value"),
        (["a", "b"], {"positive": "B"}, "'B' is no class of 'y'"),
        (["a", "b", "c"], {"positive": "a"}, "for two classes"),
    ],
)
def test_targets_that_cannot_be_learned_are_refused(labels, settings, words):
    with pytest.raises(DataError, match=words):
        fit(labels, **settings)


def test_labels_become_numbers_and_unseen_and_missing_ones_minus_one():
    fitted = fit(["a", "b", "c"])
    assert fitted.encode(column(["c", None, "z", "a"])).tolist() == [2, -1, -1, 0]
    assert fitted.encode(pa.array(["b"])).tolist() == [1]
    assert fitted.encode(column([])).dtype == np.int64
    assert fitted.truth(column(["z", "a"])).tolist() == ["z", "a"]


@pytest.mark.parametrize("classes", [2, 3])
def test_scores_are_probabilities_and_decode_to_the_largest(classes):
    fitted = fit([f"c{i}" for i in range(classes)])
    assert fitted.outputs == (1 if classes == 2 else 3)
    outputs = torch.randn(50, fitted.outputs, generator=torch.Generator().manual_seed(0)) * 20
    scores = fitted.activate(outputs).numpy()
    assert scores.shape == (50, classes)
    assert scores.sum(axis=1) == pytest.approx(np.ones(50), abs=1e-6)
    if classes == 2:
        assert scores[:, 1] == pytest.approx(1 / (1 + np.exp(-outputs[:, 0].numpy().astype(np.float64))), abs=1e-6)
    assert fitted.decode(scores).tolist() == [fitted.classes[i] for i in scores.argmax(axis=1)]
    assert fitted.decode(np.full((1, classes), 1 / classes)).tolist() == ["c0"]


def test_huge_outputs_give_finite_losses_and_scores():
    for labels in (["a", "b"], ["a", "b", "c"]):
        fitted = fit(labels)
        outputs = torch.tensor([[1e4] * fitted.outputs, [-1e4] * fitted.outputs])
        outputs[0, 0] *= -1
        assert torch.isfinite(fitted.loss(outputs, torch.tensor([1, 1]), None))
        assert torch.isfinite(fitted.activate(outputs)).all()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_loss_is_the_mean_negative_log_probability_weighted_by_class(classes, weighted):
    fitted = fit([f"c{i}" for i in range(classes)])
    outputs = torch.randn(20, fitted.outputs, generator=torch.Generator().manual_seed(1))
    target = torch.arange(20) % classes
    weights = torch.tensor([1.0, 3.0, 0.5][:classes]) if weighted else None
    probability = fitted.activate(outputs)[torch.arange(20), target]
    row = weights[target] if weights is not None else torch.ones(20)
    expected = (-probability.log() * row).sum() / row.sum()
    assert fitted.loss(outputs, target, weights).item() == pytest.approx(expected.item(), rel=1e-5)


def test_the_baseline_gives_the_train_shares_to_every_row():
    assert fit(["a", "a", "a", "b"]).baseline(2).tolist() == [[0.75, 0.25], [0.75, 0.25]]


def test_the_fitted_task_survives_json():
    fitted = fit(["ä", "b"])
    assert FittedClassification.model_validate_json(fitted.model_dump_json()) == fitted
