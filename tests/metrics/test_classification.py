"""Metrics of classes: scikit-learn's numbers; null and a reason where there is none; an unseen class counts as wrong."""

from __future__ import annotations

import json

import numpy as np
import pytest
import sklearn.metrics as theirs
from hypothesis import given
from hypothesis import strategies as st

from mlpipe.base import json_text
from mlpipe.metrics import METRICS
from mlpipe.metrics.base import Outcome, measured
from mlpipe.metrics.classification import confusion

NAMES = [name for name, metric in METRICS.items() if metric.task == "classification"]


def value(name: str, outcome: Outcome):
    return measured(METRICS[name], outcome)


def outcome(truth: list[str], scores: list, classes: tuple[str, ...]) -> Outcome:
    return Outcome(np.array(truth, dtype=object), np.array(scores, dtype=np.float64).reshape(len(truth), len(classes)), classes)


def drawn(classes: tuple[str, ...], rows: int = 200, seed: int = 0) -> Outcome:
    random = np.random.default_rng(seed)
    truth = random.choice(classes, rows)
    scores = random.dirichlet(np.ones(len(classes)), rows)
    scores[np.arange(rows), [classes.index(t) for t in truth]] += 0.3
    return outcome(truth.tolist(), (scores / scores.sum(axis=1, keepdims=True)).tolist(), classes)


# positive is the second class, also where it comes first in the alphabet
BINARY = drawn(("yes", "no"))
THREE = drawn(("a", "b", "c"))


def expected(o: Outcome) -> dict[str, float]:
    """Each metric by scikit-learn, from names and not from numbers."""
    truth, predicted = o.truth.astype(str), np.array(o.classes)[o.scores.argmax(axis=1)]
    labels = list(o.classes)
    hot = np.stack([truth == name for name in labels], axis=1)
    if len(labels) == 2:
        kind = {"pos_label": labels[1]}
        positive = truth == labels[1]
        ranks = [theirs.roc_auc_score(positive, o.scores[:, 1]), theirs.average_precision_score(positive, o.scores[:, 1])]
        brier = theirs.brier_score_loss(positive, o.scores[:, 1])
    else:
        kind = {"labels": labels, "average": "macro"}
        ranks = [theirs.roc_auc_score(hot, o.scores, average="macro"), theirs.average_precision_score(hot, o.scores, average="macro")]
        brier = ((o.scores - hot) ** 2).sum(axis=1).mean()
    order = np.argsort(labels)
    return {
        "accuracy": theirs.accuracy_score(truth, predicted),
        "balanced_accuracy": theirs.balanced_accuracy_score(truth, predicted),
        "precision": theirs.precision_score(truth, predicted, **kind),
        "recall": theirs.recall_score(truth, predicted, **kind),
        "f1": theirs.f1_score(truth, predicted, **kind),
        "f1_macro": theirs.f1_score(truth, predicted, average="macro"),
        "f1_weighted": theirs.f1_score(truth, predicted, average="weighted"),
        "roc_auc": ranks[0],
        "average_precision": ranks[1],
        "log_loss": theirs.log_loss(truth, o.scores[:, order], labels=sorted(labels)),
        "brier": brier,
        "mcc": theirs.matthews_corrcoef(truth, predicted),
    }


@pytest.mark.parametrize("data", [BINARY, THREE], ids=["two classes", "three classes"])
def test_every_metric_is_scikit_learns(data):
    numbers = expected(data)
    assert set(numbers) == set(NAMES)
    found = {name: value(name, data).value for name in NAMES}
    assert found == pytest.approx(numbers, rel=1e-9)


@pytest.mark.parametrize("data", [BINARY, THREE], ids=["two classes", "three classes"])
def test_a_perfect_model_has_the_best_value_and_a_worse_one_a_worse(data):
    """`higher_is_better` says which way the best value lies."""
    hot = (data.truth[:, None] == np.array(data.classes, dtype=object)).astype(float)
    for name in NAMES:
        perfect = value(name, Outcome(data.truth, hot, data.classes)).value
        assert perfect == pytest.approx(1.0 if METRICS[name].higher_is_better else 0.0, abs=1e-9), name
        drawn_value = value(name, data).value
        assert (drawn_value < perfect) == METRICS[name].higher_is_better, name


def test_e03_with_one_class_present_a_ranking_is_undefined_with_the_reason():
    one = outcome(["no"] * 3, [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], ("no", "yes"))
    for name in ("roc_auc", "average_precision", "mcc"):
        assert value(name, one).as_json() == {"value": None, "reason": "only class no present"}
    assert value("recall", one).as_json() == {"value": None, "reason": "no row of class yes"}
    assert value("precision", one).value == 0.0
    assert value("accuracy", one).value == pytest.approx(2 / 3)
    assert value("log_loss", one).value == pytest.approx(-np.log([0.9, 0.2, 0.6]).mean())
    assert value("balanced_accuracy", one).value == pytest.approx(2 / 3)


