"""Metrics of classes, computed by scikit-learn on whole arrays of probabilities.

A row whose class train lacks counts as wrong: its class is added with probability 0. Metrics of the positive class
(precision, recall, F1, ROC AUC, average precision with two classes in train) take such a row for a negative one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mlpipe.metrics.base import Metric, Outcome, Undefined

SLICE = 1 << 20  # rows


class Codes:
    """An outcome in numbers: `truth`, `label` int64 [N]; `scores` float64 [N, classes] that sum to 1; `classes`, unseen last."""

    def __init__(self, outcome: Outcome) -> None:
        import pyarrow as pa

        coded = [  # in slices: the texts of all rows, one after the other, are the largest thing that would be made here
            pa.array(outcome.truth[start : start + SLICE], pa.string()).dictionary_encode() for start in range(0, len(outcome.truth), SLICE)
        ]
        names = {name for part in coded for name in part.dictionary.to_pylist()}
        self.classes = [*outcome.classes, *sorted(names - set(outcome.classes))]
        number = {name: i for i, name in enumerate(self.classes)}
        self.truth = np.empty(len(outcome.truth), dtype=np.int64)
        for i, part in enumerate(coded):
            table = np.array([number[name] for name in part.dictionary.to_pylist()], dtype=np.int64)
            self.truth[i * SLICE : i * SLICE + len(part)] = table[part.indices.to_numpy()]
        del coded
        self.scores = np.zeros((len(self.truth), len(self.classes)))
        self.scores[:, : len(outcome.classes)] = outcome.scores
        self.scores /= self.scores.sum(axis=1, keepdims=True)
        self.label = outcome.scores.argmax(axis=1)
        self.binary = len(outcome.classes) == 2  # also where test rows hold a third class: the positive one stays what it is
        self.labels = np.arange(len(self.classes))

    def two_sided(self) -> None:
        """Raises Undefined unless every class has a row and another class too: ranking needs both."""
        present = np.unique(self.truth).tolist()
        if len(present) == 1:
            raise Undefined(f"only class {self.classes[present[0]]} present")
        if absent := [name for i, name in enumerate(self.classes) if i not in present]:
            raise Undefined(f"class {absent[0]} has no row")


def _codes(outcome: Outcome) -> Codes:
    """The outcome's codes, made once for all metrics."""
    if "codes" not in outcome.made:
        outcome.made["codes"] = Codes(outcome)
    found: Codes = outcome.made["codes"]
    return found


def _accuracy(c: Codes) -> float:
    from sklearn.metrics import accuracy_score

    return float(accuracy_score(c.truth, c.label))


def _balanced_accuracy(c: Codes) -> float:
    from sklearn.metrics import recall_score

    present = np.unique(c.truth)
    return float(recall_score(c.truth, c.label, labels=present, average="macro", zero_division=0.0))


def _of_positive(name: str) -> Callable[[Codes], float]:
    """Precision, recall or F1 of the positive class; for more than two classes their unweighted mean."""

    def compute(c: Codes) -> float:
        import sklearn.metrics

        function: Any = getattr(sklearn.metrics, f"{name}_score")
        if not c.binary:
            return float(function(c.truth, c.label, labels=c.labels, average="macro", zero_division=0.0))
        value = float(function(c.truth, c.label, labels=[1], average="macro", zero_division=np.nan))
        if np.isnan(value):
            what = {"precision": "predicted as", "recall": "of", "f1": "of or predicted as"}[name]
            raise Undefined(f"no row {what} class {c.classes[1]}")
        return value

    return compute


def _averaged(name: str, average: str) -> Callable[[Codes], float]:
    def compute(c: Codes) -> float:
        import sklearn.metrics

        function: Any = getattr(sklearn.metrics, f"{name}_score")
        return float(function(c.truth, c.label, labels=c.labels, average=average, zero_division=0.0))

    return compute


def _ranking(name: str) -> Callable[[Codes], float]:
    """ROC AUC or average precision: of the positive class, or the mean of each class against the rest."""

    def compute(c: Codes) -> float:
        import sklearn.metrics

        c.two_sided()
        function: Any = getattr(sklearn.metrics, name)
        columns = [1] if c.binary else list(c.labels)
        return float(np.mean([function(c.truth == k, c.scores[:, k]) for k in columns]))

    return compute


def _log_loss(c: Codes) -> float:
    from sklearn.metrics import log_loss

    return float(log_loss(c.truth, c.scores, labels=c.labels))


def _brier(c: Codes) -> float:
    squares = float(np.mean(((c.scores - np.eye(len(c.classes))[c.truth]) ** 2).sum(axis=1)))
    return squares / 2 if c.binary else squares  # for two classes the usual (p - y)^2 of the positive one


def _mcc(c: Codes) -> float:
    from sklearn.metrics import matthews_corrcoef

    if len(np.unique(c.truth)) == 1:
        raise Undefined(f"only class {c.classes[c.truth[0]]} present")
    return float(matthews_corrcoef(c.truth, c.label))


def confusion(outcome: Outcome) -> dict[str, Any]:
    """`{"classes": [...], "rows": [[...]]}`: rows are the true classes, columns the predicted ones."""
    from sklearn.metrics import confusion_matrix

    c = _codes(outcome)
    return {"classes": c.classes, "rows": confusion_matrix(c.truth, c.label, labels=c.labels).tolist()}


def _metric(name: str, higher: bool, meaning: str, compute: Callable[[Codes], float]) -> Metric:
    return Metric(name, "classification", higher, meaning, lambda outcome: compute(_codes(outcome)))


METRICS = (
    _metric("accuracy", True, "share of rows with the right class", _accuracy),
    _metric("balanced_accuracy", True, "mean recall of the classes present", _balanced_accuracy),
    _metric("precision", True, "of the positive class; macro mean for more than two", _of_positive("precision")),
    _metric("recall", True, "of the positive class; macro mean for more than two", _of_positive("recall")),
    _metric("f1", True, "of the positive class; macro mean for more than two", _of_positive("f1")),
    _metric("f1_macro", True, "unweighted mean F1 of the classes", _averaged("f1", "macro")),
    _metric("f1_weighted", True, "mean F1 of the classes by their rows", _averaged("f1", "weighted")),
    _metric("roc_auc", True, "area under the ROC curve; one against the rest, macro mean", _ranking("roc_auc_score")),
    _metric("average_precision", True, "area under the precision-recall steps; macro mean", _ranking("average_precision_score")),
    _metric("log_loss", False, "mean negative log probability of the right class", _log_loss),
    _metric("brier", False, "mean squared error of the probabilities (summed over classes if more than two)", _brier),
    _metric("mcc", True, "Matthews correlation coefficient", _mcc),
)
