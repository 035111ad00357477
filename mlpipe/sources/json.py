"""Source `json`: an array of objects in one JSON document, read object by object."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from itertools import islice
from json import JSONDecodeError
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from mlpipe.errors import DataError, did_you_mean, listed
from mlpipe.sources.base import CHUNK_ROWS, Source
from mlpipe.sources.jsontext import cell, decoder
from mlpipe.sources.streams import Compression, open_bytes

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK = 1 << 18  # characters read at a time
LARGEST = 1 << 26  # characters that one value may have
BLANKS = " \t\n\r"


class Json(Source):
    """A JSON array of objects, plain or compressed. A null, or a name that an object lacks, is missing.

    `records` names the array where it lies inside an object: `data.items` is the value of `items` in the value of `data`.
    Numbers keep the digits that the file has, as in `jsonl`; true and false become the texts `true` and `false`.
    """

    kind: Literal["json"] = "json"
    records: str | None = None
    compression: Compression = "auto"

    def names(self, file: Path) -> list[str]:
        """Every name that an object of the array has, in order of first appearance."""
        found: dict[str, None] = {}
        for record in self.records_of(file):
            found.update(dict.fromkeys(record))
        if not found:
            raise DataError(f"{file.name} is empty: no rows", hint="is it the right file?")
        return list(found)

    def cells(self, file: Path, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Every value as text."""
        import pyarrow as pa

        records = enumerate(self.records_of(file), 1)
        while batch := list(islice(records, CHUNK_ROWS)):
            arrays = [
                pa.array([cell(record.get(name), name, f"row {row}", file) for row, record in batch], pa.string()).dictionary_encode()
                for name in columns
            ]
            yield pa.RecordBatch.from_arrays(arrays, names=list(columns))

    def records_of(self, file: Path) -> Iterator[dict[str, Any]]:
        """The records as decoded; numbers are `Digits`, texts plain `str`."""
        steps = self.records.split(".") if self.records else []
        with open_bytes(file, self.compression) as raw:
            document = _Document(raw)
            row = 0
            try:
                for record in document.array(steps, file.name):
                    row += 1
                    if not isinstance(record, dict):
                        raise DataError(
                            f"{file.name}, row {row}: a value that is no object", hint="the array must hold objects: [{...}, {...}]"
                        )
                    yield record
            except UnicodeDecodeError as fault:
                raise DataError(f"{file.name}: not UTF-8 ({fault.reason})", hint="JSON is UTF-8; convert the file") from None
            except RecursionError:
                raise DataError(f"{file.name}, row {row + 1}: brackets within brackets without end", hint="flatten it first") from None
            except ValueError as fault:
                what = fault.msg[:1].lower() + fault.msg[1:] if isinstance(fault, JSONDecodeError) else str(fault)
                raise DataError(
                    f"{file.name}, line {document.line}, row {row + 1}: {what}",
                    hint="the file must be one whole JSON document; one object a line is kind: jsonl",
                ) from None


