"""What the train rows of a column look like, for `profile.json`: enough to tell later whether new rows look alike.

`mlpipe drift` compares rows with this file alone; it ships with the export. Numbers and times (in seconds) have ranges
(about a tenth of the rows each) and knots at which their distribution function is known exactly; text has its most
common values. A value that stands once, or is longer than 100 characters, is not written down.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mlpipe.columns import sorted_numbers, sorted_quantiles, text_counts
from mlpipe.stages.prose import prose

if TYPE_CHECKING:
    import pyarrow as pa

QUANTILES = (0.0, 0.001, *(i / 100 for i in range(1, 100)), 0.999, 1.0)
EDGES = tuple(i / 10 for i in range(1, 10))
KNOTS = 256
TOP = 20
LONGEST = 100
BLOCK = 65_536


def profile_column(values: pa.ChunkedArray, free: bool = False) -> dict[str, Any]:
    """Counts; for text distinct and common values and lengths; for numbers and times (seconds) moments, quantiles, ranges, knots."""
    import pyarrow as pa

    base: dict[str, Any] = {"rows": len(values), "missing": values.null_count}
    kind = values.type
    if pa.types.is_dictionary(kind) or pa.types.is_string(kind):
        counts = text_counts(values)
        return {**base, "kind": "text", **_text(counts), **({"prose": prose(counts)} if free else {})}
    timed = pa.types.is_timestamp(kind)
    numbers = sorted_numbers(values.cast(pa.int64())) / 1e6 if timed else sorted_numbers(values)
    return {**base, "kind": "timestamp" if timed else "number", **(_numbers(numbers) if len(numbers) else {})}


def _text(counts: dict[str, int]) -> dict[str, Any]:
    common = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:TOP]
    top: list[list[Any]] = [[value, count] for value, count in common if count > 1 and len(value) <= LONGEST]
    found: dict[str, Any] = {"distinct": len(counts), "top": top, "other": sum(counts.values()) - sum(count for _, count in top)}
    if counts:
        lengths = np.fromiter(map(len, counts), dtype=np.int64, count=len(counts))
        weights = np.fromiter(counts.values(), dtype=np.int64, count=len(counts))
        order = np.argsort(lengths, kind="stable")
        upto = np.cumsum(weights[order])
        at = [int(lengths[order][np.searchsorted(upto, share * upto[-1])]) for share in (0.5, 0.95)]
        found["lengths"] = {"min": int(lengths.min()), "median": at[0], "p95": at[1], "max": int(lengths.max())}
    return found


def _spread(numbers: np.ndarray, mean: float) -> float:
    """The population deviation, block by block: numpy's own makes two arrays as large as the column."""
    blocks: Any = (numbers[start : start + BLOCK] - mean for start in range(0, len(numbers), BLOCK))
    return float(np.sqrt(sum(float(np.square(block).sum()) for block in blocks) / len(numbers)))


def _numbers(numbers: np.ndarray) -> dict[str, Any]:
    """Of sorted numbers."""
    quantiles = {repr(q): float(v) for q, v in zip(QUANTILES, sorted_quantiles(numbers, np.array(QUANTILES)), strict=True)}
    low, high = float(numbers[0]), float(numbers[-1])
    with np.errstate(over="ignore", invalid="ignore"):
        mean = low if low == high else float(numbers.mean())
        deviation = 0.0 if low == high else _spread(numbers, mean)
    # ranges (-inf, e1], (e1, e2], ..., (ek, inf) with edges that are values of the column
    edges = np.unique(numbers[[int(share * (len(numbers) - 1)) for share in EDGES]])
    edges = edges[edges < high]
    upto = np.searchsorted(numbers, edges, side="right")
    changes: np.ndarray = np.flatnonzero(numbers[1:] != numbers[:-1])
    if len(changes) < KNOTS:
        knots = numbers[np.append(changes, len(numbers) - 1)]
    else:
        knots = np.unique(numbers[np.linspace(0, len(numbers) - 1, KNOTS).astype(np.int64)])
    return {
        "mean": mean if np.isfinite(mean) else None,
        "deviation": deviation if np.isfinite(deviation) else None,
        "distinct": len(changes) + 1,
        "quantiles": quantiles,
        "ranges": {"edges": edges.tolist(), "counts": np.diff(np.concatenate([[0], upto, [len(numbers)]])).tolist()},
        "distribution": {
            "at": knots.tolist(),
            "below": np.searchsorted(numbers, knots, side="left").tolist(),
            "upto": np.searchsorted(numbers, knots, side="right").tolist(),
        },
    }


def add_held_out(profile: dict[str, Any], rows: int, unseen: Mapping[str, Any]) -> None:
    """Adds to each text column how many valid rows have a value without a code of its own: what new rows are to be measured by.

    The train rows chose the codes, so that fewer of them have none; test rows take no part in anything. `unseen` is what
    `Strangers.told` gives for the valid rows.
    """
    for name, column in profile["columns"].items():
        if column["kind"] == "text" and "prose" not in column:
            column["held_out"] = {"rows": rows, "without_code": unseen.get(name, {}).get("rows", 0)}
