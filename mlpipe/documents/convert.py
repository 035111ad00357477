"""One document through Docling. Runs in a worker process: imports docling, torch and the like."""

from __future__ import annotations

import io
import re
import subprocess
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from mlpipe.documents import sniff
from mlpipe.documents.encodings import BOM, decoded
from mlpipe.documents.ocr import Ocr, frames, page_pictures
from mlpipe.documents.result import Converted, Grid, How, Passage, failed

WORD = re.compile(r"\w+")
XML = ("xml", "nxml", "xbrl")
FEW_WORDS, MORE = 30, 3  # of a text layer that may be a stamp's; how many times more OCR must read on such a page to be believed
PLAIN_TEXTS = ("tex", "latex", "vtt")  # whose readers want UTF-8 without a mark


class Reader:
    """Converts documents one by one; the converters are made once and kept."""

    def __init__(self, how: How) -> None:
        self.how, self.ocr = how, Ocr()
        self._converters: dict[str, Any] = {}

    def read(self, name: str, data: bytes, password: str = "") -> Converted:
        """The document called `name`, its bytes given. Raises nothing that a document can cause."""
        if (refused := sniff.refusal(name, data)) is not None:
            return refused
        ending = sniff.ending_of(name)
        try:
            if ending == "pdf":
                return self._pdf(name, data, password)
            if ending in sniff.IMAGES:
                return self._image(name, data)
            if ending in sniff.LEGACY:
                return self._legacy(name, data)
            if ending in sniff.TEXTS:
                return self._text(name, ending, data)
            return self._whole(name, data, {})
        except MemoryError:
            return failed("memory limit", "the process ran out of memory")
        except ImportError as fault:
            return failed("unsupported", f"a package for it is missing: {fault.name or fault}")
        except Exception as fault:  # noqa: BLE001 (a broken document may make any of a dozen parsers raise anything)
            return failed("unreadable", f"{type(fault).__name__}: {_line(fault)}")

    # ---- kinds of files

    def _text(self, name: str, ending: str, data: bytes) -> Converted:
        """A text file in an encoding of its own; Docling gets UTF-8."""
        html = ending in ("html", "htm", "xhtml")
        try:
            text = decoded(data, asked=self.how.encoding, html=html)
        except LookupError:
            return failed("unreadable", f"encoding {self.how.encoding!r} is unknown")
        except UnicodeDecodeError as fault:
            return failed("unreadable", f"byte {fault.start:,} is not {self.how.encoding}: set `encoding` for the files that are")
        seen = {"encoding": text.encoding, "guessed": text.guessed}
        utf8 = text.text.replace("\x00", "").encode("utf-8", "replace")
        return self._whole(name, utf8 if ending in PLAIN_TEXTS else BOM + utf8, seen)

    def _whole(self, name: str, data: bytes, seen: dict[str, Any]) -> Converted:
        """A document that Docling reads as it stands."""
        result = self._docling("plain", name, data)
        if result.status.value == "failure" or result.document is None:
            return failed("damaged", _diagnosis(name, data) or _messages(result))
        pages = len(result.document.pages)
        found = self._told(result.document, pages, seen)
        if result.status.value == "partial_success":
            return _partial(found, _lost(result), _messages(result))
        if found.silent and sniff.ending_of(name) in XML:  # Docling calls it a success, also where it could not make out what it is
            return failed("unsupported", "nothing was read of it; of XML, JATS articles, USPTO patents and XBRL reports are read")
        return found

    def _pdf(self, name: str, data: bytes, password: str) -> Converted:
        """By Docling with docling-parse; by pypdfium2 where that cannot load the file; OCR for pages without a text layer."""
        kind = "layout" if self.how.pdf == "layout" else "native"
        result = self._docling(kind, name, data, password)
        if result.status.value == "failure" and not getattr(result.document, "pages", None):
            reason = _pdf_fault(data, password)
            if reason is not None:
                return reason
            result = self._docling(f"{kind} by pypdfium2", name, data, password)
            if result.status.value == "failure" and not result.document.pages:
                return failed("damaged", _messages(result))
        document = result.document
        count = max(result.input.page_count, len(document.pages))
        lost = tuple(number for number in range(1, count + 1) if number not in document.pages)
        texts = _pages_with_text(document)
        stamped = _stamped(document)  # a picture with hardly a word: a cover, or a scan with a stamp
        wanted = [n for n in range(1, count + 1) if n not in lost and (self.how.ocr == "force" or n not in texts or n in stamped)]
        scanned: list[int] = []
        if wanted and self.how.ocr != "off":
            read = {number: lines for number, picture in page_pictures(data, wanted, password) if (lines := self.ocr.lines(picture))}
            if self.how.ocr != "force":
                read = {n: lines for n, lines in read.items() if len(WORD.findall(" ".join(lines))) >= MORE * stamped.get(n, 0)}
            scanned = sorted(read)
            document = _with_lines(document, read) if read else document
        blank = tuple(n for n in range(1, count + 1) if n not in lost and n not in texts and n not in scanned)
        found = self._told(document, count, {"blank": blank, "scanned": tuple(scanned)})
        return _partial(found, lost, _messages(result)) if lost or result.status.value == "partial_success" else found

    def _image(self, name: str, data: bytes) -> Converted:
        """A picture, or each frame of one, by OCR."""
        from docling_core.types.doc import DoclingDocument

        read: dict[int, list[str]] = {}
        sizes: dict[int, tuple[int, int]] = {}
        try:
            for number, picture in frames(data):
                sizes[number] = picture.size
                read[number] = [] if self.how.ocr == "off" else self.ocr.lines(picture)
        except (OSError, ValueError, SyntaxError) as fault:  # what PIL raises for pictures that are none, or cut off
            like = sniff.looks_like(data)
            other = like not in ("a binary file",) and "image" not in like
            return failed("not what its name says", f"it is {like}") if other else failed("damaged", _line(fault))
        document = _with_lines(_paged(DoclingDocument(name=name), sizes), read)
        scanned = tuple(number for number, lines in read.items() if lines)
        blank = tuple(number for number in read if number not in scanned)
        return self._told(document, len(sizes), {"blank": blank, "scanned": scanned})

    def _legacy(self, name: str, data: bytes) -> Converted:
        """A legacy Office file, made a modern one by LibreOffice first."""
        command, target = sniff.office(), sniff.LEGACY[sniff.ending_of(name)]
        assert command is not None  # `sniff.refusal` refuses such files without it
        with tempfile.TemporaryDirectory() as folder:
            old = Path(folder) / f"document.{sniff.ending_of(name)}"
            old.write_bytes(data)
            profile = f"-env:UserInstallation=file://{folder}/profile"
            how = [command, profile, "--headless", "--convert-to", target, "--outdir", folder, str(old)]
            subprocess.run(how, capture_output=True, check=False, stdin=subprocess.DEVNULL)
            made = old.with_suffix(f".{target}")
            if not made.exists():
                return failed("damaged", "LibreOffice cannot convert it")
            return self._whole(f"document.{target}", made.read_bytes(), {})

    # ---- Docling

    def _docling(self, kind: str, name: str, data: bytes, password: str = "") -> Any:
        """Docling's result; the file reaches it as bytes, so that nothing beside it is fetched."""
        from docling.datamodel.base_models import DocumentStream

        converter = self._converters.get(kind)
        if converter is None or password:
            converter = _converter(kind, self.how, password)
        if not password:
            self._converters[kind] = converter
        stream = DocumentStream(name=name.rpartition("/")[2], stream=io.BytesIO(data))
        return converter.convert(stream, raises_on_error=False)

    def _told(self, document: Any, pages: int, seen: dict[str, Any]) -> Converted:
        """What is kept of a Docling document."""
        plain = document.export_to_text().strip()
        return Converted(
            pages=pages,
            title=_title(document),
            plain=plain,
            markdown=document.export_to_markdown(image_placeholder="").strip(),
            words=len(WORD.findall(plain)),
            pictures=len(document.pictures),
            tables=tuple(_grid(table) for table in document.tables),
            passages=tuple(_passages(document, self.how.passages)) if self.how.passages else (),
            **seen,
        )