class _Document:
    """The text of a JSON document, a value at a time: the standard library's decoder does the work, on as much text as it needs.

    ijson streams too, but gives numbers as decimals: 1e5 and 1E+5 would be one text, which in a category they are not.
    """

    def __init__(self, raw: IO[bytes]) -> None:
        self._text = io.TextIOWrapper(raw, encoding="utf-8-sig")
        self._decode = decoder().raw_decode
        self._buffer, self._at, self._ended = "", 0, False
        self.line = 1

    def array(self, steps: list[str], name: str) -> Iterator[Any]:
        """The values of the array at the end of a path of names; afterwards the rest of the document is looked through."""
        if not steps:
            if self._peek() == "{":
                raise self._no_array(name)
            self._take("[")
            yield from self._items()
        else:
            yield from self._inside(steps, steps, name)
        if self._peek():
            raise ValueError("there is more text after the end of the document")

    def _inside(self, steps: list[str], whole: list[str], name: str) -> Iterator[Any]:
        """The array below the names `steps` of the object that comes next."""
        path = ".".join(whole)
        if self._peek() != "{":
            above = ".".join(whole[: len(whole) - len(steps)]) or "the document"
            raise DataError(f"{name}: {above} is no object, so it has no {steps[0]!r}", hint=f"correct `records` (it is {path!r})")
        seen: list[str] = []
        for key in self._keys():
            if key in seen:
                raise ValueError(f"the name {key!r} stands twice")
            seen.append(key)
            if key != steps[0]:
                self._value()
            elif len(steps) > 1:
                yield from self._inside(steps[1:], whole, name)
            elif self._peek() == "[":
                self._take("[")
                yield from self._items()
            else:
                raise DataError(f"{name}: {path} is no array of objects", hint="correct `records`")
        if steps[0] not in seen:
            hint = did_you_mean(steps[0], seen) or f"there is: {listed(seen)}"
            raise DataError(f"{name} has no {path} ({steps[0]!r} is not there)", hint=hint)

    def _no_array(self, name: str) -> DataError:
        """What to do about a document that is an object."""
        for key in self._keys():
            if self._peek() == "[":
                self._take("[")
                if self._peek() == "{":
                    return DataError(f"{name} holds an object, not an array of objects", hint=f"name the array: records: {key}")
                return DataError(
                    f"{name} holds an object of columns ({key!r} is a list of values)",
                    hint="write it with a row for each object: [{...}, {...}], in pandas to_json(orient='records')",
                )
            if self._peek() == "{":
                return DataError(
                    f"{name} holds an object, not an array of objects",
                    hint=f"name the array below {key!r}: records: {key}.NAME; columns with row numbers inside are to be turned first",
                )
            self._value()
        return DataError(f"{name} holds one object, not an array of objects", hint="put it in brackets: [{...}]")

    def _keys(self) -> Iterator[str]:
        """The names of the object that comes next; who asks for the next one has read the value."""
        self._take("{")
        if self._peek() == "}":
            self._take("}")
            return
        while True:
            if self._peek() != '"':
                raise ValueError("a name in quotes is missing")
            key = self._value()
            self._take(":")
            yield key
            if self._peek() == "}":
                break
            self._take(",")
        self._take("}")

    def _items(self) -> Iterator[Any]:
        if self._peek() == "]":
            self._take("]")
            return
        while True:
            yield self._value()
            if self._peek() == "]":
                break
            self._take(",")
        self._take("]")

    def _more(self, size: int = BLOCK) -> bool:
        """Reads on; false at the end of the file."""
        block = self._text.read(size)
        self.line += self._buffer.count("\n", 0, self._at)
        self._buffer = self._buffer[self._at :] + block
        self._at = 0
        self._ended = not block
        return bool(block)

    def _peek(self) -> str:
        """The next sign that is no blank; empty at the end of the file."""
        while True:
            while self._at < len(self._buffer):
                if self._buffer[self._at] not in BLANKS:
                    return self._buffer[self._at]
                self._at += 1
            if not self._more():
                return ""

    def _take(self, sign: str) -> None:
        found = self._peek()
        if found != sign:
            self._settle()
            raise ValueError(f"{sign!r} is missing" if found else f"the file ends where {sign!r} is missing")
        self._at += 1

    def _settle(self) -> None:
        """Counts lines up to where the text is read."""
        self.line += self._buffer.count("\n", 0, self._at)
        self._buffer, self._at = self._buffer[self._at :], 0

    def _value(self) -> Any:
        """The value that comes next."""
        self._peek()
        size = BLOCK
        while True:
            try:
                value, end = self._decode(self._buffer, self._at)
            except JSONDecodeError as fault:
                if not self._ended and len(self._buffer) - self._at < LARGEST and self._more(size):
                    size *= 2  # so that a value of any length is decoded a few times only
                    continue
                self.line += self._buffer.count("\n", 0, fault.pos)
                raise
            except ValueError:
                self._settle()
                raise
            if end == len(self._buffer) and not self._ended and self._buffer[end - 1] not in '"]}':
                self._more()  # a number at the end of the text may go on
                continue
            self._at = end
            return value
