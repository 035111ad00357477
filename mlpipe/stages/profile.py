"""What the train rows of a column look like, for `profile.json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mlpipe.columns import sorted_numbers, sorted_quantiles, text_counts

if TYPE_CHECKING:
    import pyarrow as pa

QUANTILES = (0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)
TOP = 20


def profile_column(values: pa.ChunkedArray) -> dict[str, Any]:
    """Counts, and for text the distinct values and the most frequent ones; for numbers and times (seconds) the quantiles."""
    import pyarrow as pa

    base: dict[str, Any] = {"rows": len(values), "missing": values.null_count}
    kind = values.type
    if pa.types.is_dictionary(kind) or pa.types.is_string(kind):
        counts = text_counts(values)
        top = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:TOP]
        return {**base, "kind": "text", "distinct": len(counts), "top": [[value, count] for value, count in top]}
    timed = pa.types.is_timestamp(kind)
    numbers = sorted_numbers(values.cast(pa.int64())) / 1e6 if timed else sorted_numbers(values)
    name = "timestamp" if timed else "number"
    if not len(numbers):
        return {**base, "kind": name}
    quantiles = {repr(q): float(v) for q, v in zip(QUANTILES, sorted_quantiles(numbers, np.array(QUANTILES)), strict=True)}
    return {**base, "kind": name, "quantiles": quantiles}
