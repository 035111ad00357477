"""Metrics of classes, computed by scikit-learn on whole arrays of probabilities.

A row whose class train lacks counts as wrong: its class is added with probability 0. Metrics of the positive class
(precision, recall, F1, ROC AUC, average precision with two classes in train) take such a row for a negative one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mlpipe.metrics.base import Metric, Outcome, Undefined

SLICE = 1 << 18  # rows whose scores and texts are made at a time


class Codes:
    """An outcome in numbers: `truth` int32 [N]; `classes`, unseen last; and how many rows have each pair of true and predicted class.

    What compares labels alone needs the pairs and no rows. Scores are made one column or some rows at a time: float64, of
    sum 1 in each row.
    """

    def __init__(self, outcome: Outcome) -> None:
        import pyarrow as pa

        rows = len(outcome.truth)
        coded = [pa.array(outcome.truth[part], pa.string()).dictionary_encode() for part in _slices(rows)]
        names = {name for part in coded for name in part.dictionary.to_pylist()}
        self.classes = [*outcome.classes, *sorted(names - set(outcome.classes))]
        self.binary = len(outcome.classes) == 2  # also where test rows hold a third class: the positive one stays what it is
        self.labels = np.arange(len(self.classes))
        self.given = outcome.scores
        self.truth = np.empty(rows, dtype=np.int32)
        number = {name: i for i, name in enumerate(self.classes)}
        counts: dict[tuple[int, int], int] = {}
        for where, part in zip(_slices(rows), coded, strict=True):
            table = np.array([number[name] for name in part.dictionary.to_pylist()], dtype=np.int32)
            self.truth[where] = table[part.indices.to_numpy()]
            pairs = self.truth[where].astype(np.int64) * len(self.classes) + outcome.scores[where].argmax(axis=1)
            for pair, count in zip(*(found.tolist() for found in np.unique(pairs, return_counts=True)), strict=True):
                at = divmod(pair, len(self.classes))
                counts[at] = counts.get(at, 0) + count
        both = np.array(sorted(counts), dtype=np.int64).reshape(-1, 2)
        self.pairs = (both[:, 0], both[:, 1])
        self.weights = np.array([counts[at] for at in sorted(counts)], dtype=np.float64)  # of rows: whole numbers

    def scores(self, rows: slice) -> np.ndarray:
        """float64 [rows, classes]; 0 for a class that train lacks."""
        given = self.given[rows]
        found = np.zeros((len(given), len(self.classes)))
        found[:, : given.shape[1]] = given
        found /= found.sum(axis=1, keepdims=True)
        return found

    def column(self, k: int) -> np.ndarray:
        """float64 [N]: the scores of one class."""
        found = np.empty(len(self.truth))
        for part in _slices(len(found)):
            found[part] = self.scores(part)[:, k]
        return found

    def total(self, function: Callable[[np.ndarray, np.ndarray], float]) -> float:
        """The mean over rows of a function that gives the sum for some rows, from true codes and scores."""
        sums = [function(self.truth[part], self.scores(part)) for part in _slices(len(self.truth))]
        return math.fsum(sums) / len(self.truth)

    def two_sided(self) -> None:
        """Raises Undefined unless every class has a row and another class too: ranking needs both."""
        present = np.unique(self.truth).tolist()
        if len(present) == 1:
            raise Undefined(f"only class {self.classes[present[0]]} present")
        if absent := [name for i, name in enumerate(self.classes) if i not in present]:
            raise Undefined(f"class {absent[0]} has no row")


def _slices(rows: int) -> list[slice]:
    return [slice(start, min(start + SLICE, rows)) for start in range(0, rows, SLICE)]


def _codes(outcome: Outcome) -> Codes:
    """The outcome's codes, made once for all metrics."""
    if "codes" not in outcome.made:
        outcome.made["codes"] = Codes(outcome)
    found: Codes = outcome.made["codes"]
    return found


def _accuracy(c: Codes) -> float:
    from sklearn.metrics import accuracy_score

    return float(accuracy_score(*c.pairs, sample_weight=c.weights))


def _balanced_accuracy(c: Codes) -> float:
    from sklearn.metrics import recall_score

    present = np.unique(c.truth)
    return float(recall_score(*c.pairs, labels=present, average="macro", zero_division=0.0, sample_weight=c.weights))


def _of_positive(name: str) -> Callable[[Codes], float]:
    """Precision, recall or F1 of the positive class; for more than two classes their unweighted mean."""

    def compute(c: Codes) -> float:
        import sklearn.metrics

        function: Any = getattr(sklearn.metrics, f"{name}_score")
        if not c.binary:
            return float(function(*c.pairs, labels=c.labels, average="macro", zero_division=0.0, sample_weight=c.weights))
        value = float(function(*c.pairs, labels=[1], average="macro", zero_division=np.nan, sample_weight=c.weights))
        if np.isnan(value):
            what = {"precision": "predicted as", "recall": "of", "f1": "of or predicted as"}[name]
            raise Undefined(f"no row {what} class {c.classes[1]}")
        return value

    return compute


def _averaged(name: str, average: str) -> Callable[[Codes], float]:
    def compute(c: Codes) -> float:
        import sklearn.metrics

        function: Any = getattr(sklearn.metrics, f"{name}_score")
        return float(function(*c.pairs, labels=c.labels, average=average, zero_division=0.0, sample_weight=c.weights))

    return compute


def _ranking(name: str) -> Callable[[Codes], float]:
    """ROC AUC or average precision: of the positive class, or the mean of each class against the rest."""

    def compute(c: Codes) -> float:
        import sklearn.metrics

        c.two_sided()
        columns = [1] if c.binary else c.labels.tolist()
        if name == "roc_auc_score":  # what that does for two classes, without its copies of the labels
            return float(np.mean([sklearn.metrics.auc(*sklearn.metrics.roc_curve(c.truth == k, c.column(k))[:2]) for k in columns]))
        function: Any = getattr(sklearn.metrics, name)
        return float(np.mean([function(c.truth == k, c.column(k)) for k in columns]))

    return compute


def _log_loss(c: Codes) -> float:
    from sklearn.metrics import log_loss

    return c.total(lambda truth, scores: float(log_loss(truth, scores, labels=c.labels, normalize=False)))


def _brier(c: Codes) -> float:
    squares = c.total(lambda truth, scores: float(((scores - np.eye(len(c.classes))[truth]) ** 2).sum(axis=1).sum()))
    return squares / 2 if c.binary else squares  # for two classes the usual (p - y)^2 of the positive one


def _mcc(c: Codes) -> float:
    from sklearn.metrics import matthews_corrcoef

    if len(np.unique(c.truth)) == 1:
        raise Undefined(f"only class {c.classes[c.truth[0]]} present")
    return float(matthews_corrcoef(*c.pairs, sample_weight=c.weights))


def confusion(outcome: Outcome) -> dict[str, Any]:
    """`{"classes": [...], "rows": [[...]]}`: rows are the true classes, columns the predicted ones."""
    from sklearn.metrics import confusion_matrix

    c = _codes(outcome)
    return {"classes": c.classes, "rows": confusion_matrix(*c.pairs, labels=c.labels, sample_weight=c.weights).astype(np.int64).tolist()}


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
