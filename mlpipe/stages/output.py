"""Rows written for a person or the next tool: CSV, Parquet or JSONL by the ending, whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from mlpipe.base import machine_faults
from mlpipe.errors import SpecError, listed

if TYPE_CHECKING:
    import pyarrow as pa

WRITTEN = {".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".pq": "parquet", ".jsonl": "jsonl", ".ndjson": "jsonl"}


class RowsWriter:
    """Writes CSV, Parquet or JSONL by the ending, beside the final name; the file takes its name when it is whole."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.kind = WRITTEN.get(path.suffix.lower())
        if self.kind is None:
            raise SpecError(
                f"the output {path.name} has an unknown ending", hint=f"one of {listed(['.csv', '.tsv', '.parquet', '.jsonl'])}"
            )
        self.aside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        self._writer: Any = None
        self._file: Any = None

    def __enter__(self) -> RowsWriter:
        with machine_faults(self.path):
            if not self.path.parent.is_dir():
                raise SpecError(f"there is no folder {self.path.parent}", hint="make it first")
            self._file = self.aside.open("wb")
        return self

    def write(self, columns: Mapping[str, Any]) -> None:
        """Appends rows."""
        import pyarrow as pa

        batch = pa.record_batch(dict(columns))
        with machine_faults(self.path):
            if self.kind == "jsonl":
                names = batch.schema.names
                rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
                self._file.write("".join(_json_line(dict(zip(names, row, strict=True))) for row in rows).encode())
                return
            if self._writer is None:
                self._writer = self._opened(batch.schema)
            self._writer.write_batch(batch)

    def _opened(self, schema: pa.Schema) -> Any:
        if self.kind == "parquet":
            from pyarrow import parquet as pq

            return pq.ParquetWriter(self._file, schema, compression="zstd")
        from pyarrow import csv as arrow_csv

        delimiter = "\t" if self.path.suffix.lower() == ".tsv" else ","
        return arrow_csv.CSVWriter(self._file, schema, write_options=arrow_csv.WriteOptions(delimiter=delimiter, quoting_style="needed"))

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None) -> None:
        try:
            with machine_faults(self.path):
                if self._writer is not None:
                    self._writer.close()
                if kind is None:
                    self._file.flush()
                    os.fsync(self._file.fileno())
                    self._file.close()
                    self.aside.replace(self.path)
        finally:
            self._file.close()
            self.aside.unlink(missing_ok=True)


def _json_line(record: dict[str, Any]) -> str:
    """One strict JSON object; a number that is not finite is null."""
    clean = {name: None if isinstance(value, float) and value - value != 0 else value for name, value in record.items()}
    return json.dumps(clean, ensure_ascii=False, default=str) + "\n"
