"""Reads a CSV file and prints the seconds of the read alone as JSON: `python -m bench.read_csv HOW FILE`.

pandas    pandas.read_csv with nothing set (since pandas 3.1 it reads a large file with several threads)
pandas-1  the same with one thread
text      pandas.read_csv, every cell as text
arrow     pyarrow.csv's streaming reader, every cell as text, one block in memory at a time
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path


def reader(how: str, file: str) -> Callable[[], int]:
    """A function that reads the file and returns its rows; what it imports is imported here."""
    if how == "arrow":
        import pyarrow as pa
        from pyarrow import csv

        with Path(file).open(encoding="utf-8") as lines:
            names = [f"column {i}" for i in range(next(lines).count(",") + 1)]

        def stream() -> int:
            convert = csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()))
            return sum(batch.num_rows for batch in csv.open_csv(file, csv.ReadOptions(column_names=names), None, convert))

        return stream
    import pandas as pd

    if how == "pandas-1":
        with contextlib.suppress(KeyError):  # before 3.1 it has one thread and no such option
            pd.set_option("mode.max_threads", 1)
    settings = {"dtype": str} if how == "text" else {}
    return lambda: len(pd.read_csv(file, header=None, **settings))


if __name__ == "__main__":
    read = reader(*sys.argv[1:])
    wall, cpu = time.perf_counter(), time.process_time()
    rows = read()
    print(json.dumps({"rows": rows, "wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}))
