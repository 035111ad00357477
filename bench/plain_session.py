"""An exported file in onnxruntime alone.

`python -m bench.plain_session convert EXPORT ROWS.csv ROWS.parquet` writes the rows that the model takes as Parquet;
`python -m bench.plain_session run EXPORT ROWS.parquet` loads them, then prints the seconds of session.run alone as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

ROWS = 1024  # the quickest of 512, 1,024, ... 8,192


def convert(export: Path, source: Path, target: Path) -> dict[str, float]:
    """CSV without a header line to Parquet: numbers as float64, text stripped, "?" missing."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv
    from pyarrow import parquet as pq

    contract = json.loads((export / "schema.json").read_text(encoding="utf-8"))
    names = contract["reader"]["header"]
    options = csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()))
    table = csv.read_csv(source, csv.ReadOptions(column_names=names), None, options)
    columns = {}
    for entry in contract["inputs"]:
        cells = pc.utf8_trim_whitespace(table.column(entry["name"]))
        cells = pc.if_else(pc.equal(cells, "?"), pa.scalar(None, pa.string()), cells)
        columns[entry["name"]] = cells.cast(pa.float64()) if entry["type"] == "double" else cells
    pq.write_table(pa.table(columns), target, compression="zstd")
    return {"rows": table.num_rows}


def run(export: Path, source: Path) -> dict[str, float]:
    """Wall and CPU seconds of session.run over all rows, and how many there are."""
    import numpy as np
    import onnxruntime as ort
    from pyarrow import parquet as pq

    table = pq.read_table(source)
    arrays = {}
    for name in table.column_names:
        cells = table.column(name)
        if str(cells.type) == "double":
            values = cells.to_numpy()
        else:  # one Python object for each distinct text, which is as quick as it gets
            coded = cells.fill_null("").combine_chunks().dictionary_encode()
            values = np.array(coded.dictionary.to_pylist(), dtype=object)[coded.indices.to_numpy()]
        arrays[name] = values.reshape(-1, 1)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1  # more threads cost more CPU seconds here than they save
    session = ort.InferenceSession(str(export / "model.onnx"), options, providers=["CPUExecutionProvider"])
    batches = [{name: array[start : start + ROWS] for name, array in arrays.items()} for start in range(0, table.num_rows, ROWS)]
    session.run(None, batches[0])
    wall, cpu = time.perf_counter(), time.process_time()
    for batch in batches:
        session.run(None, batch)
    return {"rows": table.num_rows, "wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


if __name__ == "__main__":
    action, *paths = sys.argv[1:]
    print(json.dumps({"convert": convert, "run": run}[action](*map(Path, paths))))
