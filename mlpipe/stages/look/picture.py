"""A column drawn in one line of text: bars for the parts of its range, or for its most frequent values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlpipe.base import NumberFormat
from mlpipe.stages.look.survey import Cells, numbers

if TYPE_CHECKING:
    import numpy as np

BARS = "▁▂▃▄▅▆▇█"
BINS = 10
TAIL = 0.01  # of the rows at either end share the outermost bars, so that one far value does not flatten the rest


def histogram(column: Cells, form: NumberFormat, *, numeric: bool) -> list[int]:
    """Rows by tenth of the range (of numbers), or rows by value, the most frequent first (of text); at most ten counts."""
    import numpy as np

    if not numeric:  # among words, tokens such as NA are values
        words = [*column.values.values(), *(count for text, count in column.tokens.items() if text != "?")]
        return sorted(words, reverse=True)[:BINS]
    if not column.values:
        return []
    counts = np.array(list(column.values.values()), dtype=np.int64)
    values = numbers(list(column.values), form)[0]
    if np.isnan(values).any():
        return []
    low, high = _range(values, counts)
    if low == high:
        return [int(counts.sum())]
    bins = min(BINS, len(values))
    found, _ = np.histogram(np.clip(values, low, high), bins=bins, range=(low, high), weights=counts)
    return [int(count) for count in found]


def _range(values: np.ndarray, counts: np.ndarray) -> tuple[float, float]:
    import numpy as np

    order = np.argsort(values, kind="stable")
    below = np.cumsum(counts[order])
    first, last = np.searchsorted(below, [TAIL * below[-1], (1 - TAIL) * below[-1]])
    low, high = float(values[order[first]]), float(values[order[min(last, len(values) - 1)]])
    return (low, high) if low < high else (float(values.min()), float(values.max()))


def sparkline(counts: list[int]) -> str:
    """Counts as bars; a part without rows is a blank."""
    most = max(counts, default=0)
    return "".join(" " if not count else BARS[min(len(BARS) - 1, count * len(BARS) // most)] for count in counts)
