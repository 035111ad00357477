"""Typed raw rows from a source: every cell checked, every fault placed. Prepare and predict read through this."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from mlpipe.columns import Column, Fault, arrow_type, convert, zone_examples
from mlpipe.errors import DataError
from mlpipe.sources.base import Source

if TYPE_CHECKING:
    import pyarrow as pa

SHOWN = 10  # faulty cells shown for each column


@dataclass
class Faults:
    """Faulty cells by column: how many, and where the first ones lie."""

    counts: dict[str, int] = field(default_factory=dict)
    first: dict[str, list[tuple[str, int, Fault]]] = field(default_factory=dict)

    def add(self, column: str, file: str, first_row: int, faults: Sequence[Fault]) -> None:
        """Counts faults of one chunk, and keeps the first ones."""
        self.counts[column] = self.counts.get(column, 0) + len(faults)
        kept = self.first.setdefault(column, [])
        kept += [(file, first_row + fault.row, fault) for fault in faults[: SHOWN - len(kept)]]

    def raise_any(self, source: Source, base: Path, columns: dict[str, Column]) -> None:
        """Raises one DataError for all of them, with file, line, column and value of the first of each column."""
        if not self.counts:
            return
        paths = dict(source.files(base))
        wanted: dict[str, list[int]] = {}
        for placed in self.first.values():
            for file, row, _ in placed:
                wanted.setdefault(file, []).append(row)
        places = {file: source.places(paths[file], rows) for file, rows in wanted.items()}
        lines = []
        for column, placed in self.first.items():
            lines += [f"{file}, {places[file][row]}, column {column!r}: {fault.value!r} {fault.reason}" for file, row, fault in placed]
            if self.counts[column] > len(placed):
                lines.append(f"... and {self.counts[column] - len(placed):,} more in column {column!r}")
        total = sum(self.counts.values())
        kinds = {columns[name].type for name in self.counts}
        hint = "correct the cells, or list such values under `missing` if they mean that there is no value"
        if "number" in kinds:
            hint += "; `strip: true` removes blanks, `decimal` and `thousands` say how numbers are written"
        raise DataError(f"{total:,} cell{'s' * (total > 1)} of a wrong kind", faults=lines, hint=hint)


@dataclass(frozen=True)
class Typed:
    """Typed rows of one chunk: numbers float64, text dictionary-encoded, times in microseconds."""

    rows: pa.RecordBatch
    file: str
    first: int


class Spool:
    """Typed rows on disk between two passes over a source: parsing text twice costs more than writing it down once.

    An Arrow stream, uncompressed, with the columns' own dictionaries; it is removed after the second pass.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._places: list[tuple[str, int]] = []

    def keeping(self, chunks: Iterable[Typed]) -> Iterator[Typed]:
        """The chunks, each written down on its way."""
        import pyarrow as pa

        with self.path.open("wb") as file:
            writer: pa.RecordBatchStreamWriter | None = None
            for chunk in chunks:
                if writer is None:
                    writer = pa.ipc.new_stream(file, chunk.rows.schema)
                writer.write_batch(chunk.rows)
                self._places.append((chunk.file, chunk.first))
                yield chunk
            if writer is not None:
                writer.close()

    def chunks(self) -> Iterator[Typed]:
        """The chunks again."""
        import pyarrow as pa

        if self._places:
            with self.path.open("rb") as file, pa.ipc.open_stream(file) as reader:
                for rows, (name, first) in zip(reader, self._places, strict=True):
                    yield Typed(rows, name, first)
        self.path.unlink()


def _one_sort(seen: dict[bool, str], more: dict[bool, str]) -> None:
    """Raises DataError when a column has times with a zone and times without one, in whatever chunk."""
    for zoned, text in more.items():
        seen.setdefault(zoned, text)
    if len(seen) == 2:
        raise DataError(f"some times have a zone ({seen[True]!r}), others have none ({seen[False]!r})", hint="write them all one way")


def typed_rows(source: Source, base: Path, columns: Sequence[Column]) -> Iterator[Typed]:
    """A source's rows with these columns, typed. Raises DataError for faulty cells, all of them together, after the last row."""
    import pyarrow as pa

    named = {column.name: column for column in columns}
    schema = pa.schema([pa.field(column.name, arrow_type(column.type)) for column in columns])
    faults = Faults()
    zones: dict[str, dict[bool, str]] = {}
    for chunk in source.chunks(base, list(named)):
        arrays = []
        for column in columns:
            try:
                if column.type == "timestamp" and column.format in (None, "iso"):
                    _one_sort(zones.setdefault(column.name, {}), zone_examples(chunk.rows.column(column.name)))
                array, bad = convert(chunk.rows.column(column.name), column, source.numbers)
            except DataError as fault:
                raise DataError(f"{chunk.file}, column {column.name!r}: {fault.message}", hint=fault.hint) from None
            if bad:
                faults.add(column.name, chunk.file, chunk.first, bad)
            arrays.append(array)
        yield Typed(pa.RecordBatch.from_arrays(arrays, schema=schema), chunk.file, chunk.first)
    faults.raise_any(source, base, named)
