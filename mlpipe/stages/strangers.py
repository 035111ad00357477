"""Values and classes of valid and test rows that the train rows lack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mlpipe.errors import DataError, listed
from mlpipe.schema import Schema
from mlpipe.tasks.classification import FittedClassification

if TYPE_CHECKING:
    import pyarrow as pa


def count_strangers(array: Any, known: frozenset[str]) -> dict[str, int]:
    """How often each value stands in a dictionary-encoded column that is not among the known ones; missing cells do not count."""
    strange = {code: value for code, value in enumerate(array.dictionary.to_pylist()) if value and value not in known}
    if not strange:
        return {}
    codes, counts = np.unique(array.indices.drop_null().to_numpy(zero_copy_only=False), return_counts=True)
    return {strange[code]: count for code, count in zip(codes.tolist(), counts.tolist(), strict=True) if code in strange}


class Strangers:
    """Counts values and classes that the train rows lack, on the distinct values of each batch."""

    def __init__(self, schema: Schema) -> None:
        self.known = {f.column: (f.known(), f.strict()) for f in schema.features if f.known() is not None}
        self.rare: dict[str, bool] = {f.column: bool(getattr(f, "rare_values", 0)) for f in schema.features}
        if isinstance(schema.task, FittedClassification):
            self.known[schema.task.target] = (frozenset(schema.task.classes), False)
        self.target = schema.task.target
        self.counts: dict[str, dict[str, int]] = {}

    def look(self, batch: pa.RecordBatch) -> None:
        """Counts the strangers of a batch."""
        for column, (known, _) in self.known.items():
            mine = self.counts.setdefault(column, {})
            for value, count in count_strangers(batch.column(column), known or frozenset()).items():
                mine[value] = mine.get(value, 0) + count

    def told(self, split: str, notes: list[str]) -> dict[str, Any]:
        """The counts, each said in a note. Raises DataError where a column is strict."""
        found = {}
        for column, counts in self.counts.items():
            if not counts:
                continue
            total = sum(counts.values())
            shown = listed([f"{value}" for value in sorted(counts, key=lambda v: (-counts[v], v))], 5)
            what = "a class that train lacks; they count as wrong" if column == self.target else "unseen values"
            if column != self.target and self.rare.get(column):
                what = "unseen or rare values"
            notes.append(f"{split}: {column}: {total:,} rows with {what} ({shown})")
            if self.known[column][1]:
                raise DataError(
                    f"{split}: column {column!r} has {total:,} rows with values that train lacks: {shown}",
                    hint="`unseen: fail` is set for it; `unseen: code` gives such values the code for the unknown",
                )
            found[column] = {"rows": total, "values": dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:20])}
        return found
