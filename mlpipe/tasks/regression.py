"""Task `regression`: a number, learned scaled (and as a logarithm if asked), given back in its own units."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mlpipe.columns import Column
from mlpipe.errors import DataError
from mlpipe.tasks.base import FittedTask, Task

if TYPE_CHECKING:
    import pyarrow as pa
    import torch

Transform = Literal["none", "log", "log1p"]


class FittedRegression(FittedTask):
    """How targets are scaled for the network, and how predictions are scaled back inside the exported graph."""

    kind: Literal["regression"] = "regression"
    transform: Transform
    mean: float
    deviation: float
    raw_mean: float
    minimum: float
    maximum: float

    @property
    def outputs(self) -> int:
        """One number."""
        return 1

    def encode(self, values: pa.Array) -> np.ndarray:
        """(f(y) - mean) / deviation, float32 [rows]; f is the transform."""
        return ((forward(_numbers(values), self.transform) - self.mean) / self.deviation).astype(np.float32)

    def loss(self, outputs: torch.Tensor, target: torch.Tensor, weights: torch.Tensor | None) -> torch.Tensor:
        """Mean squared error of the scaled target."""
        from torch.nn import functional

        return functional.mse_loss(outputs[:, 0], target.to(outputs.dtype))

    def activate(self, outputs: torch.Tensor) -> torch.Tensor:
        """Predictions in the target's own units, float64 [B, 1]."""
        import torch

        scaled = outputs.to(torch.float64) * self.deviation + self.mean
        if self.transform == "none":
            return scaled
        grown = torch.exp(scaled)
        return grown - 1 if self.transform == "log1p" else grown

    def decode(self, scores: np.ndarray) -> np.ndarray:
        """float64 [B]."""
        return scores[:, 0].astype(np.float64)

    def size(self, scores: np.ndarray) -> np.ndarray:
        """What a difference of predictions is measured by, float64 [B, 1].

        The larger of the prediction and the target's deviation in train; of a logarithm the prediction alone, as its errors are
        relative ones.
        """
        own: np.ndarray = np.abs(scores)
        if self.transform == "none":
            return np.asarray(np.maximum(own, min(self.deviation, self.maximum - self.minimum)))
        return own if self.transform == "log" else own + 1

    def truth(self, values: pa.Array) -> np.ndarray:
        """float64 [rows]."""
        return _numbers(values)

    def baseline(self, rows: int) -> np.ndarray:
        """The train mean for every row, float64 [rows, 1]."""
        return np.full((rows, 1), self.raw_mean)

    def summary(self) -> dict[str, Any]:
        """Range and mean in train."""
        return {"minimum": self.minimum, "maximum": self.maximum, "mean": self.raw_mean}


class Regression(Task):
    """A number. `transform: log` learns its logarithm (it must be above 0), `log1p` that of 1 + y (y above -1)."""

    kind: Literal["regression"] = "regression"
    transform: Transform = "none"
    scale: Literal["standard", "none"] = "standard"

    def raw(self) -> Column:
        """A number."""
        return Column(name=self.target, type="number")

    def fit(self, values: pa.ChunkedArray) -> FittedRegression:
        """Mean and deviation of the transformed train targets."""
        y = values.drop_null().to_numpy()
        if not len(y):
            raise DataError(f"the target {self.target!r} has no value in the {len(values):,} train rows")
        if y.min() == y.max():
            raise DataError(f"the target {self.target!r} is {float(y.min())!r} in every train row: there is nothing to learn")
        z = forward(y, self.transform)
        with np.errstate(over="ignore", invalid="ignore"):
            if not np.isfinite([y.mean(), z.mean(), z.std()]).all():
                raise DataError(
                    f"the target {self.target!r} has values so large that their mean is no number", hint="learn it in larger units"
                )
            if not z.std() > 0:
                raise DataError(f"the target {self.target!r} varies too little for a spread", hint="learn it in smaller units")
        scaled = self.scale == "standard"
        return FittedRegression(
            target=self.target,
            transform=self.transform,
            mean=float(z.mean()) if scaled else 0.0,
            deviation=float(z.std()) if scaled else 1.0,
            raw_mean=float(y.mean()),
            minimum=float(y.min()),
            maximum=float(y.max()),
        )

    def refused(self, value: float) -> str | None:
        """Why the transform does not admit a target value, or None."""
        if self.transform == "log" and value <= 0:
            return "transform: log needs targets above 0; log1p takes 0"
        if self.transform == "log1p" and value <= -1:
            return "transform: log1p needs targets above -1"
        return None

    @property
    def default_metrics(self) -> tuple[str, ...]:
        """The usual three."""
        return ("rmse", "mae", "r2")


def forward(y: np.ndarray, transform: Transform) -> np.ndarray:
    """The transform of float64 targets."""
    if transform == "log":
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.log(y))
    return np.asarray(np.log1p(y)) if transform == "log1p" else y


def _numbers(values: Any) -> np.ndarray:
    numbers: np.ndarray = values.to_numpy(zero_copy_only=False)
    return numbers