def _converter(kind: str, how: How, password: str = "") -> Any:
    """A DocumentConverter that fetches nothing."""
    from docling.backend.pypdfium2_backend import PyPdfiumDocumentBackend
    from docling.datamodel.backend_options import PdfBackendOptions, ThreadedDoclingParseBackendOptions
    from docling.datamodel.base_models import InputFormat
    from docling.datamodel.pipeline_options import NativePdfPipelineOptions, PdfPipelineOptions
    from docling.document_converter import DocumentConverter, NativePdfFormatOption, PdfFormatOption

    if kind == "plain":
        return DocumentConverter()
    native, other = kind.startswith("native"), kind.endswith("pypdfium2")
    backend: dict[str, Any] = {"backend": PyPdfiumDocumentBackend} if other else {}
    if other:
        backend["backend_options"] = PdfBackendOptions(password=password or None)
    elif native or password:  # no model looks at the pages: drawing them is a third of the work
        backend["backend_options"] = ThreadedDoclingParseBackendOptions(
            password=password or None, parser_threads=1, render_pages=not native, include_bitmap_images=False
        )
    if native:
        options = NativePdfPipelineOptions(parser_threads=1, generate_page_images=False, generate_picture_images=False)
        option: Any = NativePdfFormatOption(pipeline_options=options, **backend)
    else:
        # pages without a text layer are read by our own RapidOCR, whose models need no folder
        option = PdfFormatOption(pipeline_options=PdfPipelineOptions(artifacts_path=how.artifacts, do_ocr=False), **backend)
    return DocumentConverter(format_options={InputFormat.PDF: option})


