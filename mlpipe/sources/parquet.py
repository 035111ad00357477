"""Source `parquet`: typed columns, read by row groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mlpipe.errors import DataError
from mlpipe.sources.base import CHUNK_ROWS, Source

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


class Parquet(Source):
    """Apache Parquet. A null is missing, and so is a NaN in a column of numbers (pandas writes missing numbers so)."""

    kind: Literal["parquet"] = "parquet"

    def names(self, file: Path) -> list[str]:
        """The columns of the schema."""
        return list(self._open(file).schema_arrow.names)

    def types(self, file: Path) -> dict[str, Any]:
        """The types of the schema."""
        return {field.name: field.type for field in self._open(file).schema_arrow}

    def cells(self, file: Path, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Columns as their types are; text is dictionary-encoded."""
        import pyarrow as pa

        opened = self._open(file)
        kinds = {name: opened.schema_arrow.field(name).type for name in columns}
        texts = [name for name, kind in kinds.items() if pa.types.is_string(kind) or pa.types.is_large_string(kind)]
        try:
            yield from self._open(file, texts).iter_batches(batch_size=CHUNK_ROWS, columns=list(columns))
        except (pa.ArrowException, OSError) as fault:
            raise DataError(f"{file.name} is damaged: {fault}", hint="fetch it again") from None

    def _open(self, file: Path, texts: Sequence[str] = ()) -> pq.ParquetFile:
        import pyarrow as pa
        from pyarrow import parquet as pq

        try:
            return pq.ParquetFile(file, read_dictionary=list(texts))
        except (pa.ArrowException, OSError) as fault:
            raise DataError(f"{file.name} is no parquet file: {fault}", hint="check `kind` and whether the file is whole") from None
