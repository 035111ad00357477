"""Source `csv`: delimited text, plain or compressed, read by Arrow's streaming reader with every column as text."""

from __future__ import annotations

import codecs
import csv
import io
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, cast

from pydantic import model_validator

from mlpipe.base import NumberFormat
from mlpipe.errors import DataError
from mlpipe.sources.base import Source
from mlpipe.sources.streams import Compression, open_bytes

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK_BYTES = 4 << 20
FIELD_LIMIT = 1 << 30


class Csv(Source):
    """Delimited text. `header: true` reads the names from the first line; a list gives them and the file has none.

    Each row must have as many fields as there are columns; a quote that is never closed is a fault. Blank lines and,
    with `comment`, lines that begin with that mark are passed over. An empty cell is missing unless `missing` says otherwise.
    """

    kind: Literal["csv"] = "csv"
    delimiter: str = ","
    encoding: str = "utf-8"
    header: Literal[True] | tuple[str, ...] = True
    quote: str | None = '"'
    escape: str | None = None
    comment: str | None = None
    skip_lines: int = 0
    decimal: str = "."
    thousands: str | None = None
    compression: Compression = "auto"

    @model_validator(mode="after")
    def _consistent(self) -> Csv:
        for name in ("delimiter", "quote", "escape", "comment", "decimal", "thousands"):
            mark = getattr(self, name)
            if mark is not None and (len(mark) != 1 or mark in "\r\n"):
                raise ValueError(f"{name} must be one character, not {mark!r}")
            if mark is not None and name in ("delimiter", "quote", "escape") and not mark.isascii():
                raise ValueError(f"{name} must be an ASCII character, not {mark!r}")
            if mark is not None and name in ("decimal", "thousands") and mark in "0123456789+-eE":
                raise ValueError(f"{name} cannot be {mark!r}, which numbers are written with")
        if self.decimal == self.thousands:
            raise ValueError(f"decimal and thousands are both {self.decimal!r}")
        marks = [mark for mark in (self.delimiter, self.quote, self.escape, self.comment) if mark is not None]
        if twice := next((mark for mark in marks if marks.count(mark) > 1), None):
            raise ValueError(f"two of delimiter, quote, escape and comment are {twice!r}")
        try:
            "".encode(self.encoding)
        except LookupError:
            raise ValueError(f"encoding {self.encoding!r} is unknown; utf-8, cp1252 or utf-16 are examples") from None
        return self

    @property
    def numbers(self) -> NumberFormat:
        """Decimal and thousands marks."""
        return NumberFormat(decimal=self.decimal, thousands=self.thousands)

    def names(self, file: Path) -> list[str]:
        """The names given, or the first line's."""
        return self._header(file)[0]

    def _header(self, file: Path) -> tuple[list[str], int]:
        """The column names, and how many lines of the stream come before the rows (blank lines above the header count)."""
        if self.header is not True:
            return list(self.header), 0
        with open_bytes(file, self.compression) as raw:
            lines = self._lines(raw, file)
            for _, record in self._numbered(lines, strict=False):
                return [name.strip() if self.strip else name for name in record], lines.passed
        raise DataError(f"{file.name} is empty: no header, no rows", hint="is it the right file?")

    def cells(self, file: Path, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Text, dictionary-encoded by block. Raises DataError that names the line of what cannot be read."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        names, above = self._header(file)
        self._refuse_header(file, names)
        text = pa.dictionary(pa.int32(), pa.string())
        with open_bytes(file, self.compression) as raw:
            watch = _Watched(self._plain(raw, file), self.quote)
            try:
                reader = arrow_csv.open_csv(
                    watch,
                    read_options=arrow_csv.ReadOptions(block_size=BLOCK_BYTES, column_names=names, skip_rows=above),
                    parse_options=arrow_csv.ParseOptions(
                        delimiter=self.delimiter,
                        quote_char=self.quote or False,
                        escape_char=self.escape or False,
                        newlines_in_values=self._may_hold_newlines(file),
                    ),
                    convert_options=arrow_csv.ConvertOptions(column_types=dict.fromkeys(columns, text), include_columns=list(columns)),
                )
                yield from reader
            except pa.ArrowInvalid as fault:
                if self._has_rows(file):  # Arrow has several words for a file that ends behind its header
                    raise self._explained(file, len(names), fault) from None
        if watch.quotes:
            self._check_quotes(file)

    def _refuse_header(self, file: Path, names: list[str]) -> None:
        """Raises DataError when names are given and the first line holds the same ones: it would become a row of data."""
        if self.header is True:
            return
        with self._records(file) as records:
            for line, record in islice(records, 1):
                if [cell.strip() for cell in record] == names:
                    raise DataError(
                        f"{file.name}, line {line}: the file has a header line, and `header` gives the same names",
                        hint="leave `header` out of the pipeline file (predict: --reader header=true)",
                    )

    def _may_hold_newlines(self, file: Path) -> bool:
        """Whether a cell can hold a line break. A file without a quote cannot, and Arrow reads it half as fast again."""
        if self.escape is not None or not self.is_utf8:
            return True
        if self.quote is None:
            return False
        mark = self.quote.encode()
        with open_bytes(file, self.compression) as raw:
            if not isinstance(raw, io.BufferedReader) or not isinstance(raw.raw, io.FileIO):
                return True  # unpacking the file twice would cost more than it gains
            return any(mark in block for block in iter(lambda: raw.read(BLOCK_BYTES), b""))

    def places(self, file: Path, rows: Sequence[int]) -> dict[int, str]:
        """The lines on which rows begin, found by reading the file again."""
        found = super().places(file, rows)
        first = 1 if self.header is True else 0
        with self._records(file) as records:
            for number, (line, _) in enumerate(islice(records, max(rows, default=-1) + first + 1)):
                if number - first in found:
                    found[number - first] = f"line {line}"
        return found

    def _has_rows(self, file: Path) -> bool:
        with self._records(file) as records:
            return any(True for _ in islice(records, 1 if self.header is True else 0, None))

    def _plain(self, raw: IO[bytes], file: Path) -> IO[bytes]:
        """The bytes as Arrow reads them: UTF-8, without comments and lines to skip."""
        if self.is_utf8 and self.comment is None and not self.skip_lines:
            return raw
        return cast("IO[bytes]", io.BufferedReader(_Rewritten(self._lines(raw, file)), BLOCK_BYTES))

    @property
    def is_utf8(self) -> bool:
        """Whether Arrow can read the bytes as they are."""
        return codecs.lookup(self.encoding).name in ("utf-8", "utf-8-sig")

    def _lines(self, raw: IO[bytes], file: Path) -> _Lines:
        return _Lines(raw, self, file.name)

    @contextmanager
    def _records(self, file: Path, *, strict: bool = False) -> Iterator[Iterator[tuple[int, list[str]]]]:
        """Records that are not blank, each with the line it begins on, read by the standard library."""
        with open_bytes(file, self.compression) as raw:
            yield self._numbered(self._lines(raw, file), strict)

    def _numbered(self, lines: _Lines, strict: bool) -> Iterator[tuple[int, list[str]]]:
        csv.field_size_limit(FIELD_LIMIT)
        quoting: dict[str, Any] = {"quotechar": self.quote} if self.quote else {"quoting": csv.QUOTE_NONE}
        reader = csv.reader(lines, delimiter=self.delimiter, escapechar=self.escape, strict=strict, **quoting)
        while True:
            lines.begin = None
            try:
                record = next(reader)
            except StopIteration:
                return
            except csv.Error as fault:
                what = str(fault)
                what = "a quote is opened and never closed" if "unexpected end" in what else what
                raise DataError(
                    f"{lines.name}, line {lines.begin}: {what}",
                    hint="mend the quoting, or set `quote` (null for none) and `escape` to what the file uses",
                ) from None
            if record:
                yield lines.begin or 1, record

    def _check_quotes(self, file: Path) -> None:
        """Raises DataError when quoting is broken: Arrow would swallow the rows behind an open quote without a word."""
        with self._records(file, strict=True) as records:
            deque(records, maxlen=0)

    def _explained(self, file: Path, width: int, fault: Exception) -> DataError:
        """What Arrow refused, with its line."""
        try:
            if self.quote:
                self._check_quotes(file)
            with self._records(file) as records:
                for line, record in records:
                    if len(record) != width:
                        start = self.delimiter.join(record)[:80]
                        return DataError(
                            f"{file.name}, line {line}: {len(record)} fields instead of {width}: {start}",
                            hint=f"mend the line, or check `delimiter` (it is {self.delimiter!r}) and `quote`",
                        )
        except DataError as found:
            return found
        return DataError(f"{file.name} cannot be read as csv: {fault}", hint="a single row may not be larger than 4 MB")


class _Lines:
    """Text lines with their numbers, comments and lines to skip left out. Raises DataError on bytes of another encoding."""

    def __init__(self, raw: IO[bytes], settings: Csv, name: str) -> None:
        self._text = io.TextIOWrapper(raw, encoding="utf-8-sig" if settings.is_utf8 else settings.encoding, newline="")
        self._settings, self._open = settings, False
        self.name = name
        self.number, self.passed = 0, 0
        self.begin: int | None = None

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        while True:
            try:
                line = next(self._text)
            except UnicodeDecodeError as fault:
                # the decoder works block by block: the exact line is found by decoding line by line
                raise self._undecodable(fault) from None
            except UnicodeError as fault:  # UTF-16 without a mark
                raise DataError(
                    f"{self.name} is not {self._settings.encoding}: {fault}",
                    hint="set `encoding` to what the file is: utf-16-le, utf-8, ...",
                ) from None
            self.number += 1
            if self.number == 1:
                line = line.lstrip("\ufeff")
            if self.number <= self._settings.skip_lines:
                continue
            if self._settings.comment and not self._open and line.startswith(self._settings.comment):
                continue
            if self._settings.comment and self._settings.quote:
                self._open ^= line.count(self._settings.quote) % 2 == 1
            if self.begin is None:
                self.begin = self.number
            self.passed += 1
            return line

    def _undecodable(self, fault: UnicodeDecodeError) -> DataError:
        bad = fault.object[fault.start : fault.start + 1]
        line = self.number + 1 + fault.object[: fault.start].count(b"\n") if isinstance(fault.object, bytes) else self.number + 1
        return DataError(
            f"{self.name}, about line {line}: byte 0x{bad.hex()} is not {self._settings.encoding}",
            hint="set `encoding` to what the file is: cp1252 (Western Europe, Windows), utf-16, shift_jis, ...",
        )


class _Rewritten(io.RawIOBase):
    """Lines as a stream of UTF-8 bytes."""

    def __init__(self, lines: _Lines) -> None:
        self._lines, self._ready = lines, b""

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fills a buffer; 0 at the end."""
        view = memoryview(buffer)
        if not self._ready:
            self._ready = "".join(islice(self._lines, 4096)).encode()
        count = min(len(view), len(self._ready))
        view[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count


class _Watched:
    """A stream that notices whether a quote passes by, so that files without quotes skip the check for broken ones."""

    def __init__(self, raw: IO[bytes], quote: str | None) -> None:
        self._raw, self._quote = raw, quote.encode() if quote else None
        self._start = True
        self.quotes = False
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        """Bytes of the stream."""
        data = self._raw.read(size)
        if self._start:  # Arrow passes over one byte order mark; tools that rewrite files leave two
            self._start = False
            while data.startswith(codecs.BOM_UTF8):
                data = data[len(codecs.BOM_UTF8) :]
        if self._quote and not self.quotes and self._quote in data:
            self.quotes = True
        return data

    def readable(self) -> bool:
        """Yes."""
        return True

    def writable(self) -> bool:
        """No."""
        return False

    def seekable(self) -> bool:
        """No."""
        return False

    def close(self) -> None:
        """The stream is closed by who opened it."""
