"""A database's answer as a Parquet file: every column gets the narrowest type that holds all its values without loss.

A database tells the type of a value, and SQLite not even that for a whole column, so the rows are first written down as they come,
an Arrow stream for each chunk, while what each column holds is counted. Then they are written again with one type for each column.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlpipe.digest import LARGEST_EXACT, TableDigest
from mlpipe.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

CHUNK_ROWS = 65_536
INT64 = (-(2**63), 2**63 - 1)
PRECISION = 38  # digits of a decimal128

TEXTS = (uuid.UUID, dt.time, ipaddress.IPv4Address, ipaddress.IPv6Address, ipaddress.IPv4Network, ipaddress.IPv6Network,
         ipaddress.IPv4Interface, ipaddress.IPv6Interface)  # fmt: skip
CAST = "cast it to text in the query, or take its parts as columns of their own"


@dataclass
class _Seen:
    """What a column holds."""

    kinds: set[str] = field(default_factory=set)
    scales: set[int] = field(default_factory=set)
    digits: int = 0
    wide: bool = False  # a whole number beyond 64 bits
    inexact: bool = False  # a whole number that a float64 cannot hold


def write_answer(names: Sequence[str], rows: Iterable[Sequence[Any]], path: Path, what: str, *, ordered: bool) -> tuple[str, int]:
    """Writes rows to a Parquet file, sorted by all columns unless they are ordered; returns `table-v1` of its cells, and how many rows.

    Raises DataError for a column that holds what is no single value (bytes, lists, JSON, intervals), or times of two kinds.
    """
    import pyarrow as pa
    from pyarrow import parquet as pq

    seen = [_Seen() for _ in names]
    spool = path.with_suffix(".spool")
    count = 0
    with spool.open("wb") as file:
        for chunk in _chunks(rows):
            arrays = []
            for name, column, known in zip(names, zip(*chunk, strict=True), seen, strict=True):
                arrays.append(pa.array([_text(value, name, what, known) for value in column], pa.string()))
            batch = pa.RecordBatch.from_arrays(arrays, names=list(names))
            with pa.ipc.new_stream(file, batch.schema) as writer:
                writer.write_batch(batch)
            count += batch.num_rows
    kinds = [_type(name, what, known) for name, known in zip(names, seen, strict=True)]
    schema = pa.schema([pa.field(name, kind) for name, kind in zip(names, kinds, strict=True)])
    digest = TableDigest([(name, _logical(kind)) for name, kind in zip(names, kinds, strict=True)])
    with pq.ParquetWriter(path, schema, compression="zstd") as target:
        for batch in _typed(spool, schema) if ordered else _sorted(spool, schema):
            digest.update(_digestible(batch))
            target.write_batch(batch)
    spool.unlink()
    return digest.hexdigest(), count


def _chunks(rows: Iterable[Sequence[Any]]) -> Iterator[list[Sequence[Any]]]:
    from itertools import islice

    waiting = iter(rows)
    while chunk := list(islice(waiting, CHUNK_ROWS)):
        yield chunk


def _text(value: Any, name: str, what: str, seen: _Seen) -> str | None:
    """A value as exact text, and what it says of its column."""
    if value is None:
        return None
    if isinstance(value, str):
        seen.kinds.add("text")
        return value
    if isinstance(value, bool):
        seen.kinds.add("truth")
        return "true" if value else "false"
    if isinstance(value, int):
        seen.kinds.add("whole")
        seen.wide |= not INT64[0] <= value <= INT64[1]
        seen.inexact |= abs(value) > LARGEST_EXACT
        return str(value)
    if isinstance(value, float):
        seen.kinds.add("float")
        return repr(value)
    if isinstance(value, Decimal):
        if value.is_nan():  # missing, as it is in a column of floats
            return None
        seen.kinds.add("decimal" if value.is_finite() else "text")
        if not value.is_finite():
            return str(value)
        text = format(value, "f")
        whole, _, fraction = text.lstrip("+-").partition(".")
        seen.scales.add(len(fraction))
        seen.digits = max(seen.digits, len(whole.lstrip("0")))
        return text
    if isinstance(value, dt.datetime):
        seen.kinds.add("zoned" if value.tzinfo else "time")
        return (value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value).isoformat()
    if isinstance(value, dt.date):
        seen.kinds.add("date")
        return value.isoformat()
    if isinstance(value, TEXTS):
        seen.kinds.add("text")
        return str(value)
    kinds = {
        bytes: "bytes",
        memoryview: "bytes",
        bytearray: "bytes",
        list: "lists or arrays",
        dict: "JSON objects",
        dt.timedelta: "intervals",
    }
    kind = next((word for known, word in kinds.items() if isinstance(value, known)), f"values of the kind {type(value).__name__}")
    raise DataError(f"{what}, column {name!r} holds {kind}, which are no single values", hint=f"leave it out of the query; or {CAST}")


def _type(name: str, what: str, seen: _Seen) -> Any:
    """The Arrow type that holds all values of a column as they are; text where there is none."""
    import pyarrow as pa

    kinds = seen.kinds
    if kinds & {"time", "zoned", "date"} and len(kinds) > 1:
        raise DataError(f"{what}, column {name!r} holds {' and '.join(sorted(kinds))} values", hint="cast them to one type in the query")
    if kinds == {"truth"}:
        return pa.bool_()
    if kinds == {"whole"} and not seen.wide:
        return pa.int64()
    if kinds and kinds <= {"whole", "float"} and not seen.inexact:
        return pa.float64()
    if kinds == {"decimal"} and len(seen.scales) == 1 and seen.digits + max(seen.scales) <= PRECISION:
        return pa.decimal128(PRECISION, max(seen.scales))
    if kinds == {"date"}:
        return pa.date32()
    if kinds == {"time"}:
        return pa.timestamp("us")
    if kinds == {"zoned"}:
        return pa.timestamp("us", tz="UTC")
    return pa.string()


def _typed(spool: Path, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows as they came, each column of its type."""
    import pyarrow as pa

    with spool.open("rb") as file:
        end = file.seek(0, 2)
        file.seek(0)
        while file.tell() < end:
            with pa.ipc.open_stream(file) as stream:
                for batch in stream:
                    arrays = [_cast(array, kind) for array, kind in zip(batch.columns, schema.types, strict=True)]
                    yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _cast(array: Any, kind: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_timestamp(kind):
        return array.cast(pa.timestamp("us")).cast(pa.int64()).cast(kind)
    if pa.types.is_floating(kind):
        array = pc.replace_substring_regex(array, "^(-?)inf$", r"\1Infinity")
    return array.cast(kind)


def _sorted(spool: Path, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows sorted by all columns, so that their order says nothing about how a database came by them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    whole = pa.Table.from_batches(list(_typed(spool, schema)), schema=schema)
    keys = whole.rename_columns([str(i) for i in range(whole.num_columns)])
    order = pc.sort_indices(keys, sort_keys=[(str(i), "ascending") for i in range(whole.num_columns)])
    yield from whole.take(order).to_batches(max_chunksize=CHUNK_ROWS)


def _logical(kind: Any) -> str:
    """The column type of `table-v1`."""
    import pyarrow as pa

    if pa.types.is_floating(kind):
        return "number"
    if pa.types.is_integer(kind):
        return "integer"
    return "timestamp" if pa.types.is_timestamp(kind) else "text"


def _digestible(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with what `table-v1` has no type for as text: truth values, dates and decimals."""
    import pyarrow as pa

    arrays = [array.cast(pa.string()) if _logical(array.type) == "text" else array for array in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)
