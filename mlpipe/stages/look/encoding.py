"""In which encoding a text file is written. Nothing is guessed from a part: the encoding must decode every byte."""

from __future__ import annotations

import codecs
import json
from pathlib import Path

from mlpipe.errors import DataError
from mlpipe.sources.streams import open_bytes

BLOCK = 1 << 20
EVIDENCE_BYTES = 200_000  # of lines with bytes beyond ASCII: enough for chardet, which takes 0.1 s for it
FEW_BYTES = 6  # with fewer than these a guess is worth less than what most such files are
EURO_IN_LATIN9 = b"\xa4"


def encoding(file: Path) -> tuple[str, str]:
    """The encoding in which every byte of a file can be read, and why. Raises DataError when there is none."""
    with open_bytes(file) as raw:
        head = raw.read(4096)
    if head.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32", "the file begins with a UTF-32 mark"
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16", "the file begins with a UTF-16 mark"
    if b"\0" in head:
        odd, even = head[1::2].count(0), head[0::2].count(0)
        if max(odd, even) >= 0.8 * len(head) / 2 and not min(odd, even):
            name = "utf-16-le" if odd else "utf-16-be"
            if _decodes(file, name):
                return name, "every other byte is zero: UTF-16 without a mark"
        if odd + even > len(head) / 10 or not _decodes(file, "utf-8"):
            raise DataError(f"{file.name} holds zero bytes: it is no text file", hint="is it the right file?")
    if _decodes(file, "utf-8"):
        return "utf-8", "every byte is UTF-8"
    first, lines = _beyond_ascii(file)
    for name in _candidates(b"".join(lines)):
        if _decodes(file, name):
            seen = lines[0].decode(name, "replace").strip()[:60]
            return name, f"a guess: line {first} is not UTF-8; in {name} it reads {json.dumps(seen, ensure_ascii=False)}"
    raise DataError(
        f"{file.name}, line {first}: the encoding is not UTF-8, and no guess fits every byte", hint="convert the file to UTF-8 first"
    )


def _beyond_ascii(file: Path) -> tuple[int, list[bytes]]:
    """The number of the first line with a byte beyond ASCII, and the first such lines."""
    first, size, lines = 0, 0, list[bytes]()
    with open_bytes(file) as raw:
        for number, line in enumerate(raw, 1):
            if not line.isascii():
                first = first or number
                lines.append(line)
                size += len(line)
            if size > EVIDENCE_BYTES:
                break
    return first, lines


def _candidates(text: bytes) -> list[str]:
    """Encodings to try: chardet's guess, but windows-1252 where that gives the same text or the guess is its sibling.

    ISO 8859-1 and -15 differ from windows-1252 in signs that browsers, which take it for both, have settled; only a byte
    that would be a euro sign in 8859-15, without any byte that windows-1252 alone has, speaks for 8859-15.
    """
    import chardet

    guess = chardet.detect(text)["encoding"]
    name = codecs.lookup(guess).name if guess and _known(guess) else "cp1252"
    if name in ("iso8859-15", "iso8859-1") and not (
        name == "iso8859-15" and EURO_IN_LATIN9 in text and not any(0x80 <= byte < 0xA0 for byte in text)
    ):
        name = "cp1252"
    if name != "cp1252" and _text(text, name) == _text(text, "cp1252") is not None:
        name = "cp1252"
    if sum(byte > 0x7F for byte in text) < FEW_BYTES:
        return list(dict.fromkeys(["cp1252", name]))
    return list(dict.fromkeys([name, "cp1252"]))


def _known(encoding: str) -> bool:
    try:
        return bool(codecs.lookup(encoding))
    except LookupError:
        return False


def _text(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        return None


def _decodes(file: Path, encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    with open_bytes(file) as raw:
        try:
            while block := raw.read(BLOCK):
                decoder.decode(block)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return False
    return True
