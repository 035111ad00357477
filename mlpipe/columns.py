"""Raw cells to typed raw columns: the one place where text becomes a number or a point in time.

A source yields cells as it found them (text for CSV and JSONL; text columns dictionary-encoded, so that work is done
once per distinct value). A column's type comes from its feature kind or from the task, never from a look at the data.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from mlpipe.base import NumberFormat, Settings
from mlpipe.digest import LARGEST_EXACT
from mlpipe.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

ColumnType = Literal["number", "text", "timestamp"]

NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


class Column(Settings):
    """A column of raw rows: its name in the source, its type, and for a timestamp its strptime format (or `iso`).

    `number` is float64, `text` is UTF-8, `timestamp` is microseconds since 1970-01-01 (UTC where the text has a zone).
    """

    name: str
    type: ColumnType
    format: str | None = None


@dataclass(frozen=True)
class Chunk:
    """Some rows of one file, in order. `first` is the number of the first row in that file, from 0."""

    rows: pa.RecordBatch
    file: str
    first: int


@dataclass(frozen=True)
class Fault:
    """A cell that its column's type does not admit: its row in the batch, the cell, and why."""

    row: int
    value: str
    reason: str


def arrow_type(kind: ColumnType) -> pa.DataType:
    """The Arrow type of a typed raw column; text is dictionary-encoded in memory and plain on disk."""
    import pyarrow as pa

    return {"number": pa.float64(), "text": pa.dictionary(pa.int32(), pa.string()), "timestamp": pa.timestamp("us")}[kind]


def convert(array: pa.Array, column: Column, numbers: NumberFormat) -> tuple[pa.Array, list[Fault]]:
    """The cells of `array` as `column.type`, and the cells that are not of that type (missing in the result).

    Raises DataError when the whole column is of a kind that cannot be converted (lists, binary).
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_string_view(array.type):
        array = array.cast(pa.string())
    if pa.types.is_dictionary(array.type):
        if column.type == "text":
            return _text_dictionary(array), []
        values, faults = convert(array.dictionary, column, numbers)
        typed = pc.take(values, array.indices)
        if not faults:
            return typed, []
        bad = {fault.row: fault for fault in faults}
        codes = array.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        rows = [row for row, code in enumerate(codes) if code in bad]
        return typed, [Fault(row, bad[codes[row]].value, bad[codes[row]].reason) for row in rows]
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), arrow_type(column.type)), []
    if column.type == "number":
        return _numbers(array, numbers)
    if column.type == "timestamp":
        return _timestamps(array, column.format or "iso")
    return _text_dictionary(_as_text(array, column.name).dictionary_encode()), []


def _text_dictionary(array: pa.DictionaryArray) -> pa.DictionaryArray:
    """int32 codes into distinct UTF-8 values, none of them null. An empty text is missing: that is how a graph is told so."""
    import pyarrow as pa
    import pyarrow.compute as pc

    empty = pc.index(array.dictionary.cast(pa.string()), "").as_py()
    if empty >= 0:
        values = pc.if_else(pc.equal(array.dictionary.cast(pa.string()), ""), None, array.dictionary.cast(pa.string()))
        array = pa.DictionaryArray.from_arrays(array.indices, values)
    if array.dictionary.null_count:
        array = array.dictionary_decode().dictionary_encode()
    if array.type != arrow_type("text"):
        array = pa.DictionaryArray.from_arrays(array.indices.cast(pa.int32()), array.dictionary.cast(pa.string()))
    return array


def _as_text(array: pa.Array, name: str) -> pa.Array:
    """Cells as text: numbers by their shortest decimal form, booleans as true and false, times as ISO 8601."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return array.cast(pa.string())
    if pa.types.is_floating(kind):
        array = array.cast(pa.float32()) if pa.types.is_float16(kind) else array
        array = pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)
    try:
        return array.cast(pa.string())
    except pa.ArrowException:
        raise DataError(f"column {name!r} holds {kind}, which is not text", hint="leave the column out or convert it first") from None


