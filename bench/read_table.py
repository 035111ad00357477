"""Reads a file in one way and prints the seconds of the read alone as JSON: `python -m bench.read_table HOW FILE`.

pandas       pandas.read_csv with nothing set
polars       polars.scan_csv(...).collect()
polars-s     the same with the streaming engine
duckdb       duckdb: SELECT * FROM read_csv(...) into an Arrow table
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any


def reader(how: str, file: str) -> Callable[[], int]:
    """A function that reads the file, which has no header line, and returns its rows; what it imports is imported here."""
    if how == "duckdb":
        import duckdb

        return lambda: int(duckdb.sql("SELECT * FROM read_csv(?, header=false)", params=[file]).to_arrow_table().num_rows)
    if how.startswith("polars"):
        import polars as pl

        engine: Any = "streaming" if how == "polars-s" else "in-memory"
        return lambda: pl.scan_csv(file, has_header=False).collect(engine=engine).height
    import pandas as pd

    return lambda: len(pd.read_csv(file, header=None))


if __name__ == "__main__":
    read = reader(*sys.argv[1:])
    wall, cpu = time.perf_counter(), time.process_time()
    rows = read()
    print(json.dumps({"rows": rows, "wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}))
