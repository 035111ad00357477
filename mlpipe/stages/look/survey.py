"""One pass over a whole table for `mlpipe init`: every distinct text of every column, counted, and how numbers are written."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from mlpipe.base import NumberFormat
from mlpipe.columns import NUMBER, Column, convert
from mlpipe.errors import DataError
from mlpipe.sources.base import Source

if TYPE_CHECKING:
    import numpy as np

MOST_DISTINCT = 1_000_000
TOKENS = ("?", "NA", "N/A", "n/a", "na", "#N/A", "NULL", "null", "Null", "None", "none", "NaN", "nan", "NAN", "-", "--", ".")
NUMBER_LIKE = re.compile(r"[+-]?(\d+([.,' ]\d+)*\.?|[.,]\d+)([eE][+-]?\d+)?")
MARKS = ",.' \u00a0\u202f"
MAYBE_NUMBER = re.compile(rf"[+-]?[0-9{MARKS}]+([eE][+-]?[0-9]+)?")  # in any of the conventions below
INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
PLAIN = NumberFormat()
FORMATS = (
    PLAIN,
    NumberFormat(thousands=","),
    NumberFormat(decimal=","),
    NumberFormat(decimal=",", thousands="."),
    NumberFormat(thousands=" "),
    NumberFormat(decimal=",", thousands=" "),
    NumberFormat(thousands="'"),
    NumberFormat(decimal=",", thousands="\u00a0"),
    NumberFormat(decimal=",", thousands="\u202f"),
)


@dataclass
class Look:
    """A column as it stands: how often each text comes, how many cells have none (JSON null, Parquet null)."""

    name: str
    counts: Counter[str] = field(default_factory=Counter)
    null: int = 0
    spilled: int = 0  # cells whose text came after MOST_DISTINCT others
    spilled_text: int = 0  # those of them that are no numbers
    refused: str | None = None  # why the column cannot be read at all
    typed: str | None = None  # the Arrow type of a typed source

    def add(self, texts: list[str], counts: Iterable[int]) -> None:
        """Counts the texts of a chunk."""
        for text, count in zip(texts, counts, strict=True):
            if not count:
                continue
            if text in self.counts or len(self.counts) < MOST_DISTINCT:
                self.counts[text] += int(count)
            else:
                self.spilled += int(count)
                self.spilled_text += 0 if re.match(NUMBER, text) else int(count)

    def stripped(self) -> Look:
        """The same with the blanks round each text taken off."""
        fresh: Counter[str] = Counter()
        for text, count in self.counts.items():
            fresh[text.strip()] += count
        return Look(self.name, fresh, self.null, self.spilled, self.spilled_text, self.refused, self.typed)

    @property
    def blanks(self) -> int:
        """Cells with blanks before or after their text."""
        return sum(count for text, count in self.counts.items() if text != text.strip())


@dataclass(frozen=True)
class Cells:
    """A column's texts sorted out: empty cells, missing tokens, and the rest."""

    rows: int
    empty: int
    tokens: Mapping[str, int]
    values: Mapping[str, int]
    infinite: Mapping[str, int] = field(default_factory=dict)  # among numbers; prepare refuses them


def survey(source: Source, base: Path) -> tuple[dict[str, Look], int]:
    """Every column's look, and the number of rows. Raises DataError for what the source refuses, or when there are no rows."""
    import numpy as np
    import pyarrow as pa

    written, first = source.files(base)[0]
    names = source.check_header(written, first, [])
    looks = {name: Look(name) for name in names}
    rows = 0
    for chunk in source.chunks(base, names):
        rows += chunk.rows.num_rows
        for name, array in zip(names, chunk.rows.columns, strict=True):
            look = looks[name]
            if not pa.types.is_dictionary(array.type):
                look.typed = str(array.type)
            try:
                text, _ = convert(array, Column(name=name, type="text"), PLAIN)
            except DataError as fault:
                look.refused = fault.message
                continue
            codes = text.indices.fill_null(len(text.dictionary)).to_numpy(zero_copy_only=False)
            counts = np.bincount(codes, minlength=len(text.dictionary) + 1).tolist()
            look.null += counts[-1]
            look.add(text.dictionary.to_pylist(), counts[:-1])
    if not rows:
        raise DataError(f"{first.name} has no rows, only a header", hint="is it the right file?")
    return looks, rows


