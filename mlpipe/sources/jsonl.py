"""Source `jsonl`: one JSON object a line."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mlpipe.errors import DataError
from mlpipe.sources.base import CHUNK_ROWS, Source
from mlpipe.sources.jsontext import cell, decoder
from mlpipe.sources.streams import Compression, open_bytes

if TYPE_CHECKING:
    import pyarrow as pa


class Jsonl(Source):
    """JSON Lines, plain or compressed. A null, or a name that a line lacks, is missing.

    Numbers keep the digits that the file has, so that a long identifier stays whole and a quoted value is never retyped;
    true and false become the texts `true` and `false`.
    """

    kind: Literal["jsonl"] = "jsonl"
    compression: Compression = "auto"

    def names(self, file: Path) -> list[str]:
        """Every name that a line of the file has, in order of first appearance."""
        found: dict[str, None] = {}
        for _, record in self.records_of(file):
            found.update(dict.fromkeys(record))
        if not found:
            raise DataError(f"{file.name} is empty: no rows", hint="is it the right file?")
        return list(found)

    def cells(self, file: Path, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Every value as text."""
        import pyarrow as pa

        records = self.records_of(file)
        while batch := list(islice(records, CHUNK_ROWS)):
            arrays = [
                pa.array([cell(record.get(name), name, f"line {line}", file) for line, record in batch], pa.string()).dictionary_encode()
                for name in columns
            ]
            yield pa.RecordBatch.from_arrays(arrays, names=list(columns))

    def places(self, file: Path, rows: Sequence[int]) -> dict[int, str]:
        """The lines of rows."""
        found = super().places(file, rows)
        for number, (line, _) in enumerate(islice(self.records_of(file), max(rows, default=-1) + 1)):
            if number in found:
                found[number] = f"line {line}"
        return found

    def records_of(self, file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
        """The records as decoded, each with its line; numbers are `Digits`, texts plain `str`."""
        decode = decoder().decode
        with open_bytes(file, self.compression) as raw:
            number = 0
            try:
                for line in io.TextIOWrapper(raw, encoding="utf-8-sig"):
                    number += 1
                    if not line.strip():
                        continue
                    record = decode(line.strip())
                    if not isinstance(record, dict):
                        raise ValueError(f"a {type(record).__name__} instead of an object")
                    yield number, record
            except UnicodeDecodeError as fault:
                raise DataError(
                    f"{file.name}, about line {number + 1}: not UTF-8 ({fault.reason})", hint="JSON Lines is UTF-8; convert the file"
                ) from None
            except RecursionError:
                raise DataError(f"{file.name}, line {number}: brackets within brackets without end", hint="flatten it first") from None
            except ValueError as fault:
                raise DataError(f"{file.name}, line {number}: {fault}", hint="each line must be one JSON object") from None
