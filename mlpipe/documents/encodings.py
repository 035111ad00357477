"""How the bytes of a text file are read where nothing outside says it: as browsers do, and what was guessed is told."""

from __future__ import annotations

import re
from dataclasses import dataclass

BOM = b"\xef\xbb\xbf"
META = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([a-zA-Z0-9_:.-]+)", re.IGNORECASE)
XML = re.compile(rb"^\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([a-zA-Z0-9_:.-]+)[\"']", re.IGNORECASE)
LOOKED_AT = 4096  # bytes in which a page says its encoding; browsers look at 1,024


@dataclass(frozen=True)
class Decoded:
    """A text, the name of its encoding (WHATWG's, such as windows-1252), and whether that is a guess."""

    text: str
    encoding: str
    guessed: bool


def decoded(data: bytes, *, asked: str = "", html: bool = False) -> Decoded:
    """By `asked`; else a byte order mark, what an HTML page or XML declares, UTF-8 if all bytes are, or else windows-1252.

    A declared encoding that the bytes contradict is not believed: browsers would show replacement characters.
    Raises UnicodeDecodeError where `asked` does not fit, LookupError where it is no encoding.
    """
    import webencodings

    if asked:
        return Decoded(data.decode(_python_name(asked)), asked, False)
    for mark, name in ((BOM, "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        if data.startswith(mark):
            return Decoded(data[len(mark) :].decode(name, "replace"), name, False)
    head = data[:LOOKED_AT]
    declared = (META.search(head) if html else None) or XML.search(head)
    if declared:
        found = webencodings.lookup(declared[1].decode("ascii"))
        if found is not None:
            name = "utf-8" if found.name.startswith("utf-16") else found.name  # as browsers do: the declaration itself was read as ASCII
            try:
                return Decoded(found.codec_info.decode(data, "strict")[0] if name == found.name else data.decode(name), name, False)
            except UnicodeDecodeError:
                pass
    try:
        return Decoded(data.decode("utf-8"), "utf-8", False)
    except UnicodeDecodeError:
        return Decoded(webencodings.decode(data, "windows-1252")[0], "windows-1252", True)


def _python_name(label: str) -> str:
    """The codec of a label: WHATWG's reading of it where it is one (latin-1 is windows-1252 there), else Python's."""
    import webencodings

    found = webencodings.lookup(label)
    return found.codec_info.name if found is not None else label
