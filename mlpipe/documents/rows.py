"""Documents as rows: one a document, one a chunk, or one a row of a table inside a document."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mlpipe.documents.pool import Document
from mlpipe.documents.result import Converted
from mlpipe.errors import DataError, listed

if TYPE_CHECKING:
    import pyarrow as pa

Unit = Literal["document", "chunk", "table"]
COMMON = (("path", "text"), ("folder", "text"))
UNITS: dict[Unit, tuple[tuple[str, str], ...]] = {
    "document": (
        ("title", "text"), ("text", "text"), ("pages", "whole"), ("words", "whole"), ("tables", "whole"), ("pictures", "whole"),
        ("encoding", "text"),
    ),
    "chunk": (("title", "text"), ("chunk", "whole"), ("headings", "text"), ("text", "text"), ("page", "whole"), ("last_page", "whole")),
    "table": (("title", "text"), ("page", "whole"), ("table", "whole"), ("row", "whole")),
}  # fmt: skip
MOST_COLUMNS = 2000
BLOCK = 1024  # rows written at once

Pair = tuple[Document, Converted]


def names_of(unit: Unit) -> list[str]:
    """The columns that rows of this kind have, whatever the documents."""
    return [name for name, _ in (*COMMON, *UNITS[unit])]


def write_rows(pairs: Callable[[], Iterable[Pair]], unit: Unit, markdown: bool, labels: dict[str, list[str | None]], path: Path) -> int:
    """Writes a Parquet file, returns how many rows it has. `pairs` gives the documents, once more where it is called twice.

    `labels` are further columns, a cell a document.
    Raises DataError when tables have too many different columns, or a column's name is taken.
    """
    import pyarrow as pa
    from pyarrow import parquet as pq

    own = [*COMMON, *UNITS[unit]]
    taken = {name for name, _ in own}
    if clash := [name for name in labels if name in taken]:
        raise DataError(f"the labels have a column {clash[0]!r}, as the documents have", hint="rename it in the file of labels")
    heads = list(dict.fromkeys(name for _, found in pairs() for table in found.tables for name in table.header)) if unit == "table" else []
    if clash := [name for name in heads if name in taken or name in labels]:
        raise DataError(
            f"a table inside a document has a column {clash[0]!r}, which is the name of another column here",
            hint="rename the label column, or read such documents by themselves",
        )
    if len(heads) > MOST_COLUMNS:
        raise DataError(
            f"the tables have {len(heads):,} different columns, such as {listed(heads, 5)}", hint="read tables of one kind at a time"
        )
    kinds = {"text": pa.string(), "whole": pa.int64()}
    fields = [(name, kinds[kind]) for name, kind in own] + [(name, pa.string()) for name in (*labels, *heads)]
    schema = pa.schema(fields)
    count, block = 0, []
    with pq.ParquetWriter(path, schema, compression="zstd", store_schema=False) as writer:
        for i, (document, found) in enumerate(pairs()):
            beside = {name: cells[i] for name, cells in labels.items()}
            shared = {"path": document.name, "folder": folder_of(document.name), "title": found.title or None, **beside}
            for row in _rows(found, unit, markdown):
                block.append({**shared, **row})
                count += 1
                if len(block) == BLOCK:
                    writer.write_batch(_batch(block, schema))
                    block = []
        writer.write_batch(_batch(block, schema))
    return count


def folder_of(name: str) -> str | None:
    """The folder that a document lies in, None at the top."""
    parts = name.split("/")
    return parts[-2] if len(parts) > 1 and parts[-2] != ".." else None


def _rows(found: Converted, unit: Unit, markdown: bool) -> Iterator[dict[str, Any]]:
    if unit == "document":
        text = found.markdown if markdown else found.plain
        yield {
            "text": text or None,
            "pages": found.pages,
            "words": found.words,
            "tables": len(found.tables),
            "pictures": found.pictures,
            "encoding": found.encoding or None,
        }
    elif unit == "chunk":
        for number, passage in enumerate(found.passages, 1):
            ends = (passage.pages[0], passage.pages[-1]) if passage.pages else (None, None)
            heads = " > ".join(passage.headings) or None
            yield {"chunk": number, "headings": heads, "text": passage.text, "page": ends[0], "last_page": ends[1]}
    else:
        for number, table in enumerate(found.tables, 1):
            for at, cells in enumerate(table.rows, 1):
                yield {"page": table.page, "table": number, "row": at, **dict(zip(table.header, cells, strict=True))}


def _batch(block: list[dict[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    import pyarrow as pa

    return pa.RecordBatch.from_pylist(block, schema=schema)
