"""What a metric is: a name, a direction, and a function on whole arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

TaskKind = Literal["classification", "regression"]


class Undefined(Exception):  # noqa: N818 (a value that is not there, not an error)
    """A metric has no value for these rows; the text says why."""


@dataclass(frozen=True)
class Outcome:
    """What metrics compare, whole.

    `truth` object [N] of labels or float64 [N]; `scores` float64 [N, classes] of probabilities or [N, 1] of predictions;
    `classes` are those of the train rows, in the order of the scores' columns; with two, the second is the positive one.
    """

    truth: np.ndarray
    scores: np.ndarray
    classes: tuple[str, ...] = ()
    made: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)  # what metrics share, made once


@dataclass(frozen=True)
class Metric:
    """A metric by name. `compute` takes an Outcome and raises Undefined where there is no value."""

    name: str
    task: TaskKind
    higher_is_better: bool
    meaning: str
    compute: Callable[[Outcome], float]


@dataclass(frozen=True)
class Value:
    """A metric's value, or None and the reason."""

    value: float | None
    reason: str | None = None

    def as_json(self) -> dict[str, Any]:
        """`{"value": 0.87}`, or `{"value": null, "reason": "..."}`."""
        return {"value": self.value} if self.reason is None else {"value": None, "reason": self.reason}


def measured(metric: Metric, outcome: Outcome) -> Value:
    """The metric's value; undefined for no rows, for scores that are not finite, and where the metric says so."""
    if not len(outcome.truth):
        return Value(None, "there are no rows")
    if bad := int((~np.isfinite(outcome.scores)).any(axis=1).sum()):
        return Value(None, f"{bad:,} rows have a score that is not finite")
    try:
        value = float(metric.compute(outcome))
    except Undefined as why:
        return Value(None, str(why))
    return Value(value) if np.isfinite(value) else Value(None, f"the value is {value}")