def missing_models(artifacts: str) -> list[str]:
    """The folders of models that Docling's standard pipeline needs and `artifacts` lacks."""
    from docling.datamodel.layout_model_specs import DOCLING_LAYOUT_HERON
    from docling.models.stages.table_structure.table_structure_model import TableStructureModel

    wanted = [DOCLING_LAYOUT_HERON.repo_id.replace("/", "--"), TableStructureModel._model_repo_folder]  # noqa: SLF001 (its only name)
    return [name for name in wanted if not (Path(artifacts) / name).is_dir()]


# ---- Docling's documents


def _title(document: Any) -> str:
    """The item that Docling calls the title, or else the first heading."""
    labels = [(getattr(item.label, "value", str(item.label)), item.text) for item in document.texts]
    for wanted in ("title", "section_header"):
        for label, text in labels:
            if label == wanted and text.strip():
                return " ".join(text.split())
    return ""


def _pages_with_text(document: Any) -> set[int]:
    return {place.page_no for item in [*document.texts, *document.tables] for place in item.prov if getattr(item, "text", "x").strip()}


def _stamped(document: Any) -> dict[int, int]:
    """Pages of which a picture covers half or more, and whose text layer has a few words: by number, how many."""
    words: Counter[int] = Counter()
    for item in document.texts:
        for place in item.prov[:1]:
            words[place.page_no] += len(WORD.findall(item.text))
    covered = set()
    for picture in document.pictures:
        for place in picture.prov[:1]:
            size = document.pages[place.page_no].size if place.page_no in document.pages else None
            if size is not None and abs(place.bbox.width * place.bbox.height) >= size.width * size.height / 2:
                covered.add(place.page_no)
    return {number: words[number] for number in covered if 0 < words[number] <= FEW_WORDS}


def _paged(document: Any, sizes: dict[int, tuple[int, int]]) -> Any:
    from docling_core.types.doc import Size

    for number, (width, height) in sizes.items():
        document.add_page(page_no=number, size=Size(width=width, height=height))
    return document


def _with_lines(document: Any, read: dict[int, list[str]]) -> Any:
    """The document, with the lines of pages that were read by OCR where these pages have their place.

    They stand for all that the text layer said of such a page, tables included; pictures stay.
    """
    from docling_core.types.doc import DocItemLabel, ProvenanceItem
    from docling_core.types.doc.base import BoundingBox

    document.delete_items(node_items=[item for item in (*document.texts, *document.tables) if item.prov and item.prov[0].page_no in read])
    for number in sorted(read):
        for line in read[number]:
            box = BoundingBox(l=0, t=0, r=0, b=0)
            document.add_text(label=DocItemLabel.TEXT, text=line, prov=ProvenanceItem(page_no=number, bbox=box, charspan=(0, len(line))))
    pages, page = [], 0
    for child in document.body.children:
        page = _first_page(document, child.resolve(document)) or page  # what lies on no page stays behind what it follows
        pages.append(page)
    order = sorted(range(len(pages)), key=pages.__getitem__)
    document.body.children = [document.body.children[i] for i in order]
    return document


def _first_page(document: Any, node: Any) -> int:
    """The page of a node, or of the first item below it that has one; 0 for none."""
    from docling_core.types.doc.document import ContentLayer

    everything = document.iterate_items(root=node, with_groups=True, traverse_pictures=True, included_content_layers=set(ContentLayer))
    return next((item.prov[0].page_no for item, _ in everything if getattr(item, "prov", None)), 0)


