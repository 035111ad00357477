"""What a file is, by its bytes."""

from __future__ import annotations

import io
import zipfile

import pytest

from mlpipe.documents import sniff
from mlpipe.documents.sniff import OLE, ending_of, refusal


def packed(*members: str, encrypted: bool = False) -> bytes:
    text = io.BytesIO()
    with zipfile.ZipFile(text, "w") as archive:
        for member in members:
            archive.writestr(member, "<x/>" * 50)
    data = bytearray(text.getvalue())
    if encrypted:  # the first bit of each entry's flags, in the entry and in the directory
        for magic, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
            data[data.index(magic) + at] |= 1
    return bytes(data)


WORD = packed("[Content_Types].xml", "word/document.xml")


@pytest.mark.parametrize(
    ("name", "data", "reason", "detail"),
    [
        ("a.pdf", b"", "empty", "0 bytes"),
        ("a.md", b" \n\n", "empty", "3 bytes"),
        ("a.pdf", b"<!DOCTYPE html><html>login</html>", "not what its name says", "it is HTML"),
        ("a.pdf", WORD, "not what its name says", "it is a zip archive"),
        ("a.html", b"%PDF-1.4", "not what its name says", "it is a PDF"),
        ("a.txt", b"\x00\x01\x02\x03" * 9, "not what its name says", "it is a binary file"),
        ("a.docx", b"just some words", "not what its name says", "it is plain text"),
        ("a.docx", WORD[:-30], "damaged", "not a whole zip archive"),
        ("a.docx", WORD.replace(b"<x/><x/>", b"<x/>!x/>", 1), "damaged", "its part [Content_Types].xml is broken"),
        ("a.docx", packed("xl/workbook.xml"), "not what its name says", "it is an Excel workbook, not a Word document"),
        ("a.xlsx", packed("readme.txt"), "not what its name says", "a zip archive without xl/workbook"),
        ("a.docx", packed("word/document.xml", encrypted=True), "password", "encrypted"),
        ("a.docx", OLE + "EncryptedPackage".encode("utf-16-le"), "password", "encrypted"),
        ("a.docx", OLE + b"WordDocument", "not what its name says", "it is a legacy Office file"),
        ("a.doc", OLE + b"WordDocument", "unsupported", "soffice --headless --convert-to docx"),
        ("a.rtf", b"{\\rtf1 words}", "unsupported", "an RTF document; convert it with LibreOffice"),
        ("a.rtf", OLE, "not what its name says", "it is a legacy Office file"),
        ("a.doc", b"plain words", "not what its name says", "it is plain text"),
        ("a.xyz", b"abc", "unsupported", "no reader for the ending .xyz"),
        ("README", b"abc", "unsupported", "no reader for the ending (none)"),
    ],
)
def test_what_cannot_be_read_is_refused_with_one_reason(monkeypatch, name, data, reason, detail):
    monkeypatch.setattr(sniff, "office", lambda: None)
    found = refusal(name, data)
    assert found is not None
    assert (found.status, found.reason) == ("failed", reason)
    assert detail in found.detail


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.pdf", b"junk\n%PDF-1.4"),
        ("b/A.DOCX", WORD),
        ("a.txt", b"words"),
        ("a.md", "wörter".encode("utf-16")),
        ("a.odt", packed("content.xml")),
    ],
)
def test_what_may_be_read_is_let_through(name, data):
    assert refusal(name, data) is None


def test_a_legacy_file_goes_on_where_libreoffice_is_installed(monkeypatch):
    monkeypatch.setattr(sniff, "office", lambda: "soffice")
    assert refusal("a.doc", OLE) is None


def test_endings():
    assert [ending_of(name) for name in ("a/b.PDF", "a.b/c", "x.tar.gz", ".hidden")] == ["pdf", "", "gz", "hidden"]
