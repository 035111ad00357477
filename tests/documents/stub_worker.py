"""A worker whose documents do what their names say: the converter of case D04, and worse."""

from __future__ import annotations

import os
import sys
import time

from mlpipe.documents import worker
from mlpipe.documents.result import Converted, Passage


class Reader:
    """Converts by the name: partial, silent, stuck, greedy, crash, or well."""

    def read(self, name: str, data: bytes, password: str = "") -> Converted:
        stem = name.rpartition("/")[2].partition(".")[0]
        text = data.decode("utf-8", "replace")
        if stem.startswith("partial"):
            return Converted(
                status="partial", reason="pages missing", detail="2 of 5 pages: 4, 5", pages=5, lost=(4, 5), plain="three pages"
            )
        if stem.startswith("silent"):
            return Converted(pages=1, blank=(1,), pictures=1)
        if stem.startswith("stuck"):
            time.sleep(3600)
        if stem.startswith("greedy"):
            held = bytearray(700 << 20)
            held[:: 1 << 12] = b"x" * len(held[:: 1 << 12])
            time.sleep(3600)
        if stem.startswith("crash"):
            os._exit(11)
        if stem.startswith("noisy"):
            print("a library prints this")
        if stem.startswith("locked"):
            return Converted(plain=f"opened by {len(password)} signs")
        return Converted(plain=f"{text} {os.getpid()}" if "pid" in text else text, words=len(text.split()), passages=(Passage(text=text),))


if __name__ == "__main__":
    if "broken" in sys.argv:
        sys.exit("ModuleNotFoundError: No module named 'docling'")
    worker._reader = lambda how: Reader()
    worker.main()