def _numbers(array: pa.Array, numbers: NumberFormat) -> tuple[pa.Array, list[Fault]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _numbers_from_text(array.cast(pa.string()), numbers)
    if pa.types.is_boolean(kind):
        array = array.cast(pa.int8())
    try:
        typed = array.cast(pa.float64(), safe=False)
    except pa.ArrowException:
        raise DataError(f"a column of {kind} is not a column of numbers") from None
    typed = pc.if_else(pc.is_nan(typed), pa.scalar(None, pa.float64()), typed)
    faults = _where(pc.is_inf(typed), array, "is not a finite number")
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        faults += _where(_inexact(array, typed), array, INEXACT)
    return typed, faults


INEXACT = "is a whole number beyond 2^53 that a float64 cannot hold exactly; make it a key or a category"


def _inexact(integers: pa.Array, typed: pa.Array) -> pa.Array:
    """Which whole numbers change when they become float64 (only those from 2^53 on are looked at: 2^53 + 1 becomes 2^53)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    big = pc.greater_equal(pc.abs(typed), float(LARGEST_EXACT))
    if not pc.any(big).as_py():
        return pa.array([False] * len(typed)) if len(typed) == 0 else pc.and_(big, False)
    flags = [
        bool(b) and int(i) == i and int(i) != int(t)
        for b, i, t in zip(big.to_pylist(), integers.to_pylist(), typed.to_pylist(), strict=True)
    ]
    return pa.array(flags)


def _numbers_from_text(text: pa.Array, numbers: NumberFormat) -> tuple[pa.Array, list[Fault]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    plain, misplaced = _plain_numbers(text, numbers)
    bad = pc.or_(misplaced, pc.invert(pc.match_substring_regex(plain, NUMBER)))
    if pc.any(bad).as_py():
        plain = pc.if_else(bad, pa.scalar(None, pa.string()), plain)
    typed = plain.cast(pa.float64())
    faults = _where(bad, text, "is not a number")
    faults += _where(pc.is_inf(typed), text, "is too large for a float64")
    if pc.any(pc.greater_equal(pc.abs(typed), float(LARGEST_EXACT))).as_py():
        whole = pc.match_substring_regex(plain, r"^[+-]?[0-9]+(\.0*)?$")
        flags = [bool(w) and LARGEST_EXACT <= abs(v) < float("inf") and int(t.partition(".")[0].lstrip("+-0")) != int(abs(v))
                 for t, w, v in zip(plain.to_pylist(), whole.to_pylist(), typed.to_pylist(), strict=True)]  # fmt: skip
        faults += _where(pa.array(flags), text, INEXACT)
    return typed, faults


def _plain_numbers(text: pa.Array, numbers: NumberFormat) -> tuple[pa.Array, pa.Array]:
    """Text with its thousands marks removed and its decimal mark a point, and where a mark stands in a wrong place.

    A thousands mark counts only between groups of three digits: "1,5" is not 15.
    """
    import pyarrow.compute as pc

    none = pc.and_(pc.is_null(text), False)
    misplaced = none
    decimal = re.escape(numbers.decimal)
    if numbers.thousands:
        mark = re.escape(numbers.thousands)
        has = pc.match_substring(text, numbers.thousands)
        grouped = pc.match_substring_regex(text, rf"^[+-]?[0-9]{{1,3}}({mark}[0-9]{{3}})+({decimal}[0-9]*)?([eE][+-]?[0-9]+)?$")
        misplaced = pc.or_(misplaced, pc.and_(has, pc.invert(grouped)))
        text = pc.replace_substring(text, numbers.thousands, "")
    if numbers.decimal != ".":
        misplaced = pc.or_(misplaced, pc.match_substring(text, "."))
        text = pc.replace_substring(text, numbers.decimal, ".")
    return text, misplaced


ZONE = re.compile(r"[T ][0-9:.]+ ?(Z|[+-][0-9]{2}(:?[0-9]{2}){0,2}(\.[0-9]+)?)$", re.IGNORECASE)


def _timestamps(array: pa.Array, form: str) -> tuple[pa.Array, list[Fault]]:
    import pyarrow as pa

    kind = array.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        zoned = pa.timestamp("us", tz="UTC") if getattr(kind, "tz", None) else pa.timestamp("us")
        try:  # nanoseconds are cut, as in text; nothing else may be lost
            return array.cast(zoned, safe=getattr(kind, "unit", None) != "ns").cast(pa.timestamp("us")), []
        except pa.ArrowInvalid as fault:
            raise DataError(f"a column of {kind} holds a time that microseconds cannot hold: {fault}") from None
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise DataError(f"a column of {kind} is not a column of dates or times")
    # one distinct value at a time, with the standard library: Arrow's strptime takes trailing text and wrong days without a word
    parsed, bad = [], []
    for text in array.to_pylist():
        moment = None if text is None else parse_moment(text, form)
        parsed.append(moment)
        bad.append(text is not None and moment is None)
    return pa.array(parsed, pa.int64()).cast(pa.timestamp("us")), _where(
        pa.array(bad, pa.bool_()), array, f"is not a time of the form {form!r}"
    )


def zone_examples(array: Any) -> dict[bool, str]:
    """A text with a zone (True) and one without (False) among ISO times, as far as there are any: a column may have one sort only."""
    import pyarrow as pa

    texts = array.dictionary if pa.types.is_dictionary(array.type) else array
    if not (pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type)):
        return {}
    return {ZONE.search(text) is not None: text for text in reversed(texts.drop_null().to_pylist())}


def check_format(form: str) -> str:
    """A time format that means the same on every machine. Raises ValueError for `%Z`, which depends on the machine's own zone."""
    if "%Z" in form.replace("%%", ""):
        raise ValueError(f"format {form!r}: %Z knows only the zones of the machine it runs on; write offsets and use %z")
    return form


def parse_moment(text: str, form: str) -> int | None:
    """Microseconds since 1970-01-01 of a text in a strptime format (or `iso`); None when it is not of that form.

    A time with a zone is taken to UTC; one without is taken as it stands.
    """
    from datetime import UTC, datetime, timedelta

    try:
        moment = datetime.fromisoformat(text) if form == "iso" else datetime.strptime(text, form)  # noqa: DTZ007 (as it stands)
        if moment.tzinfo is not None:
            moment = moment.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):  # a zone can lead out of the years 1 to 9999
        return None
    return (moment - datetime(1970, 1, 1)) // timedelta(microseconds=1)  # noqa: DTZ001


