"""Source `csv`: delimited text, plain or compressed, every column as text.

Arrow's streaming reader does the work. What it cannot read (fields parted by runs of blanks, blanks before a quote, short
rows to be filled) goes through the standard library's reader, which takes about five times as long.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Literal, cast

from pydantic import Field, model_validator

from mlpipe.base import NumberFormat
from mlpipe.errors import DataError
from mlpipe.sources.base import CHUNK_ROWS, Source
from mlpipe.sources.streams import Compression, open_bytes
from mlpipe.sources.textlines import Rewritten, TextLines, Watched, is_utf8

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK_BYTES = 4 << 20
FIELD_LIMIT = 1 << 30
WHITESPACE = "whitespace"


class Csv(Source):
    """Delimited text. `header: true` reads the names from the first line; a list gives them and the file has none.

    Each row must have as many fields as there are columns; a quote that is never closed is a fault. Blank lines and,
    with `comment`, lines that begin with that mark are passed over. An empty cell is missing unless `missing` says otherwise.
    A column whose header cell is empty is called `column_N` by its place. `delimiter: whitespace` parts fields at runs of
    blanks and tabs.
    """

    kind: Literal["csv"] = "csv"
    delimiter: str = ","
    encoding: str = "utf-8"
    header: Literal[True] | tuple[str, ...] = True
    quote: str | None = '"'
    escape: str | None = None
    comment: str | None = None
    skip_lines: Annotated[int, Field(ge=0)] = 0
    skip_initial_space: bool = False
    short_rows: Literal["refuse", "unnamed", "fill"] = "refuse"
    decimal: str = "."
    thousands: str | None = None
    compression: Compression = "auto"

    @model_validator(mode="after")
    def _consistent(self) -> Csv:
        for name in ("delimiter", "quote", "escape", "comment", "decimal", "thousands"):
            mark = getattr(self, name)
            if name == "delimiter" and mark == WHITESPACE:
                continue
            if mark is not None and (len(mark) != 1 or mark in "\r\n"):
                words = " or `whitespace`" if name == "delimiter" else ""
                raise ValueError(f"{name} must be one character{words}, not {mark!r}")
            if mark is not None and name in ("delimiter", "quote", "escape") and not mark.isascii():
                raise ValueError(f"{name} must be an ASCII character, not {mark!r}")
            if mark is not None and name in ("decimal", "thousands") and mark in "0123456789+-eE":
                raise ValueError(f"{name} cannot be {mark!r}, which numbers are written with")
        if self.delimiter == WHITESPACE and self.escape is not None:
            raise ValueError("escape has no meaning with delimiter: whitespace")
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
                return self._named(record), lines.passed
        raise DataError(f"{file.name} is empty: no header, no rows", hint="is it the right file?")

    def _named(self, record: list[str]) -> list[str]:
        """A header record as names; an empty one is called by its place, as long as no other column is called so."""
        names = [name.strip() if self.strip else name for name in record]
        return [name if name.strip() or (own := f"column_{i}") in names else own for i, name in enumerate(names, 1)]

    def cells(self, file: Path, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Text, dictionary-encoded by block. Raises DataError that names the line of what cannot be read."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        names, above = self._header(file)
        self._refuse_header(file, names)
        if self.delimiter == WHITESPACE or self.skip_initial_space or self.short_rows != "refuse":
            yield from self._slowly(file, names, columns)
            return
        text = pa.dictionary(pa.int32(), pa.string())
        with open_bytes(file, self.compression) as raw:
            watch = Watched(self._plain(raw, file), self.quote)
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
        if watch.quotes or (watch.bare_returns and watch.line_feeds):
            self._check_records(file)

    def _slowly(self, file: Path, names: list[str], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The same by the standard library's reader."""
        import pyarrow as pa

        wanted = [names.index(name) for name in columns]
        width, filled, first_filled = len(names), 0, 0
        enough = {"refuse": width, "unnamed": self._named_width(file, width), "fill": 0}[self.short_rows]
        with self._records(file, strict=True) as records:
            rows = islice(records, 1 if self.header is True else 0, None)
            while batch := list(islice(rows, CHUNK_ROWS)):
                for line, record in batch:
                    if enough <= len(record) < width:
                        filled, first_filled = filled + 1, first_filled or line
                        record += [""] * (width - len(record))
                    elif len(record) != width:
                        raise self._uneven(file, line, record, width)
                arrays = [pa.array([record[i] for _, record in batch], pa.string()).dictionary_encode() for i in wanted]
                yield pa.RecordBatch.from_arrays(arrays, names=list(columns))
        if filled:
            short = f"{filled:,} row{'s' * (filled > 1)} shorter than {width} fields, the first on line {first_filled}"
            self.note(f"{file.name}: {short}: filled with nothing")

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

    def _named_width(self, file: Path, width: int) -> int:
        """How many columns there are up to the last one that has a name in the file's header."""
        if self.header is not True:
            return width
        with self._records(file) as records:
            _, record = next(records)
        return max((i for i, name in enumerate(record, 1) if name.strip()), default=0)

    def _may_hold_newlines(self, file: Path) -> bool:
        """Whether a cell can hold a line break. A file without a quote cannot, and Arrow reads it half as fast again."""
        if self.escape is not None or not is_utf8(self.encoding):
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
        if is_utf8(self.encoding) and self.comment is None and not self.skip_lines:
            return raw
        return cast("IO[bytes]", io.BufferedReader(Rewritten(self._lines(raw, file)), BLOCK_BYTES))

    def _lines(self, raw: IO[bytes], file: Path) -> TextLines:
        return TextLines(raw, file.name, encoding=self.encoding, skip=self.skip_lines, comment=self.comment, quote=self.quote)

    def parsed(self, text: str, *, strict: bool = False) -> Iterator[tuple[int, list[str]]]:
        """The records of a text, header included, each with the line it begins on. Raises DataError for broken quoting if `strict`."""
        return self._numbered(
            TextLines(io.BytesIO(text.encode()), "the text", skip=self.skip_lines, comment=self.comment, quote=self.quote), strict
        )

    def _uneven(self, file: Path, line: int, record: list[str], width: int) -> DataError:
        start = (" " if self.delimiter == WHITESPACE else self.delimiter).join(record)[:80]
        hint = f"mend the line, or check `delimiter` (it is {self.delimiter!r}) and `quote`"
        if len(record) < width:
            hint += "; `short_rows: fill` takes the fields that are not there for empty ones"
        return DataError(f"{file.name}, line {line}: {len(record)} fields instead of {width}: {start}", hint=hint)

    @contextmanager
    def _records(self, file: Path, *, strict: bool = False) -> Iterator[Iterator[tuple[int, list[str]]]]:
        """Records that are not blank, each with the line it begins on, read by the standard library."""
        with open_bytes(file, self.compression) as raw:
            yield self._numbered(self._lines(raw, file), strict)

    def _numbered(self, lines: TextLines, strict: bool) -> Iterator[tuple[int, list[str]]]:
        csv.field_size_limit(FIELD_LIMIT)
        how: dict[str, Any] = {"quotechar": self.quote} if self.quote else {"quoting": csv.QUOTE_NONE}
        how |= {"escapechar": self.escape, "strict": strict}
        if self.delimiter == WHITESPACE:
            reader = csv.reader(self._evenly(lines), delimiter=" ", skipinitialspace=True, **how)
        else:
            reader = csv.reader(lines, delimiter=self.delimiter, skipinitialspace=self.skip_initial_space, **how)
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

    def _evenly(self, lines: TextLines) -> Iterator[str]:
        """Lines with one blank for each run of blanks and tabs outside quotes. Raises DataError for a quote that a line leaves open."""
        mark = re.escape(self.quote or "")
        blanks = re.compile(rf"({mark}[^{mark}]*{mark})|[ \t]+" if self.quote else r"()[ \t]+")
        for line in lines:
            if self.quote and line.count(self.quote) % 2:
                raise DataError(
                    f"{lines.name}, line {lines.number}: a quote is opened and not closed in this line: {line.strip()[:80]}",
                    hint="with `delimiter: whitespace` a cell ends in its line; set `quote` to null if the sign is plain text",
                )
            yield blanks.sub(lambda found: found[1] or " ", line.strip(" \t\r\n"))

    def _check_records(self, file: Path) -> None:
        """Raises DataError for what Arrow would pass over without a word.

        That is: rows swallowed by an open quote, and rows cut in two by a carriage return in a cell that is not in quotes.
        """
        count, first = {True: 0, False: 0}, {True: 0, False: 0}
        with open_bytes(file, self.compression) as raw:
            lines = self._lines(raw, file)
            for line, _ in self._numbered(lines, strict=True):
                if lines.last.endswith(("\r", "\n")):
                    bare = lines.last.endswith("\r")
                    count[bare] += 1
                    first[bare] = first[bare] or line
        if count[True] and count[False]:
            odd = first[count[True] < count[False]]
            raise DataError(
                f"{file.name}, line {odd}: some lines end in a carriage return alone, others in a line feed",
                hint="a cell with a line break in it must be in quotes; if none has one, make all line ends the same",
            )

    def _explained(self, file: Path, width: int, fault: Exception) -> DataError:
        """What Arrow refused, with its line."""
        try:
            if self.quote:
                self._check_records(file)
            with self._records(file) as records:
                for line, record in records:
                    if len(record) != width:
                        return self._uneven(file, line, record, width)
        except DataError as found:
            return found
        return DataError(f"{file.name} cannot be read as csv: {fault}", hint="a single row may not be larger than 4 MB")
