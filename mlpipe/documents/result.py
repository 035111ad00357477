"""What came of one document, as plain data: it goes through a pipe from a worker, and into the cache."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from mlpipe.base import Settings

Status = Literal["ok", "partial", "failed"]
Reason = Literal[
    "",
    "password",
    "damaged",
    "empty",
    "not what its name says",
    "unsupported",
    "pages missing",
    "time limit",
    "memory limit",
    "unreadable",
]
NOT_KEPT = ("time limit", "memory limit", "unreadable")  # another run may fare better


class Grid(Settings):
    """A table inside a document: its page (None where the format has none), its header, its rows of cells."""

    page: int | None = None
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Passage(Settings):
    """A chunk of a document: its text, the headings above it, the pages it stands on."""

    text: str
    headings: tuple[str, ...] = ()
    pages: tuple[int, ...] = ()


class Converted(Settings):
    """A document's status, with one reason where it is not ok, and what was read of it.

    `pages` is 0 where the format has none; `lost` pages could not be read, `blank` ones have no text, `scanned` ones were read by OCR.
    `guessed` says how the encoding of a text file was found where nothing in the file says it.
    """

    status: Status = "ok"
    reason: Reason = ""
    detail: str = ""
    pages: int = 0
    lost: tuple[int, ...] = ()
    blank: tuple[int, ...] = ()
    scanned: tuple[int, ...] = ()
    encoding: str = ""
    guessed: bool = False
    title: str = ""
    plain: str = ""
    markdown: str = ""
    words: int = 0
    pictures: int = 0
    tables: tuple[Grid, ...] = ()
    passages: tuple[Passage, ...] = ()

    @property
    def silent(self) -> bool:
        """Whether it was converted and holds no text."""
        return self.status != "failed" and not self.plain.strip()

    def light(self) -> Converted:
        """The same without what takes memory: all that an account of many documents needs."""
        return self.model_copy(update={"plain": self.plain.strip()[:1], "markdown": "", "tables": (), "passages": ()})

    def why(self) -> str:
        """The reason with its detail."""
        return f"{self.reason} ({self.detail})" if self.detail else self.reason


def failed(reason: Reason, detail: str = "") -> Converted:
    """A document of which nothing came."""
    return Converted(status="failed", reason=reason, detail=detail)


@dataclass(frozen=True)
class How:
    """What decides the result of a conversion, beside the bytes and the ending of the file.

    `pdf` is `native` or `layout` (with the models in `artifacts`); `ocr` is auto, off or force; `encoding` stands in place of what
    a text file says of itself; `passages` is how many words a chunk may have, 0 for no chunks.
    """

    pdf: str = "native"
    artifacts: str = ""
    ocr: str = "auto"
    encoding: str = ""
    passages: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return dict(vars(self))
