"""Text of page pictures by RapidOCR, whose models come in its package: no network, no other files."""

from __future__ import annotations

import io
import logging
from typing import Any

DOTS = 200  # an inch, of a page that is drawn for OCR
MOST_FRAMES = 500
MOST_PIXELS = 120_000_000  # of one picture


class Ocr:
    """RapidOCR, loaded when the first picture comes."""

    def __init__(self) -> None:
        self._engine: Any = None

    def lines(self, picture: Any) -> list[str]:
        """The lines of text in a picture (PIL image), from top to bottom, as the engine orders them."""
        import numpy as np

        if self._engine is None:
            from rapidocr import RapidOCR

            logging.getLogger("RapidOCR").setLevel(logging.ERROR)
            self._engine = RapidOCR(params={"Global.log_level": "error"})
        found = self._engine(np.asarray(picture.convert("RGB")))
        return [str(text) for text in (found.txts or ()) if str(text).strip()]


def page_pictures(data: bytes, numbers: list[int], password: str = "") -> Any:
    """(number, PIL image) of pages of a PDF, numbered from 1, drawn one by one."""
    import pypdfium2

    document = pypdfium2.PdfDocument(data, password=password or None)
    try:
        for number in numbers:
            page = document[number - 1]
            width, height = page.get_size()
            scale = min(DOTS / 72, (MOST_PIXELS / max(1.0, width * height)) ** 0.5)
            yield number, page.render(scale=scale).to_pil()
            page.close()
    finally:
        document.close()


def frames(data: bytes) -> Any:
    """(number, PIL image) of the frames of an image file, numbered from 1. Raises ValueError for one that is too large, or too many."""
    from PIL import Image, ImageOps, ImageSequence

    with Image.open(io.BytesIO(data)) as image:
        if image.width * image.height > MOST_PIXELS:
            raise ValueError(f"{image.width:,} x {image.height:,} pixels are too many")
        for number, frame in enumerate(ImageSequence.Iterator(image), 1):
            if number > MOST_FRAMES:
                raise ValueError(f"more than {MOST_FRAMES} frames")
            yield number, ImageOps.exif_transpose(frame.convert("RGB"))
