"""What every task kind is: settings, fitted on the train targets; then loss, activation and decoding."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Literal

from mlpipe.base import Settings
from mlpipe.columns import Column

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    import torch


class FittedTask(Settings):
    """What was learned about the target from the train rows."""

    target: str

    @property
    @abstractmethod
    def outputs(self) -> int:
        """How many numbers the network gives for a row."""

    @abstractmethod
    def encode(self, values: pa.Array) -> np.ndarray:
        """Typed raw targets -> what the loss compares with: int64 [rows] (-1: a class that train lacks) or float32 [rows]."""

    @abstractmethod
    def loss(self, outputs: torch.Tensor, target: torch.Tensor, weights: torch.Tensor | None) -> torch.Tensor:
        """The mean loss of a batch: outputs [B, outputs], target [B] -> a scalar."""

    @abstractmethod
    def activate(self, outputs: torch.Tensor) -> torch.Tensor:
        """Network outputs [B, outputs] -> scores: probabilities float32 [B, classes], or float64 [B, 1] in the target's units."""

    @abstractmethod
    def decode(self, scores: np.ndarray) -> np.ndarray:
        """Scores -> labels, object [B]; or predictions, float64 [B]."""

    @abstractmethod
    def size(self, scores: np.ndarray) -> np.ndarray:
        """What a difference between two runs' scores is measured by, float64 of their shape: a harmless one is far below it."""

    @abstractmethod
    def truth(self, values: pa.Array) -> np.ndarray:
        """Typed raw targets as metrics compare them: object [rows] of labels or float64 [rows]."""

    @abstractmethod
    def baseline(self, rows: int) -> np.ndarray:
        """The scores of the trivial model that knows only the train targets: class shares, or the mean."""

    def summary(self) -> dict[str, Any]:
        """What a person wants to know about the fitted target."""
        return {}


class Task(Settings):
    """What is to be predicted."""

    target: str
    missing_target: Literal["fail", "drop"] = "fail"

    @abstractmethod
    def raw(self) -> Column:
        """The typed raw column of the target."""

    @abstractmethod
    def fit(self, values: pa.ChunkedArray) -> FittedTask:
        """The fitted task from typed train targets. Raises DataError when they cannot be learned."""

    @property
    @abstractmethod
    def default_metrics(self) -> tuple[str, ...]:
        """The metrics that are computed when the pipeline file names none."""
