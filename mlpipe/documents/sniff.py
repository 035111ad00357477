"""What a file is, by its first bytes and its insides: whether it is what its name says, whole and not locked."""

from __future__ import annotations

import io
import shutil
import zipfile

from mlpipe.documents.result import Converted, failed

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
ZIP = b"PK\x03\x04"
RTF = b"{\\rtf"
# what must lie inside: (a member, what such a file is called)
INSIDES = {
    "word/document": ("a Word document", ("docx", "dotx", "docm", "dotm")),
    "ppt/presentation": ("a PowerPoint presentation", ("pptx", "potx", "ppsx", "pptm", "potm", "ppsm")),
    "xl/workbook": ("an Excel workbook", ("xlsx", "xlsm", "xltx", "xltm")),
    "content.xml": ("an OpenDocument file", ("odt", "ott", "ods", "ots", "odp", "otp")),
    "META-INF/container.xml": ("an EPUB book", ("epub",)),
}
PACKED = {ending: (member, what) for member, (what, endings) in INSIDES.items() for ending in endings}
LEGACY = {
    "doc": "docx",
    "dot": "docx",
    "ppt": "pptx",
    "pot": "pptx",
    "pps": "pptx",
    "xls": "xlsx",
    "xlt": "xlsx",
    "rtf": "docx",
}  # LibreOffice makes these of them
IMAGES = ("jpg", "jpeg", "png", "tif", "tiff", "bmp", "webp", "gif")
TEXTS = ("html", "htm", "xhtml", "md", "markdown", "txt", "text", "qmd", "rmd", "adoc", "asciidoc", "asc", "csv", "tex", "latex", "vtt")
MARKED = ("xml", "nxml", "xbrl", "eml", "mhtml", "mht")  # say their encoding themselves
OTHERS = ("boxnote", "json", "pages", "key", "numbers", "msg", "dclx")
MAGIC = (
    (b"%PDF-", "a PDF"),
    (ZIP, "a zip archive"),
    (OLE, "a legacy Office file"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (RTF, "an RTF document"),
    (b"\x1f\x8b", "a gzip file"),
)
HTML = (b"<!doctype html", b"<html", b"<head", b"<body")
BOMS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")


def ending_of(name: str) -> str:
    """The last part of a name, in small letters, without the dot."""
    return name.rpartition("/")[2].lower().rpartition(".")[2] if "." in name.rpartition("/")[2] else ""


def known(ending: str) -> bool:
    """Whether there is a reader for files with this ending."""
    return ending == "pdf" or ending in (*PACKED, *LEGACY, *IMAGES, *TEXTS, *MARKED, *OTHERS)


def looks_like(data: bytes) -> str:
    """What the first bytes say, in words."""
    for magic, what in MAGIC:
        if data.startswith(magic):
            return what
    head = data[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if head.startswith(HTML):
        return "HTML"
    if head.startswith(b"<?xml"):
        return "XML"
    if b"\x00" in data[:4096] and not data.startswith(BOMS):
        return "a binary file"
    return "plain text"


def refusal(name: str, data: bytes) -> Converted | None:
    """Why a file cannot be what its name says, or None when it may be. Reads nothing but the bytes given."""
    ending = ending_of(name)
    if not known(ending):
        return failed("unsupported", f"no reader for the ending {'.' + ending if ending else '(none)'}")
    if not data.strip(b"\x00 \t\r\n"):
        return failed("empty", f"{len(data):,} bytes")
    if ending == "pdf":
        return None if b"%PDF-" in data[:1024] else _other(data)
    if ending in PACKED:
        return _packed(ending, data)
    if ending in LEGACY:
        if not data.startswith(RTF if ending == "rtf" else OLE):
            return _other(data)
        if office() is None:
            what, target = "an RTF document" if ending == "rtf" else "a legacy Office file", LEGACY[ending]
            return failed("unsupported", f"{what}; convert it with LibreOffice: soffice --headless --convert-to {target} FILE")
        return None
    if ending in TEXTS or ending in ("eml", "mhtml", "mht"):
        like = looks_like(data)
        return None if like in ("HTML", "XML", "plain text") else _other(data)
    return None


def office() -> str | None:
    """LibreOffice's command, where it is installed."""
    return shutil.which("soffice") or shutil.which("libreoffice")


def _other(data: bytes) -> Converted:
    return failed("not what its name says", f"it is {looks_like(data)}")


def _packed(ending: str, data: bytes) -> Converted | None:
    """Of formats that are zip archives."""
    member, what = PACKED[ending]
    if data.startswith(OLE):  # an encrypted Office file lies in the container of the legacy ones
        return failed("password", "the file is encrypted") if "EncryptedPackage".encode("utf-16-le") in data else _other(data)
    if not data.startswith(ZIP):
        return _other(data)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            names = [entry.filename for entry in entries]
            if any(entry.flag_bits & 1 for entry in entries):
                return failed("password", "the file is encrypted")
            if member == "content.xml" and b"encryption-data" in _read(archive, "META-INF/manifest.xml"):
                return failed("password", "the file is encrypted")
            if (bad := archive.testzip()) is not None:
                return failed("damaged", f"its part {bad} is broken")
    except (zipfile.BadZipFile, OSError, ValueError, EOFError, NotImplementedError, RuntimeError) as fault:
        return failed("damaged", f"cut off, or not a whole zip archive: {str(fault).lower()}"[:200])
    except Exception as fault:  # noqa: BLE001 (zlib and lzma raise errors of their own for a broken part)
        return failed("damaged", f"a part is broken: {str(fault).lower()}"[:200])
    if any(name.startswith(member) for name in names):
        return None
    for other, (called, _) in INSIDES.items():
        if any(name.startswith(other) for name in names):
            return failed("not what its name says", f"it is {called}, not {what}")
    return failed("not what its name says", f"a zip archive without {member}")


def _read(archive: zipfile.ZipFile, name: str) -> bytes:
    return archive.read(name) if name in archive.namelist() else b""
