"""One document through Docling, in this process."""

from __future__ import annotations

import pytest

from mlpipe.documents.convert import Reader, _converter, _stamped, _with_lines
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


def test_pages_of_pdfs_are_not_drawn_unless_a_model_looks_at_them():
    """By default Docling draws and packs every page and picture, for nobody: it doubles the time that a PDF takes."""
    from docling.datamodel.base_models import InputFormat

    for password in ("", "secret"):
        option = _converter("native", How(), password).format_to_options[InputFormat.PDF]
        assert not (option.pipeline_options.generate_page_images or option.pipeline_options.generate_picture_images)
        assert not (option.backend_options.render_pages or option.backend_options.include_bitmap_images)
        other = _converter("native by pypdfium2", How(), password).format_to_options[InputFormat.PDF].backend_options
        assert {(options.password.get_secret_value() if options.password else "") for options in (option.backend_options, other)} == {
            password
        }
    layout = _converter("layout", How(pdf="layout", artifacts="x"), "secret").format_to_options[InputFormat.PDF]
    assert layout.backend_options.render_pages


def test_lines_of_scanned_pages_stand_where_their_pages_do():
    """Before the next page, in place of what the text layer said there; lists, headings and tables of other pages stay as they are."""
    from docling_core.types.doc import DocItemLabel, DoclingDocument, ProvenanceItem, TableCell, TableData
    from docling_core.types.doc.base import BoundingBox, Size

    def on(page):
        return ProvenanceItem(page_no=page, bbox=BoundingBox(l=0, t=0, r=0, b=0), charspan=(0, 1))

    def grid(text):
        cell = TableCell(text=text, start_row_offset_idx=0, end_row_offset_idx=1, start_col_offset_idx=0, end_col_offset_idx=1)
        return TableData(num_rows=1, num_cols=1, table_cells=[cell])

    document = DoclingDocument(name="x")
    for number in range(1, 5):
        document.add_page(page_no=number, size=Size(width=1, height=1))
    document.add_heading(text="Head", level=1, prov=on(1))
    document.add_text(label=DocItemLabel.TEXT, text="of no page")
    document.add_table(data=grid("kept"), prov=on(1))
    document.add_text(label=DocItemLabel.TEXT, text="ghost", prov=on(2))
    group = document.add_list_group()
    document.add_list_item(text="one", parent=group, prov=on(3))
    document.add_list_item(text="two", parent=group, prov=on(3))
    document.add_table(data=grid("ghost"), prov=on(4))
    text = _with_lines(document, {2: ["second", "page"], 4: ["last"]}).export_to_markdown()
    words = [word for word in text.replace("|", " ").split() if word.strip("-#")]
    assert words == ["Head", "of", "no", "page", "kept", "second", "page", "one", "two", "last"]
    assert "- one\n- two" in text
    assert "ghost" not in text
    assert len(document.tables) == 1


def test_a_scan_with_a_stamp_is_told_from_a_page_with_text():
    """By a picture that covers the page and a text layer of a few words; a small picture, or many words, make no scan."""
    from docling_core.types.doc import DocItemLabel, DoclingDocument, ProvenanceItem, Size
    from docling_core.types.doc.base import BoundingBox

    document = DoclingDocument(name="x")
    for number, (part, words) in enumerate([(1.0, 3), (0.4, 3), (1.0, 60), (1.0, 0)], 1):
        document.add_page(page_no=number, size=Size(width=100, height=200))
        box = BoundingBox(l=0, t=200 * part, r=100, b=0, coord_origin="BOTTOMLEFT")
        document.add_picture(prov=ProvenanceItem(page_no=number, bbox=box, charspan=(0, 0)))
        if words:
            place = ProvenanceItem(page_no=number, bbox=BoundingBox(l=0, t=9, r=9, b=0, coord_origin="BOTTOMLEFT"), charspan=(0, 1))
            document.add_text(label=DocItemLabel.TEXT, text="word " * words, prov=place)
    assert _stamped(document) == {1: 3}
