"""Lines of text for the sources that read text: numbered, decoded, without comments and lines to skip, and as bytes for Arrow."""

from __future__ import annotations

import codecs
import io
from itertools import islice
from typing import IO, Any

from mlpipe.errors import DataError


def is_utf8(encoding: str) -> bool:
    """Whether Arrow can read the bytes as they are."""
    return codecs.lookup(encoding).name in ("utf-8", "utf-8-sig")


class TextLines:
    """Text lines with their numbers, comments and lines to skip left out. Raises DataError on bytes of another encoding."""

    def __init__(
        self, raw: IO[bytes], name: str, *, encoding: str = "utf-8", skip: int = 0, comment: str | None = None, quote: str | None = None
    ) -> None:
        self._text = io.TextIOWrapper(raw, encoding="utf-8-sig" if is_utf8(encoding) else encoding, newline="")
        self._encoding, self._skip, self._comment, self._quote = encoding, skip, comment, quote
        self._open = False
        self.name = name
        self.last = ""  # as it stands, with its line end
        self.number, self.passed = 0, 0
        self.begin: int | None = None

    def __iter__(self) -> TextLines:
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
                    f"{self.name} is not {self._encoding}: {fault}",
                    hint="set `encoding` to what the file is: utf-16-le, utf-8, ...",
                ) from None
            self.number += 1
            if self.number == 1:
                line = line.lstrip("\ufeff")
            if self.number <= self._skip:
                continue
            if self._comment and not self._open and line.startswith(self._comment):
                continue
            if self._comment and self._quote:
                self._open ^= line.count(self._quote) % 2 == 1
            if self.begin is None:
                self.begin = self.number
            self.passed += 1
            self.last = line
            return line

    def _undecodable(self, fault: UnicodeDecodeError) -> DataError:
        bad = fault.object[fault.start : fault.start + 1]
        line = self.number + 1 + fault.object[: fault.start].count(b"\n") if isinstance(fault.object, bytes) else self.number + 1
        return DataError(
            f"{self.name}, about line {line}: byte 0x{bad.hex()} is not {self._encoding}",
            hint="set `encoding` to what the file is: cp1252 (Western Europe, Windows), utf-16, shift_jis, ...",
        )


class Rewritten(io.RawIOBase):
    """Lines as a stream of UTF-8 bytes."""

    def __init__(self, lines: TextLines) -> None:
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


class Watched:
    """A stream that notices what passes by: quotes, line feeds, carriage returns alone. Files without them need no second look."""

    def __init__(self, raw: IO[bytes], quote: str | None) -> None:
        self._raw, self._quote = raw, quote.encode() if quote else None
        self._start, self._after = True, False
        self.quotes, self.line_feeds, self.bare_returns = False, False, False
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
        self.line_feeds = self.line_feeds or b"\n" in data
        if not self.bare_returns and (b"\r" in data or self._after):
            whole = b"\r" + data if self._after else data
            self._after = whole.endswith(b"\r") and bool(data)  # its line feed may begin the next block
            self.bare_returns = whole.count(b"\r") - self._after > whole.count(b"\r\n")
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
