"""Source `fixed`: text in which a column is the same places of every line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from mlpipe.base import NumberFormat
from mlpipe.errors import DataError
from mlpipe.sources.base import CHUNK_ROWS, Source
from mlpipe.sources.streams import Compression, open_bytes
from mlpipe.sources.textlines import TextLines

if TYPE_CHECKING:
    import pyarrow as pa

Place = Annotated[int, Field(ge=1)]


class Fixed(Source):
    """Fixed-width text: each column is the same places of every line.

    `columns` gives the first and the last place of each column, counted from 1; or `widths` and `header` cut the line up from
    its beginning. A line that is shorter than the last column's end, or that goes on behind it with more than blanks, is a
    fault; `width` is the whole line's length where columns behind the last one are left out, and `pad: true` fills short lines
    with blanks. Places are characters, or bytes with `unit: bytes`. Blank lines are passed over.
    """

    kind: Literal["fixed"] = "fixed"
    columns: dict[str, tuple[Place, Place]] | None = None
    widths: Annotated[tuple[Place, ...], Field(min_length=1)] | None = None
    header: tuple[str, ...] | None = None
    width: Place | None = None
    pad: bool = False
    unit: Literal["characters", "bytes"] = "characters"
    encoding: str = "utf-8"
    skip_lines: Annotated[int, Field(ge=0)] = 0
    comment: str | None = None
    decimal: str = "."
    thousands: str | None = None
    strip: bool = True
    compression: Compression = "auto"

    @model_validator(mode="after")
    def _consistent(self) -> Fixed:
        if (self.columns is None) == (self.widths is None):
            raise ValueError("write either columns: {NAME: [FIRST, LAST], ...} or widths: [...] with header: [...]")
        if self.widths is not None and len(self.header or ()) != len(self.widths):
            raise ValueError(f"{len(self.widths)} widths and {len(self.header or ())} names in header")
        if self.columns is not None and self.header is not None:
            raise ValueError("columns has the names; header belongs to widths")
        for name, (first, last) in (self.columns or {}).items():
            if last < first:
                raise ValueError(f"column {name!r} ends at {last}, before it begins at {first}")
        if self.width is not None and self.width < self._end:
            raise ValueError(f"width is {self.width}, but a column ends at {self._end}")
        if self.decimal == self.thousands:
            raise ValueError(f"decimal and thousands are both {self.decimal!r}")
        try:
            "".encode(self.encoding)
        except LookupError:
            raise ValueError(f"encoding {self.encoding!r} is unknown; utf-8, cp1252 or latin-1 are examples") from None
        if self.unit == "bytes" and any(len(sign.encode(self.encoding)) != 1 for sign in "a \n"):
            raise ValueError(f"unit: bytes needs an encoding with one byte for plain letters, not {self.encoding!r}")
        return self

    @property
    def numbers(self) -> NumberFormat:
        """Decimal and thousands marks."""
        return NumberFormat(decimal=self.decimal, thousands=self.thousands)

    @property
    def _cuts(self) -> dict[str, tuple[int, int]]:
        """Where each column begins (from 0) and ends."""
        if self.columns is not None:
            return {name: (first - 1, last) for name, (first, last) in self.columns.items()}
        cuts, at = [], 0
        for width in self.widths or ():
            cuts.append((at, at + width))
            at += width
        return dict(zip(self.header or (), cuts, strict=True))

    @property
    def _end(self) -> int:
        return max(last for _, last in self._cuts.values())

    def names(self, file: Path) -> list[str]:
        """The names that the settings give."""
        return list(self.columns) if self.columns is not None else list(self.header or ())

    def cells(self, file: Path, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Every cell as text, cut out of its line."""
        import pyarrow as pa

        cuts = self._cuts
        lines = self._lines(file)
        while batch := list(islice(lines, CHUNK_ROWS)):
            arrays = []
            for name in columns:
                first, last = cuts[name]
                texts = [line[first:last] for _, line in batch]
                if self.unit == "bytes":
                    texts = [self._decoded(cell, number, name, file) for (number, _), cell in zip(batch, texts, strict=True)]
                arrays.append(pa.array(texts, pa.string()).dictionary_encode())
            yield pa.RecordBatch.from_arrays(arrays, names=list(columns))

    def places(self, file: Path, rows: Sequence[int]) -> dict[int, str]:
        """The lines of rows."""
        found = super().places(file, rows)
        for row, (number, _) in enumerate(islice(self._lines(file), max(rows, default=-1) + 1)):
            if row in found:
                found[row] = f"line {number}"
        return found

    def _decoded(self, cell: str, number: int, name: str, file: Path) -> str:
        """Bytes (as Latin-1 has them) in the file's own encoding."""
        try:
            return cell.encode("latin-1").decode(self.encoding)
        except UnicodeDecodeError:
            raise DataError(
                f"{file.name}, line {number}, column {name!r}: the places cut a {self.encoding} character in two",
                hint="are the places counted in characters? unit: characters",
            ) from None

    def _lines(self, file: Path) -> Iterator[tuple[int, str]]:
        """(line number, line) of every row, each as long as the columns need."""
        end, width = self._end, self.width or self._end
        encoding = "latin-1" if self.unit == "bytes" else self.encoding
        with open_bytes(file, self.compression) as raw:
            lines = TextLines(raw, file.name, encoding=encoding, skip=self.skip_lines, comment=self.comment)
            for line in lines:
                number, text = lines.number, line.rstrip("\r\n")
                if number == 1 and self.unit == "bytes":
                    text = text.removeprefix("\xef\xbb\xbf")
                if not text.strip():
                    continue
                if len(text) < end:
                    if not self.pad:
                        raise DataError(
                            f"{file.name}, line {number}: {len(text)} {self.unit}, but the columns need {end}: {text[:80]}",
                            hint="correct the places; pad: true fills lines with blanks whose trailing blanks were cut off",
                        )
                    text = text.ljust(end)
                elif text[width:].strip():
                    raise DataError(
                        f"{file.name}, line {number}: {text[width:].strip()[:40]!r} stands behind the line's end at {width}",
                        hint="correct the places, or give the whole line's length as `width`",
                    )
                yield number, text
