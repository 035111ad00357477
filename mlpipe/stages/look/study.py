"""A whole table looked at once: every column's texts sorted out, and how the table writes its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlpipe.base import NumberFormat
from mlpipe.errors import DataError
from mlpipe.sources.csv import Csv
from mlpipe.sources.fixed import Fixed
from mlpipe.stages.look.dialect import Dialect
from mlpipe.stages.look.guess import Guess, judge, short
from mlpipe.stages.look.picture import histogram
from mlpipe.stages.look.survey import PLAIN, Cells, Convention, Look, cells, convention, survey


@dataclass(frozen=True)
class Study:
    """What is known of a table after one pass over it. `looks` are stripped of blanks where any cell has them; `raw` are not."""

    seen: Dialect
    base: Path
    rows: int
    raw: Mapping[str, Look]
    looks: Mapping[str, Look]
    columns: Mapping[str, Cells]
    numbers: Convention
    strip: bool

    def judged(self, name: str) -> Guess:
        """The verdict on one column. Raises DataError when its dates contradict each other."""
        return judge(
            self.looks[name], self.columns[name], self.numbers, quoted=name in self.seen.quoted, place=(self.seen.source, self.base)
        )

    def histogram(self, name: str) -> list[int]:
        """See `picture.histogram`."""
        numeric = name in self.numbers.numeric and not self.looks[name].spilled_text
        return histogram(self.columns[name], self.form, numeric=numeric)

    @property
    def form(self) -> NumberFormat:
        """How numbers are written."""
        return self.numbers.form


def study(seen: Dialect, base: Path) -> Study:
    """Reads the table. Settings for blanks and number marks are added to `seen`. Raises DataError for what the source refuses."""
    looks, rows = survey(seen.source, base)
    settings, notes = seen.settings, seen.notes
    raw = looks
    strip = any(found.blanks for found in looks.values())
    if strip:
        padded = [found for found in looks.values() if found.blanks]
        example = next(text for text in padded[0].counts if text != text.strip())
        cells_padded = sum(found.blanks for found in padded)
        settings["strip"] = True
        notes["strip"] = [
            f"{cells_padded:,} cells in {len(padded)} column{'s' * (len(padded) > 1)} have blanks round them, such as {short(example)}"
        ]
        looks = _stripped_names({found.name: found.stripped() for found in looks.values()})
    columns = {column: cells(found, rows) for column, found in looks.items()}
    delimiter = seen.source.delimiter if isinstance(seen.source, Csv) else " " if isinstance(seen.source, Fixed) else None
    numbers = convention({column: found for column, found in columns.items() if column not in seen.quoted}, delimiter)
    if numbers.form != PLAIN:
        for field in ("decimal", "thousands"):
            if (mark := getattr(numbers.form, field)) != getattr(PLAIN, field):
                settings[field], notes[field] = mark, [numbers.evidence or ""]
    return Study(seen, base, rows, raw, looks, columns, numbers, strip)


def _stripped_names(looks: dict[str, Look]) -> dict[str, Look]:
    """Names lose the blanks round them too, as `strip` does it. Raises DataError when two become one."""
    fresh: dict[str, Look] = {}
    for found in looks.values():
        found.name = found.name.strip()
        if found.name in fresh:
            raise DataError(f"two columns are called {found.name!r} but for blanks", hint="rename one of them in the file")
        fresh[found.name] = found
    return fresh


def missing_settings(found: Study, guesses: list[Guess], others: Mapping[str, Mapping[str, int]]) -> None:
    """`missing` and `missing_by_column`: "?" everywhere, other tokens in columns of numbers and dates alone.

    `others` are tokens by column, of columns that have no guess (the target).
    """
    settings, notes, rows = found.seen.settings, found.seen.notes, found.rows
    marks = {column: cell.tokens.get("?", 0) for column, cell in found.columns.items() if cell.tokens.get("?", 0)}
    if marks:
        settings["missing"] = ["", "?"]
        counted = ", ".join(f"{count:,} in {column}" for column, count in list(marks.items())[:8]) + (", ..." if len(marks) > 8 else "")
        notes["missing"] = [f'{sum(marks.values()):,} cells are "?" ({rows:,} rows): {counted}']
    by_column: dict[str, list[str]] = {}
    said = []
    tokens: list[tuple[str, Mapping[str, Any]]] = [(g.name, g.tokens) for g in guesses if g.kind in ("numeric", "datetime")]
    for column, mine in [*tokens, *others.items()]:
        if named := {text: count for text, count in mine.items() if text != "?"}:
            by_column[column] = list(named)
            said.append(f"{column}: " + ", ".join(f"{count:,} of {rows:,} cells are {short(text)}" for text, count in named.items()))
    if by_column:
        settings["missing_by_column"] = by_column
        notes["missing_by_column"] = said
    for guess in guesses:
        if guess.kind == "category" and guess.tokens:
            how = f"if that means missing: missing_by_column: {{{guess.name}: [{', '.join(map(short, guess.tokens))}]}}"
            counts = ", ".join(f"{count:,} of {rows:,} cells are {short(token)}" for token, count in guess.tokens.items())
            notes.setdefault("missing_by_column", []).append(f"{guess.name}: {counts}, kept as a value; {how}")
