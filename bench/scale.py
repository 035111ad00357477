"""`mlpipe prepare` and `predict` at 1.3 and 13 million rows beside the read alone by pandas, polars and duckdb.

Takes some minutes and 4 GB of disk in the temporary folder: it runs only when it is named (`python -m bench scale`).
"""

from __future__ import annotations

import json

from bench.measure import Cost, mlpipe, module, peak, run, wall
from bench.results import Result, Section, shown
from bench.workspace import Workspace

SIZES = {40: "1.3 million rows", 400: "13 million rows"}
READERS = {
    "pandas": "pandas.read_csv",
    "polars": "polars.scan_csv, collected",
    "polars-s": "polars.scan_csv, streaming engine",
    "duckdb": "duckdb read_csv to Arrow",
}
PEAK_LIMIT_MB, LINEAR_LIMIT = 2000, 12.0


def bench(work: Workspace) -> Section:
    """Each once a size. Of mlpipe the whole process counts, of the readers the read without imports."""
    results: list[Result] = []
    commands: list[list[str]] = []
    ours: dict[tuple[str, int], Cost] = {}
    for times, size in SIZES.items():
        file = work.repeated(times)
        prepare = mlpipe("prepare", *work.pipeline(runs=f"runs-{times}", train=file), "--force", "-q")
        predict = mlpipe("predict", work.export, file, "-o", work.folder / f"scored-{times}.csv")
        readers = {how: module("read_table", how, file) for how in READERS}
        ours["prepare", times], ours["predict", times] = run(prepare), run(predict)
        costs = {how: run(command) for how, command in readers.items()}
        commands += [prepare, predict, *readers.values()]
        reads = {how: json.loads(cost.output) for how, cost in costs.items()}
        rows = int(reads["pandas"]["rows"])
        for what in ("prepare", "predict"):
            mine = ours[what, times]
            for how, name in READERS.items():
                results.append(Result(f"{what}, {size}", rows / mine.wall, "rows/s", name, rows / reads[how]["wall"]))
            results.append(Result(f"{what}, {size}, peak memory", peak([mine]), "MB", limit=PEAK_LIMIT_MB))
        for how, name in READERS.items():
            mine = ours["prepare", times]
            results.append(
                Result(f"prepare, {size}, peak memory", peak([mine]), "MB", f"a process that only does {name}", peak([costs[how]]))
            )
        (work.folder / f"scored-{times}.csv").unlink()
    few, many = SIZES
    for what in ("prepare", "predict"):
        large, small = ours[what, many], ours[what, few]
        results.append(Result(f"{what}, wall at 10 times the rows", wall([large]), "s", "1.3 million rows", wall([small]), LINEAR_LIMIT))
    return Section(
        "adult-train.csv 40 and 400 times over (159 MB and 1.6 GB), test rows from adult-test.csv. Of mlpipe the whole process counts: "
        "start-up, hashing, every row checked, split, encoded and written, or scored and written; of the readers only the read, without "
        "imports. Each ran once; a ratio of rates below 1 says how much longer mlpipe takes than the read alone.",
        [shown(command, work.places) for command in commands],
        results,
    )