def cells(look: Look, rows: int) -> Cells:
    """Sorts a column's texts."""
    values = dict(look.counts)
    empty = values.pop("", 0) + look.null
    tokens = {token: values.pop(token) for token in TOKENS if token in values}
    infinite = {text: count for text, count in values.items() if INFINITE.fullmatch(text)}
    finite = {text: count for text, count in values.items() if text not in infinite}
    if infinite and finite and all(NUMBER_LIKE.fullmatch(text) for text in finite):
        return Cells(rows, empty, tokens, finite, infinite)
    return Cells(rows, empty, tokens, values)


def numbers(texts: list[str], form: NumberFormat) -> tuple[np.ndarray, list[str], bool]:
    """Distinct texts as float64 the way prepare reads them, the texts that are not numbers, and whether an integer is beyond 2^53."""
    import pyarrow as pa

    typed, faults = convert(pa.array(texts, pa.string()), Column(name="", type="number"), form)
    inexact = any("2^53" in fault.reason for fault in faults)
    return typed.to_numpy(zero_copy_only=False), [texts[fault.row] for fault in faults if "2^53" not in fault.reason], inexact


@dataclass(frozen=True)
class Convention:
    """How the table's numbers are written, the columns that are numbers then, and those that would be numbers otherwise."""

    form: NumberFormat
    numeric: frozenset[str]
    otherwise: Mapping[str, str]  # column -> an example
    evidence: str | None = None


def convention(columns: Mapping[str, Cells], delimiter: str | None) -> Convention:
    """The number format under which the most columns are numbers; the plainest of equal ones.

    "1,234" can be 1234 or 1.234. In a file whose fields a comma parts, it is a thousands mark; elsewhere it is left open
    and the column is not taken for numbers, unless the file holds a number that only one reading admits.
    """
    fits: list[set[str]] = [set() for _ in FORMATS]
    for name, column in columns.items():
        texts = list(column.values)
        if not texts:
            continue
        if not all(map(MAYBE_NUMBER.fullmatch, texts[:50])):
            continue
        marked_somewhere = any(mark in text for text in texts for mark in MARKS)
        for i, form in enumerate(FORMATS):
            if i and not marked_somewhere:  # without a mark every convention reads the same
                fits[i] |= {name} & fits[0]
            elif (i == 0 or delimiter is not None) and _all_numbers(texts, form):
                fits[i].add(name)
    plain, best = fits[0], max(range(len(FORMATS)), key=lambda i: (len(fits[i]), -i))
    marked = sorted(fits[best] - plain)
    example = {name: _marked(columns[name]) for name in columns if any(name in fit for fit in fits) and name not in plain}
    if not marked or delimiter is None:
        return Convention(PLAIN, frozenset(plain), example)
    if fits[1] == fits[2] and best in (1, 2) and delimiter != ",":
        # a group of thousands never begins with a zero: "0,125" is a decimal comma
        if not any(text.lstrip("+-").startswith("0,") for name in marked for text in columns[name].values):
            return Convention(PLAIN, frozenset(plain), example)
        best = 2
    form, name = FORMATS[best], marked[0]
    evidence = f"{', '.join(marked[:5])}: numbers such as {_marked(columns[name])!r}"
    left = {other: text for other, text in example.items() if other not in fits[best]}
    return Convention(form, frozenset(fits[best]), left, evidence)


def _all_numbers(texts: list[str], form: NumberFormat) -> bool:
    """Whether every text is a number; a look at a few settles most columns."""
    return not any(numbers(part, form)[1] for part in (texts[:50], texts[50:]) if part)


def _marked(column: Cells) -> str:
    """A value that shows how the column writes numbers: the first with a mark."""
    return next((text for text in column.values if any(mark in text for mark in ",.' \u00a0\u202f")), next(iter(column.values)))
