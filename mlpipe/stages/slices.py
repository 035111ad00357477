"""The metrics of parts of the test rows: by language, by country, by whatever a column says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mlpipe.metrics import METRICS
from mlpipe.metrics.base import Outcome, measured

MOST = 100  # slices of a column that are shown; the smaller ones are counted
NONE = "(missing)"
SHOWN = 3  # slices of a column that are said on screen: the worst


def sliced(column: Any, outcome: Outcome, names: Sequence[str]) -> dict[str, Any]:
    """`{value: {n, metric, ...}}` for the values of a column (Arrow text [N]), the largest slices first; null where undefined."""
    import pyarrow as pa

    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    array = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
    table = [*array.dictionary.to_pylist(), NONE]
    codes: np.ndarray = array.indices.fill_null(len(table) - 1).to_numpy(zero_copy_only=False)
    counts = np.bincount(codes, minlength=len(table))
    order = sorted(np.flatnonzero(counts).tolist(), key=lambda code: (-counts[code], table[code]))
    found: dict[str, Any] = {}
    for code in order[:MOST]:
        where = codes == code
        part = Outcome(outcome.truth[where], outcome.scores[where], outcome.classes)
        found[table[code]] = {"n": int(counts[code]), **{name: measured(METRICS[name], part).value for name in names}}
    rest = order[MOST:]
    return {"slices": found, "not_shown": {"slices": len(rest), "rows": int(counts[rest].sum())}}


def slice_lines(slices: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """For each column a line of what is worst by the first metric."""
    lines, metric = [], names[0]
    for column, entry in slices.items():
        known = [(value, part) for value, part in entry["slices"].items() if part[metric] is not None]
        higher = METRICS[metric].higher_is_better
        worst = sorted(known, key=lambda item: item[1][metric] if higher else -item[1][metric])[:SHOWN]
        told = ", ".join(f"{value} {part[metric]:.4g} of {part['n']:,}" for value, part in worst)
        hidden = f"; {entry['not_shown']['slices']:,} smaller ones are not shown" if entry["not_shown"]["slices"] else ""
        lines.append(
            f"{metric} by {column}, the lowest first: {told}{hidden}"
            if higher
            else f"{metric} by {column}, the highest first: {told}{hidden}"
        )
    return lines
