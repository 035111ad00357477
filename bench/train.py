"""mlpipe's training loop beside a plain hand-written one: rows per second, one thread."""

from __future__ import annotations

import json

from bench.measure import ROOT, module, run
from bench.results import Result, Section, shown
from bench.workspace import Workspace

EPOCHS = 6


def bench(work: Workspace) -> Section:
    """Both loops take turns in one process, an epoch each; the best epoch counts."""
    command = module("train_loop", EPOCHS)
    rates = json.loads(run(command, ROOT).output)
    return Section(
        "Rows per second of an epoch over 32,561 rows, 6 numbers and 8 categories, two hidden layers of 256, one thread; "
        "the hand-written loop has an Embedding for each column and AdamW as it comes. Above 1 mlpipe is quicker.",
        [shown(command, work.places)],
        [Result(f"batch size {size}", rate["mlpipe"], "rows/s", "hand-written loop", rate["plain"]) for size, rate in rates.items()],
    )
