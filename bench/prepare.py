"""`mlpipe prepare` on 1.3 million rows beside readers that only read the same file."""

from __future__ import annotations

import json

from bench.measure import Cost, alternately, cpu, mlpipe, module, peak, wall
from bench.results import Result, Section, shown
from bench.workspace import Workspace

REPEATS, TIMES = 40, 3
TIME_LIMIT, PEAK_LIMIT_MB = 6.0, 1200.0
GROWTH_LIMIT = 1.25  # the same file twice gives peaks of 410 to 500 MB, by what the threads hold at once
READERS = {
    "pandas": "pandas.read_csv, its own threads",
    "pandas-1": "pandas.read_csv, one thread",
    "text": "pandas.read_csv, all text",
    "arrow": "pyarrow.csv, all text, streamed",
}


def bench(work: Workspace) -> Section:
    """Wall and CPU seconds of the whole process beside those of the read alone; peak memory at one and two times the rows."""
    once, twice = work.repeated(REPEATS), work.repeated(2 * REPEATS)
    prepare = mlpipe("prepare", *work.pipeline(runs="runs-once", train=once), "--force", "-q")
    larger = mlpipe("prepare", *work.pipeline(runs="runs-twice", train=twice), "--force", "-q")
    strata = [*prepare, "--set", "prepare.split.stratify=true"]
    readers = {how: module("read_csv", how, once) for how in READERS}
    costs = alternately({"prepare": prepare, "strata": strata, **readers}, TIMES)
    memory = alternately({"twice": larger}, TIMES - 1)["twice"]
    ours, results = costs["prepare"], []
    for how, name in READERS.items():
        limit = TIME_LIMIT if how == "pandas" else None
        results.append(Result("prepare, wall", wall(ours), "s", name, _read(costs[how], "wall"), limit))
        results.append(Result("prepare, CPU", cpu(ours), "s", name, _read(costs[how], "cpu")))
    results += [
        Result("prepare with strata, wall", wall(costs["strata"]), "s", READERS["pandas"], _read(costs["pandas"], "wall"), TIME_LIMIT),
        Result("prepare with strata, CPU", cpu(costs["strata"]), "s", READERS["pandas"], _read(costs["pandas"], "cpu")),
        Result("peak memory", peak(ours), "MB", limit=PEAK_LIMIT_MB),
        Result("peak memory at twice the rows", peak(memory), "MB", "once", peak(ours), GROWTH_LIMIT),
        Result("peak memory", peak(ours), "MB", "a process that only does pandas.read_csv", peak(costs["pandas"])),
    ]
    return Section(
        f"adult-train.csv {REPEATS} times over (1,302,440 rows, {once.stat().st_size / 1e6:,.0f} MB), test rows from adult-test.csv. "
        "Of mlpipe the whole process counts, with start-up, hashing, both splits and every file written; "
        "of the readers only the read, without imports, the file in the page cache. A split with strata has to see all rows before it "
        f"gives any away. Best of {TIMES}.",
        [shown(command, work.places) for command in (prepare, strata, larger, *readers.values())],
        results,
    )


def _read(costs: list[Cost], what: str) -> float:
    """The least seconds that a reader reports for the read itself."""
    return min(float(json.loads(cost.output)[what]) for cost in costs)