def _grid(table: Any) -> Grid:
    """A table's cells as text; the rows at its top that Docling calls headers become the header, joined."""
    rows = [[" ".join(cell.text.split()) for cell in row] for row in table.data.grid]
    marked = [bool(row) and all(cell.column_header for cell in row) for row in table.data.grid]
    heads = next((i for i, head in enumerate(marked) if not head), len(marked))
    width = max((len(row) for row in rows), default=0)
    names: list[str] = []
    for column in range(width):
        parts = dict.fromkeys(row[column] for row in rows[:heads] if column < len(row) and row[column])
        name = base = " ".join(parts) or f"column_{column + 1}"
        number = 2
        while name in names:
            name, number = f"{base}_{number}", number + 1
        names.append(name)
    page = table.prov[0].page_no if table.prov else None
    return Grid(page=page, header=tuple(names), rows=tuple((*row, *[""] * (width - len(row))) for row in rows[heads:]))


def _passages(document: Any, words: int) -> list[Passage]:
    """Docling's hybrid chunker, its limit counted in words."""
    from docling_core.transforms.chunker.hybrid_chunker import HybridChunker
    from docling_core.transforms.chunker.tokenizer.base import BaseTokenizer

    class Words(BaseTokenizer):  # type: ignore[misc]  # docling is not followed
        """Counts words, so that no tokeniser has to be fetched."""

        most: int

        def count_tokens(self, text: str) -> int:
            return len(WORD.findall(text))

        def get_max_tokens(self) -> int:
            return self.most

        def get_tokenizer(self) -> Any:
            return self.count_tokens

    found = []
    for chunk in HybridChunker(tokenizer=Words(most=words), merge_peers=True).chunk(dl_doc=document):
        pages = sorted({place.page_no for item in chunk.meta.doc_items for place in item.prov})
        found.append(Passage(text=chunk.text, headings=tuple(chunk.meta.headings or ()), pages=tuple(pages)))
    return found


# ---- what went wrong


def _lost(result: Any) -> tuple[int, ...]:
    return tuple(sorted({item.page_no for item in result.errors if getattr(item, "page_no", None)}))


def _partial(found: Converted, lost: tuple[int, ...], detail: str) -> Converted:
    """A document of which some is missing."""
    told = f"{len(lost)} of {found.pages} pages: {', '.join(map(str, lost[:10]))}" if lost else detail
    return found.model_copy(update={"status": "partial", "reason": "pages missing", "detail": told, "lost": lost})


def _pdf_fault(data: bytes, password: str) -> Converted | None:
    """Why a PDF cannot be opened, by PDFium; None where PDFium opens it."""
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(data, password=password or None)
        count = len(document)
        document.close()
    except pypdfium2.PdfiumError as fault:
        if "password" in str(fault).lower():
            return failed("password", "the password is wrong" if password else "the file is encrypted")
        cut = "" if b"%%EOF" in data[-2048:] else "; its end is missing"
        return failed("damaged", f"PDFium cannot open it{cut}")
    return None if count else failed("damaged", "it has no pages")


def _diagnosis(name: str, data: bytes) -> str:
    """What the plain parser of an Office format says of a file that Docling cannot load."""
    ending = sniff.ending_of(name)
    try:
        if ending in ("docx", "docm", "dotx", "dotm"):
            import docx

            docx.Document(io.BytesIO(data))
        elif ending in ("pptx", "pptm", "ppsx", "potx"):
            import pptx

            pptx.Presentation(io.BytesIO(data))
        elif ending in ("xlsx", "xlsm"):
            import openpyxl

            openpyxl.load_workbook(io.BytesIO(data), read_only=True)
    except Exception as fault:  # noqa: BLE001 (its message is what is looked for)
        return f"a part is broken or missing: {_line(fault)}"
    return ""


def _messages(result: Any) -> str:
    """Docling's own words, without the digest by which it calls a file."""
    texts = dict.fromkeys(re.sub(r"\s*(with hash|document|key=)?\s*\b[0-9a-f]{9,}\b", "", item.error_message) for item in result.errors)
    return "; ".join(texts)[:300]


def _line(fault: BaseException) -> str:
    text = str(fault).strip() or type(fault).__name__
    return text.splitlines()[0].strip("'\"")[:200]
