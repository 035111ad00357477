"""`mlpipe predict` from file to file beside onnxruntime alone on arrays that are in memory already."""

from __future__ import annotations

import json

from bench.measure import Cost, alternately, cpu, mlpipe, module, peak, run, wall
from bench.results import Result, Section, shown
from bench.workspace import Workspace

REPEATS, TIMES = 40, 2


def bench(work: Workspace) -> Section:
    """Rows per second of the whole process, start-up, reading and writing counted, beside those of session.run alone."""
    text, table = work.repeated(REPEATS), work.folder / "rows.parquet"
    rows = json.loads(run(module("plain_session", "convert", work.export, text, table)).output)["rows"]
    commands = {
        "csv": mlpipe("predict", work.export, text, "-o", work.folder / "scored.csv"),
        "parquet": mlpipe("predict", work.export, table, "-o", work.folder / "scored.parquet"),
        "plain": module("plain_session", "run", work.export, table),
    }
    costs = alternately(commands, TIMES)
    plain_wall, plain_cpu = _least(costs["plain"], "wall"), _least(costs["plain"], "cpu")
    beside = "session.run on arrays in memory"
    results = []
    for name, what in (("csv", "CSV in, CSV out"), ("parquet", "Parquet in, Parquet out")):
        mine = costs[name]
        results += [
            Result(f"{what}, by wall", rows / wall(mine), "rows/s", beside, rows / plain_wall),
            Result(f"{what}, by CPU", rows / cpu(mine), "rows/s", beside, rows / plain_cpu),
            Result(f"{what}, peak memory", peak(mine), "MB"),
        ]
    return Section(
        f"{rows:,} rows of adult through one exported file. Of mlpipe the whole process counts, from reading to writing; of onnxruntime "
        f"only session.run, one thread, 1,024 rows a call, on string and double arrays made before. Best of {TIMES}.",
        [shown(command, work.places) for command in commands.values()],
        results,
    )


def _least(costs: list[Cost], what: str) -> float:
    return min(float(json.loads(cost.output)[what]) for cost in costs)
