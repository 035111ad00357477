"""Text files without a word on their encoding are read as browsers read them (case D02)."""

from __future__ import annotations

import pytest

from mlpipe.documents.encodings import decoded

TEXT = "Prix : 40 € – «près»"
PAGE = '<html><head><meta charset="{}"></head><body>{}</body></html>'


@pytest.mark.parametrize(
    ("data", "encoding", "guessed"),
    [
        (TEXT.encode(), "utf-8", False),
        (TEXT.encode("cp1252"), "windows-1252", True),
        (b"\xef\xbb\xbf" + TEXT.encode(), "utf-8", False),
        (TEXT.encode("utf-16"), "utf-16-le", False),
        (b"\xfe\xff" + TEXT.encode("utf-16-be"), "utf-16-be", False),
    ],
)
def test_marks_utf8_and_the_guess(data, encoding, guessed):
    found = decoded(data, html=True)
    assert (found.text, found.encoding, found.guessed) == (TEXT, encoding, guessed)


@pytest.mark.parametrize(
    ("label", "codec", "text", "encoding"),
    [
        ("Shift_JIS", "cp932", "請求書 四十円", "shift_jis"),
        ("iso-8859-1", "cp1252", TEXT, "windows-1252"),  # as browsers take it
        ("utf-8", "utf-8", TEXT, "utf-8"),
        ("utf-16", "utf-8", TEXT, "utf-8"),  # the declaration was read as ASCII, so it is none
        ("koi8-r", "koi8-r", "письмо", "koi8-r"),
        ("gb2312", "gb18030", "发票", "gbk"),
    ],
)
def test_a_page_is_read_by_what_it_declares(label, codec, text, encoding):
    found = decoded(PAGE.format(label, text).encode(codec), html=True)
    assert text in found.text
    assert (found.encoding, found.guessed) == (encoding, False)


def test_a_declaration_that_the_bytes_contradict_is_not_believed():
    found = decoded(PAGE.format("utf-8", TEXT).encode("cp1252"), html=True)
    assert TEXT in found.text
    assert (found.encoding, found.guessed) == ("windows-1252", True)
    assert decoded(PAGE.format("no-such-thing", TEXT).encode(), html=True).encoding == "utf-8"


def test_a_charset_in_plain_text_is_no_declaration():
    assert decoded('write <meta charset="koi8-r"> é'.encode()).encoding == "utf-8"


def test_what_is_asked_for_is_done_or_refused():
    assert decoded("письмо".encode("koi8-r"), asked="koi8-r").text == "письмо"
    with pytest.raises(UnicodeDecodeError):
        decoded(b"\xff\xff", asked="utf-8")
    with pytest.raises(LookupError):
        decoded(b"x", asked="no-such-thing")