def test_precision_and_f1_without_any_positive_are_undefined():
    one = outcome(["no", "no"], [[0.9, 0.1]] * 2, ("no", "yes"))
    assert value("precision", one).reason == "no row predicted as class yes"
    assert value("f1", one).reason == "no row of or predicted as class yes"


def test_a_class_of_three_without_a_row_leaves_rankings_undefined_by_its_name():
    two = outcome(["a", "b"], [[0.8, 0.1, 0.1], [0.2, 0.7, 0.1]], ("a", "b", "c"))
    assert value("roc_auc", two).reason == "class c has no row"
    assert value("accuracy", two).value == 1.0


@pytest.mark.parametrize("name", NAMES)
def test_no_rows_and_scores_that_are_not_finite_give_null_and_a_reason(name):
    assert value(name, outcome([], [], ("a", "b"))).as_json() == {"value": None, "reason": "there are no rows"}
    broken = outcome(["a", "b", "a"], [[np.nan, np.nan], [0.4, 0.6], [np.inf, 0.0]], ("a", "b"))
    assert value(name, broken).as_json() == {"value": None, "reason": "2 rows have a score that is not finite"}


@pytest.mark.parametrize("name", NAMES)
def test_rows_of_a_class_that_train_lacks_never_raise_and_never_help(name):
    known = outcome(["a", "b", "a", "b"], [[0.9, 0.1], [0.2, 0.8], [0.4, 0.6], [0.3, 0.7]], ("a", "b"))
    stranger = outcome([*known.truth, "z"], [*known.scores.tolist(), [0.9, 0.1]], ("a", "b"))
    before, after = value(name, known), value(name, stranger)
    assert after.value is not None
    assert np.isfinite(after.value)
    if name in ("precision", "recall", "f1", "roc_auc", "average_precision"):  # of the positive class: the stranger is a negative row
        negative = outcome([*known.truth, "a"], [*known.scores.tolist(), [0.9, 0.1]], ("a", "b"))
        assert after.value == pytest.approx(value(name, negative).value)
        return
    assert (after.value < before.value) if METRICS[name].higher_is_better else (after.value > before.value)


def test_an_unseen_class_counts_as_wrong():
    rows = outcome(["a", "b", "z"], [[0.9, 0.1], [0.1, 0.9], [0.5, 0.5]], ("a", "b"))
    assert value("accuracy", rows).value == pytest.approx(2 / 3)
    assert confusion(rows) == {"classes": ["a", "b", "z"], "rows": [[1, 0, 0], [0, 1, 0], [1, 0, 0]]}


def test_the_confusion_matrix_has_true_classes_in_rows():
    rows = outcome(["a", "a", "b"], [[0.1, 0.9], [0.8, 0.2], [0.3, 0.7]], ("a", "b"))
    assert confusion(rows) == {"classes": ["a", "b"], "rows": [[1, 1], [0, 1]]}


@given(st.integers(1, 6), st.integers(2, 4), st.integers(0, 10**6), st.sampled_from(["none", "unseen", "one class", "certain"]))
def test_whatever_the_rows_a_value_is_a_finite_number_or_null_with_a_reason(rows, classes, seed, oddity):
    """What goes to metrics.json is strict JSON."""
    random = np.random.default_rng(seed)
    names = tuple("abcd"[:classes])
    truth = random.choice([*names, *("z" * (oddity == "unseen"))], rows) if oddity != "one class" else np.array(["a"] * rows)
    scores = random.dirichlet(np.ones(classes), rows)
    scores = np.eye(classes)[scores.argmax(axis=1)] if oddity == "certain" else scores
    for name in NAMES:
        found = value(name, Outcome(truth.astype(object), scores, names))
        told = json.loads(json_text(found.as_json()))
        assert (told["value"] is None) == bool(told.get("reason"))
        assert told["value"] is None or np.isfinite(told["value"])


def test_metrics_do_not_depend_on_how_rows_are_sliced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores are made some rows at a time: ranks and counts are the same bit for bit, sums to the last bits."""
    import numpy as np

    from mlpipe.metrics import classification
    from mlpipe.metrics.base import Outcome, measured

    rng = np.random.default_rng(3)
    scores = rng.dirichlet([1, 1, 1], 500)
    truth = np.array(rng.choice(["a", "b", "c"], 500), dtype=object)
    whole = {m.name: measured(m, Outcome(truth, scores, ("a", "b", "c"))).value for m in classification.METRICS}
    monkeypatch.setattr(classification, "SLICE", 7)
    for metric in classification.METRICS:
        value = measured(metric, Outcome(truth, scores, ("a", "b", "c"))).value
        assert value == (pytest.approx(whole[metric.name], rel=1e-12) if metric.name in ("log_loss", "brier") else whole[metric.name])
