"""Source `arrow`: Arrow IPC, as a file (Feather version 2) or as a stream, read batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mlpipe.errors import DataError
from mlpipe.sources.base import CHUNK_ROWS, Source

if TYPE_CHECKING:
    import pyarrow as pa


class Arrow(Source):
    """Apache Arrow IPC: a file (Feather version 2) or a stream. A null is missing, and so is a NaN in a column of numbers."""

    kind: Literal["arrow"] = "arrow"

    def names(self, file: Path) -> list[str]:
        """The columns of the schema."""
        with self._batches(file) as (schema, _):
            return list(schema.names)

    def types(self, file: Path) -> dict[str, Any]:
        """The types of the schema."""
        with self._batches(file) as (schema, _):
            return {field.name: field.type for field in schema}

    def cells(self, file: Path, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Columns as their types are; a batch of any size is cut into chunks."""
        with self._batches(file) as (_, batches):
            for batch in batches:
                batch.validate()
                for start in range(0, batch.num_rows, CHUNK_ROWS):
                    yield batch.select(list(columns)).slice(start, CHUNK_ROWS)

    @contextmanager
    def _batches(self, file: Path) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
        """The schema, and the batches one by one."""
        import pyarrow as pa

        try:
            with pa.OSFile(str(file)) as raw:
                head = raw.read(6)
                raw.seek(0)
                if head.startswith(b"FEA1"):
                    raise DataError(
                        f"{file.name} is Feather version 1, which is no longer read", hint="write it again as Feather version 2 or Parquet"
                    )
                if head == b"ARROW1":
                    opened = pa.ipc.open_file(raw)
                    yield opened.schema, (opened.get_batch(i) for i in range(opened.num_record_batches))
                else:
                    stream = pa.ipc.open_stream(raw)
                    yield stream.schema, iter(stream)
        except (pa.ArrowException, OSError, EOFError) as fault:
            raise DataError(
                f"{file.name} is no whole Arrow file: {_first_line(fault)}", hint="check `kind`, and whether the file is whole"
            ) from None


def _first_line(fault: Exception) -> str:
    return (str(fault).splitlines() or [type(fault).__name__])[0]
