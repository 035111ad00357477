"""RapidOCR on pictures drawn here: the lines in the order of a reader, whichever way up the picture lies."""

from __future__ import annotations

import pytest

from mlpipe.documents.ocr import Ocr

LINES = ["The invoice is dated", "the first of March and", "must be paid by Friday"]


@pytest.fixture(scope="module")
def ocr():
    return Ocr()


@pytest.fixture(scope="module")
def page():
    from PIL import Image, ImageDraw, ImageFont

    picture = Image.new("RGB", (460, 240), "white")
    draw, font = ImageDraw.Draw(picture), ImageFont.load_default(size=32)
    for number, line in enumerate(LINES):
        draw.text((30, 30 + 60 * number), line, fill="black", font=font)
    return picture


@pytest.mark.parametrize("degrees", [0, 90, 180, 270])
def test_a_page_may_lie_on_its_side_or_head(ocr, page, degrees):
    """RapidOCR alone reads the lines of such a page and gives them in the order of the picture: the last line first."""
    assert ocr.lines(page.rotate(degrees, expand=True)) == LINES


def test_pictures_without_text_give_none(ocr):
    from PIL import Image

    assert ocr.lines(Image.new("RGB", (300, 300), "white")) == []
    assert ocr.lines(Image.new("L", (3, 3))) == []
