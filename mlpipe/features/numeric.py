"""Feature `numeric`: fill gaps, mark them, scale."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import model_validator

from mlpipe.columns import Column, sorted_numbers, sorted_quantiles
from mlpipe.features.base import Feature, Fitted
from mlpipe.features.graph import GraphBuilder, Part

if TYPE_CHECKING:
    import pyarrow as pa

FLOAT32_SAFE = 1e30


class FittedNumeric(Fitted):
    """Fill gaps with a number learned from the train rows, scale, and mark the gaps.

    In:  one input, double [B, 1], NaN where a value is missing.
    Out: `numeric` float32 [B, 1]: the scaled value; with an indicator also `plain` float32 [B, 1]: 1.0 where it was missing.

    `standard` gives (x - mean) / deviation, held within `clip` deviations; a column that is constant in training has
    deviation 1, so that it becomes 0 and not NaN. `quantile` maps the training distribution to a standard normal as a
    piecewise-linear function through `knots`: y0 + sum_i clip((x - x_i) / (x_{i+1} - x_i), 0, 1) * (y_{i+1} - y_i).
    """

    kind: Literal["numeric"] = "numeric"
    fill: float
    indicator: bool
    scale: Literal["standard", "quantile", "none"]
    mean: float | None = None
    deviation: float | None = None
    minimum: float | None = None
    maximum: float | None = None
    missing: int = 0
    clip: float | None = None
    knots: tuple[float, ...] = ()
    normal: tuple[float, ...] = ()

    def emit(self, graph: GraphBuilder) -> list[Part]:
        """IsNaN, Where, then the scaling in double, then a Cast to float32."""
        c = self.column
        x = graph.input(c, "number")
        gap = graph.node("IsNaN", [x], f"{c}/missing")
        filled = graph.node("Where", [gap, graph.constant(f"{c}/fill", np.array([[self.fill]])), x], f"{c}/filled")
        if self.scale == "quantile" and len(self.knots) > 1:
            scaled = self._quantile(graph, filled)
        elif self.scale == "quantile":
            nothing = graph.constant(f"{c}/zero", np.array(0.0))
            scaled = graph.node("Clip", [filled, nothing, nothing], f"{c}/flat")  # 0 for any number, infinite ones too
        elif self.scale == "standard":
            centred = graph.node("Sub", [filled, graph.constant(f"{c}/mean", np.array([[self.mean]]))], f"{c}/centred")
            scaled = graph.node("Div", [centred, graph.constant(f"{c}/deviation", np.array([[self.deviation]]))], f"{c}/standard")
        else:
            scaled = filled
        bound = FLOAT32_SAFE if self.clip is None or self.scale != "standard" else self.clip
        low, high = graph.constant(f"{c}/low", np.array(-bound)), graph.constant(f"{c}/high", np.array(bound))
        held = graph.node("Clip", [scaled, low, high], f"{c}/held")
        parts = [Part("numeric", graph.node("Cast", [held], f"{c}/numeric", to=1), (c,))]
        if self.indicator:
            parts.append(Part("plain", graph.node("Cast", [gap], f"{c}/indicator", to=1), (f"{c} is missing",)))
        return parts

    def _quantile(self, graph: GraphBuilder, filled: str) -> str:
        """[B, 1] double -> [B, K-1] shares of segments -> [B, 1] double."""
        c = self.column
        knots, normal = np.array(self.knots), np.array(self.normal)
        if not np.isfinite(np.diff(knots)).all():  # distances beyond float64: all in quarters
            filled, knots = graph.node("Mul", [filled, graph.constant(f"{c}/quarter", np.array(0.25))], f"{c}/quartered"), knots / 4
        base = graph.node("Sub", [filled, graph.constant(f"{c}/knots", knots[:-1][None])], f"{c}/above")
        share = graph.node("Div", [base, graph.constant(f"{c}/widths", np.diff(knots)[None])], f"{c}/share")
        zero, one = graph.constant(f"{c}/zero", np.array(0.0)), graph.constant(f"{c}/one", np.array(1.0))
        held = graph.node("Clip", [share, zero, one], f"{c}/segments")
        rise = graph.node("MatMul", [held, graph.constant(f"{c}/rises", np.diff(normal)[:, None])], f"{c}/rise")
        return graph.node("Add", [rise, graph.constant(f"{c}/start", normal[:1][None])], f"{c}/normal")

    def remarks(self) -> list[str]:
        """A column that says nothing is harmless, and named."""
        if self.minimum is None:
            return [f"{self.column}: no value in the train rows; it carries nothing"]
        if self.minimum == self.maximum and not self.missing:
            return [f"{self.column}: constant in the train rows ({self.minimum!r}); it carries nothing"]
        return []


class Numeric(Feature):
    """Numbers: gaps filled, marked where there are any, then scaled. All fitted on train rows only."""

    kind: Literal["numeric"] = "numeric"
    fill: Literal["median", "mean", "constant"] = "median"
    fill_value: float | None = None
    indicator: Literal["auto", "always", "never"] = "auto"
    scale: Literal["standard", "quantile", "none"] = "standard"
    clip: float | None = 10.0
    knots: int = 128

    @model_validator(mode="after")
    def _consistent(self) -> Numeric:
        if (self.fill == "constant") != (self.fill_value is not None):
            raise ValueError("fill_value goes with fill: constant, and only with it")
        if self.clip is not None and self.clip <= 0:
            raise ValueError(f"clip must be above 0, not {self.clip}")
        if not 2 <= self.knots <= 10_000:
            raise ValueError(f"knots must be from 2 to 10,000, not {self.knots}")
        return self

    def raw(self, column: str) -> Column:
        """A number."""
        return Column(name=column, type="number")

    def fit(self, column: str, values: pa.ChunkedArray) -> FittedNumeric:
        """Median, mean, deviation (population) or quantile knots of the train values that are not missing."""
        present = sorted_numbers(values)  # sums in order of size: the order of rows does not matter
        missing = len(values) - len(present)
        indicator = self.indicator == "always" or (self.indicator == "auto" and 0 < missing < len(values))
        base: dict[str, Any] = {"column": column, "indicator": indicator, "scale": self.scale, "missing": missing, "clip": self.clip}
        if not len(present):
            return FittedNumeric(fill=self.fill_value or 0.0, mean=0.0, deviation=1.0, **base)
        low, high = float(present.min()), float(present.max())
        with np.errstate(over="ignore", invalid="ignore"):
            mean = low if low == high else float(present.mean())
            deviation = 0.0 if low == high else _spread(present, mean)
        if not np.isfinite(mean) or not np.isfinite(deviation):  # sums beyond float64: scale first, then undo
            size = max(abs(low), abs(high))
            mean, deviation = float((present / size).mean() * size), float((present / size).std() * size)
        # a spread that is only rounding (14.62 stored a thousand times has 3.6e-15) is none; one of some units in the last place is one
        deviation = deviation if deviation > 1e-15 * max(abs(low), abs(high)) and np.isfinite(deviation) else 1.0
        fill = {"median": _median(present), "mean": mean, "constant": self.fill_value}[self.fill]
        fitted = {**base, "fill": fill, "mean": mean, "deviation": deviation, "minimum": low, "maximum": high}
        if self.scale == "quantile":
            fitted["knots"], fitted["normal"] = quantile_knots(present, self.knots)
        return FittedNumeric(**fitted)


BLOCK = 65_536


def _spread(present: np.ndarray, mean: float) -> float:
    """The population deviation about `mean`, block by block: numpy's own makes two arrays as large as the column."""
    squares = [float(np.square(present[start : start + BLOCK] - mean).sum()) for start in range(0, len(present), BLOCK)]
    return math.sqrt(math.fsum(squares) / len(present)) if all(map(math.isfinite, squares)) else math.inf


