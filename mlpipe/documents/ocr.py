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
        """The lines of text in a picture (PIL image), from top to bottom as a reader would hold it, whichever way up it was scanned."""
        texts, sideways, overhead = self._read(picture)
        if sideways:  # lines that run up or down: turned to the left, columns of Japanese or Chinese come in their order, too
            texts, _, overhead = self._read(picture.rotate(90, expand=True))
        return texts[::-1] if overhead else texts

    def _read(self, picture: Any) -> tuple[list[str], bool, bool]:
        """Lines in the engine's order (by height, then from the left); whether most are upright strips; whether most are upside down."""
        import numpy as np

        if self._engine is None:
            self._engine = _engine()
        self._engine.turned = []
        found = self._engine(np.asarray(picture.convert("RGB")))
        texts = [str(text) for text in (found.txts or ()) if str(text).strip()]
        if found.boxes is None:
            return texts, False, False
        tall = [np.linalg.norm(box[3] - box[0]) > 1.5 * np.linalg.norm(box[1] - box[0]) for box in np.asarray(found.boxes)]
        turned = self._engine.turned
        return texts, 2 * sum(tall) > len(tall), 2 * sum(turned) > len(turned)


def _engine() -> Any:
    """RapidOCR that remembers which lines it had to turn: it reads them well, and leaves them in the order of the picture."""
    from rapidocr import RapidOCR

    class Engine(RapidOCR):  # type: ignore[misc]  # rapidocr has no types
        turned: list[bool]

        def cls_and_rotate(self, pictures: Any) -> Any:
            images, result = super().cls_and_rotate(pictures)
            self.turned = ["180" in label and score > self.text_cls.cls_thresh for label, score in result.cls_res or ()]
            return images, result

    logging.getLogger("RapidOCR").setLevel(logging.ERROR)
    # one thread: more are no quicker on a page, and the other workers have the other cores
    return Engine(params={"Global.log_level": "error", "EngineConfig.onnxruntime.intra_op_num_threads": 1})


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
