"""One document through Docling, in this process."""

from __future__ import annotations

import pytest

from mlpipe.documents.convert import Reader
from mlpipe.documents.result import How

ENTITY = b"""<?xml version="1.0"?>
<!DOCTYPE article PUBLIC "-//NLM//DTD JATS v1.2//EN" "JATS.dtd" [<!ENTITY x SYSTEM "file://%s">]>
<article><front/><body><sec><title>A</title><p>hello &x; there</p></sec></body></article>"""


@pytest.fixture(scope="module")
def reader():
    return Reader(How())


@pytest.mark.parametrize("data", [b"<?xml version='1.0'?><root><a>hello</a></root>", b"<a/>"])
def test_xml_of_which_nothing_was_read_is_no_success(reader, data):
    """Docling alone ends with SUCCESS and an empty document."""
    found = reader.read("a.xml", data)
    assert (found.status, found.reason) == ("failed", "unsupported")
    assert "JATS" in found.detail


def test_a_document_brings_in_no_other_file(reader, tmp_path):
    """By an entity, a picture, a frame, an include: a document from outside must not show what lies on this machine."""
    secret = tmp_path / "secret.txt"
    secret.write_text("SECRETXYZ")
    path = str(secret).encode()
    for name, data in {
        "a.nxml": ENTITY % path,
        "a.html": b"<p>x</p><img src='file://%s'><iframe src='file://%s'></iframe>" % (path, path),
        "a.md": b"x ![x](file://%s)" % path,
        "a.tex": b"\\documentclass{article}\\begin{document}x \\input{%s}\\end{document}" % path,
        "a.adoc": b"= Title\n\nx\n\ninclude::%s[]" % path,
    }.items():
        found = reader.read(name, data)
        assert "SECRETXYZ" not in found.markdown + found.plain, name