def _median(present: np.ndarray) -> float:
    """The median of sorted numbers; half of each middle value, so that two huge ones do not overflow."""
    low, high = float(present[(len(present) - 1) // 2]), float(present[len(present) // 2])
    return low if low == high else low / 2 + high / 2


def quantile_knots(present: np.ndarray, count: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Knots of a piecewise-linear map to a standard normal: `count` even quantiles, equal ones joined at their mean rank.

    In: float64 [N], sorted. Out: increasing knots, and the normal quantile of each (ranks held within 1e-4 and 1 - 1e-4, so
    that the ends stay at about -3.7 and 3.7). scikit-learn's QuantileTransformer(output_distribution="normal") is the
    same idea; here a value that fills several quantiles gets their mean rank.
    """
    from statistics import NormalDist

    ranks = np.linspace(0.0, 1.0, count)
    unit = 4.0 if max(abs(present.min()), abs(present.max())) > 1e300 else 1.0  # distances beyond float64 are no numbers
    quantiles = sorted_quantiles(present, ranks) if unit == 1.0 else sorted_quantiles(present / unit, ranks) * unit
    knots, owner = np.unique(quantiles, return_inverse=True)
    mean_rank = np.bincount(owner, weights=ranks) / np.bincount(owner)
    normal = [NormalDist().inv_cdf(min(max(float(rank), 1e-4), 1 - 1e-4)) for rank in mean_rank]
    return tuple(float(k) for k in knots), tuple(normal)
