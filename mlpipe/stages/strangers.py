"""Values and classes of valid and test rows that the train rows lack."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mlpipe.errors import DataError, listed
from mlpipe.features.encode import NO_STEPS
from mlpipe.features.text import FittedText
from mlpipe.features.tokeniser import Tokeniser
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


def count_cut(array: Any, characters: int) -> int:
    """How many rows of a dictionary-encoded column hold a text that is longer than what is read of it."""
    import pyarrow.compute as pc

    long = pc.greater(pc.utf8_length(array.dictionary), characters)
    return int(pc.sum(long.take(array.indices.drop_null())).as_py() or 0)


def cut_line(column: str, rows: int, characters: int, unit: str = "characters") -> str:
    """What is said of texts that are cut."""
    return f"{column}: {rows:,} texts are longer than {characters:,} {unit}; the rest of them is not read"


class Strangers:
    """Counts values and classes that the train rows lack, and texts that are cut, on the distinct values of each batch."""

    def __init__(self, schema: Schema, steps: Mapping[str, Tokeniser] = NO_STEPS) -> None:
        self.steps = {column: (step, step.cut) for column, step in steps.items()}
        self.known = {f.column: (f.known(), f.strict()) for f in schema.features if f.known() is not None}
        self.rare: dict[str, bool] = {f.column: bool(getattr(f, "rare_values", 0)) for f in schema.features}
        if isinstance(schema.task, FittedClassification):
            self.known[schema.task.target] = (frozenset(schema.task.classes), False)
        self.target = schema.task.target
        self.read = {f.column: f.length for f in schema.features if isinstance(f, FittedText)}
        self.cut = dict.fromkeys(self.read, 0)
        self.counts: dict[str, dict[str, int]] = {}

    def look(self, batch: pa.RecordBatch) -> None:
        """Counts the strangers of a batch."""
        for column, characters in self.read.items():
            self.cut[column] += count_cut(batch.column(column), characters)
        for column, (known, _) in self.known.items():
            mine = self.counts.setdefault(column, {})
            for value, count in count_strangers(batch.column(column), known or frozenset()).items():
                mine[value] = mine.get(value, 0) + count

    def told(self, split: str, notes: list[str]) -> dict[str, Any]:
        """The counts, each said in a note. Raises DataError where a column is strict."""
        notes += [f"{split}: {cut_line(column, rows, self.read[column])}" for column, rows in self.cut.items() if rows]
        for column, (step, before) in self.steps.items():  # a step counts from its first row on, whatever the split
            if (rows := step.cut - before) and split != "train":
                notes.append(f"{split}: {cut_line(column, rows, step.length, 'tokens')}")
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