def sorted_numbers(values: pa.ChunkedArray) -> np.ndarray:
    """float64 [present]: the numbers that are not missing, in order, in one array of their own."""
    import numpy as np

    present: np.ndarray = np.empty(len(values) - values.null_count)
    at = 0
    for chunk in values.chunks:
        piece = chunk.drop_null()
        present[at : at + len(piece)] = piece.to_numpy(zero_copy_only=False)
        at += len(piece)
    present.sort()
    return present


def sorted_quantiles(present: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    """Linearly interpolated quantiles (numpy's default) of sorted numbers, without partitioning them again."""
    import numpy as np

    at = ranks * (len(present) - 1)
    low = np.floor(at).astype(np.int64)
    below, above = present[low], present[np.minimum(low + 1, len(present) - 1)]
    found: np.ndarray = below + (above - below) * (at - low)
    return found


def text_counts(values: pa.ChunkedArray) -> dict[str, int]:
    """How often each text stands in a column; missing cells do not count. Dictionary-encoded chunks are counted by their codes."""
    import numpy as np

    counts: dict[str, int] = {}
    for chunk in values.chunks:
        array: Any = _text_dictionary(chunk if hasattr(chunk, "dictionary") else chunk.dictionary_encode())
        table = array.dictionary.to_pylist()
        found = np.bincount(array.indices.drop_null().to_numpy(zero_copy_only=False), minlength=len(table))
        for text, count in zip(table, found.tolist(), strict=True):
            if count:
                counts[text] = counts.get(text, 0) + count
    return counts


def _where(mask: pa.Array, cells: pa.Array, reason: str) -> list[Fault]:
    """A fault for each true entry of `mask`."""
    import pyarrow.compute as pc

    if not pc.any(mask).as_py():
        return []
    rows: list[int] = pc.indices_nonzero(mask.fill_null(False)).to_pylist()
    return [Fault(row, _shown(str(cells[row].as_py())), reason) for row in rows]


def _shown(cell: str) -> str:
    return cell if len(cell) <= 100 else f"{cell[:97]}..."


P1, P2, P3 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def _mix(values: np.ndarray) -> np.ndarray:
    """splitmix64's finaliser (Steele, Lea and Flood 2014): spreads every input bit over all output bits."""
    import numpy as np

    values = (values ^ (values >> np.uint64(30))) * np.uint64(P2)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(P3)
    mixed: np.ndarray = values ^ (values >> np.uint64(31))
    return mixed


def row_hash(rows: pa.RecordBatch, columns: list[str], seed: int) -> np.ndarray:
    """uint64 [rows]: a stable hash of the named typed columns, whatever their order, the file, the machine or the chunk.

    Each cell is hashed (XXH3 of the UTF-8 bytes; the bits of a float64 with -0.0 as 0.0; a missing cell as a constant),
    mixed with the hash of its column's name, and folded in in the order of the sorted names.
    """
    import numpy as np
    import pyarrow as pa
    import xxhash

    total = np.full(rows.num_rows, np.uint64(xxhash.xxh3_64_intdigest(f"mlpipe-row-v1:{seed}".encode())))
    for name in sorted(columns):
        array: Any = rows.column(name)
        salt = np.uint64(xxhash.xxh3_64_intdigest(name.encode()))
        missing = np.uint64(P1)
        if pa.types.is_dictionary(array.type):
            distinct = [xxhash.xxh3_64_intdigest(value.encode()) for value in array.dictionary.to_pylist()]
            table = np.array([*distinct, int(missing)], dtype=np.uint64)
            codes = array.indices.fill_null(len(distinct)).to_numpy(zero_copy_only=False)
            cells = table[codes]
        elif pa.types.is_timestamp(array.type):
            cells = np.where(array.is_null().to_numpy(zero_copy_only=False), missing,
                             array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False).view(np.uint64))  # fmt: skip
        else:
            numbers = array.fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0
            cells = np.where(array.is_null().to_numpy(zero_copy_only=False), missing, numbers.view(np.uint64))
        with np.errstate(over="ignore"):
            total = _mix(total * np.uint64(P1) + _mix(cells ^ salt))
    return total
