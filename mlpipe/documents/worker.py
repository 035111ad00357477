"""The process that converts: one JSON line in, one out. Started once by `pool.py`, and killed by it where a document goes wrong.

python -m mlpipe.documents.worker     (settings and documents come on standard input)
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import warnings
from contextlib import suppress
from typing import Any

from mlpipe.documents.result import How

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Reads `{"how": ...}`, then `{"name": ..., "file": ...}` again and again, until the input ends."""
    with suppress(OSError, AttributeError):  # Linux: no worker outlives its parent, however that ends
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the whole group; the parent decides
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints must not come between the answers
    reader = _reader(How(**json.loads(sys.stdin.readline())["how"]))
    answers.write("{}\n")  # ready: from now on the time of documents counts
    answers.flush()
    serve(reader, answers)


def serve(reader: Any, answers: Any) -> None:
    """Answers until the input ends. `reader.read(name, bytes)` gives a Converted."""
    for line in sys.stdin:
        asked = json.loads(line)
        with open(asked["file"], "rb") as file:  # noqa: PTH123 (a plain path from the parent)
            data = file.read()
        found = reader.read(asked["name"], data, asked.get("password", ""))
        answers.write(json.dumps(found.model_dump(mode="json", exclude_defaults=True), ensure_ascii=True) + "\n")
        answers.flush()


def _reader(how: How) -> Any:
    """The reader, with everything that documents mostly need imported before the first one is timed."""
    import logging

    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    import docling.document_converter  # noqa: F401

    from mlpipe.documents.convert import Reader

    return Reader(how)


if __name__ == "__main__":
    main()
