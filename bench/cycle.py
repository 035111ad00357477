"""`mlpipe run` from raw files to a verified model beside a script that does the same by hand."""

from __future__ import annotations

import json
from pathlib import Path

from bench.measure import alternately, cpu, mlpipe, module, peak, run, wall
from bench.results import Result, Section, shown
from bench.workspace import Workspace

LIMIT, TIMES = 1.5, 3


def bench(work: Workspace) -> Section:
    """CPU seconds of the whole processes, start-up counted; the script trains as many epochs as mlpipe did."""
    ours = mlpipe("run", *work.pipeline(runs="runs-cycle"), "--force", "-q")
    run(ours)  # says how many epochs it takes, and warms the page cache
    stages = work.folder / "runs-cycle" / "adult"
    epochs = len((stages / "train" / "history.csv").read_text(encoding="utf-8").splitlines()) - 1
    theirs = module("by_hand", work.train, work.test, epochs, work.folder / "by_hand.onnx")
    costs = alternately({"mlpipe": ours, "by hand": theirs}, TIMES)
    mine, hand = costs["mlpipe"], costs["by hand"]
    metrics = _json(stages / "evaluate" / "metrics.json")
    scores = json.loads(hand[0].output)
    reached = ", ".join(f"{name} {metrics[name]:.4f} and {scores[name]:.4f}" for name in ("accuracy", "f1", "roc_auc", "log_loss"))
    return Section(
        f"pipelines/adult.yaml: both files read, {epochs} epochs, metrics on the test rows, export, and the exported file compared with "
        f"the trained network on all 16,281 test rows. On the test rows mlpipe and the script reach {reached}. Best of {TIMES}.",
        [shown(command, work.places) for command in (ours, theirs)],
        [
            Result("whole cycle, CPU", cpu(mine), "s", "by hand", cpu(hand), LIMIT),
            Result("whole cycle, wall", wall(mine), "s", "by hand", wall(hand)),
            Result("peak memory", peak(mine), "MB", "by hand", peak(hand)),
        ],
    )


def _json(path: Path) -> dict[str, float]:
    found: dict[str, float] = json.loads(path.read_text(encoding="utf-8"))
    return found
