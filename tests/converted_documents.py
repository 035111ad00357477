"""The table of docs/documents.md: what comes of each file of docling_docs. `python -m tests.converted_documents` prints it."""

from __future__ import annotations

import contextlib
import csv
import io
import logging
import os
import re
import tempfile
import warnings
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from mlpipe.documents.cache import Cache
from mlpipe.documents.gather import Policy, gather
from mlpipe.documents.pool import Document, Limits
from mlpipe.documents.result import Converted, How

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
PASSWORDS = {"sources/2206.01062_pg3.pdf": "1234"}
WORD = re.compile(r"\w+")

HEAD = """# Documents

What the source `documents` makes of 58 files that Docling's own tests read, by default, with the password of the encrypted one.
No model is fetched for any of it.
The similarity is that of the Markdown with the ground truth beside the file (which for PDFs Docling 2.121 wrote with its layout models):
the Dice coefficient of the pairs of neighbouring words.
`docling` is what Docling's converter gives by itself with the same pipeline, and no similarity where it gives nothing.
This page is printed by `python -m tests.converted_documents`, and a test compares it with what comes of the files now.

| file | status | words | similarity | docling |
| --- | --- | ---: | ---: | ---: |
"""
TAIL = """
Legacy Office files are read where LibreOffice is installed, and else refused by name.
Pages without a text layer and pictures are read by RapidOCR, whose models come in its package.
These models read Latin and Chinese letters; of scans in others (Cyrillic, Greek, Hebrew, Arabic) comes nothing or nonsense.
"""


@dataclass(frozen=True)
class Entry:
    """A file with its ground truth, its result and Docling's own Markdown."""

    name: str
    truth: str | None
    found: Converted
    own: str

    @property
    def similarity(self) -> float | None:
        return None if self.truth is None or self.found.status == "failed" else similarity(self.found.markdown, self.truth)

    @property
    def own_similarity(self) -> float | None:
        return None if self.truth is None or not self.own.strip() else similarity(self.own, self.truth)


def similarity(text: str, truth: str) -> float:
    """Dice coefficient of the pairs of neighbouring words, marks of pictures left out."""
    one, two = (Counter(pairwise(WORD.findall(part.replace("<!-- image -->", " ").lower()))) for part in (text, truth))
    total = sum(one.values()) + sum(two.values())
    return 2 * sum((one & two).values()) / total if total else 1.0


def entries(folder: Path) -> list[Entry]:
    """Every file of docling_docs, converted by us and by Docling itself."""
    truths: dict[str, str | None] = {}
    with (folder / "labels.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            pages = [name for name in row["groundtruth"].split() if name.endswith(".md")]
            truths[row["file"]] = (folder / pages[0]).read_text(encoding="utf-8") if pages else None
    names = sorted(truths)
    documents = [Document(name, folder / name, PASSWORDS.get(name, "")) for name in names]
    with tempfile.TemporaryDirectory() as known:
        gathered = gather(documents, How(), Cache(Path(known), How()), 2, Limits(120, 4096), Policy(skip=True))
        results = {document.name: found for document, found in [*gathered.whole(), *gathered.bad]}
    own = docling_itself([folder / name for name in names])
    return [Entry(name, truths[name], results[name], text) for name, text in zip(names, own, strict=True)]


def docling_itself(files: list[Path]) -> list[str]:
    """Docling's converter on each file, its native pipeline for PDFs; empty where it fails."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    from docling.datamodel.base_models import InputFormat
    from docling.datamodel.pipeline_options import NativePdfPipelineOptions
    from docling.document_converter import DocumentConverter, NativePdfFormatOption

    options = NativePdfPipelineOptions(parser_threads=1)
    converter = DocumentConverter(format_options={InputFormat.PDF: NativePdfFormatOption(pipeline_options=options)})
    texts = []
    logging.disable(logging.CRITICAL)
    try:
        for file in files:
            text = ""
            with contextlib.suppress(Exception), contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                text = converter.convert(file).document.export_to_markdown()
            texts.append(text.replace("<!-- image -->", ""))
    finally:
        logging.disable(logging.NOTSET)
    return texts


def page(found: list[Entry]) -> str:
    """The page."""

    def shown(value: float | None) -> str:
        return "" if value is None else f"{value:.2f}"

    lines = []
    for entry in found:
        notes = [f"{len(entry.found.scanned)} pages by OCR"] if entry.found.scanned else []
        notes += [entry.found.reason] if entry.found.reason else []
        status = " ".join([entry.found.status, *(f"({note})" for note in notes)])
        cells = [
            entry.name.removeprefix("sources/"),
            status,
            f"{entry.found.words:,}",
            shown(entry.similarity),
            shown(entry.own_similarity),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    read = sum(bool(entry.found.plain.strip()) for entry in found)
    return HEAD + "\n".join(lines) + f"\n\n{read} of {len(found)} files gave text.\n" + TAIL


if __name__ == "__main__":
    print(page(entries(SHARED / "docling_docs")), end="")
