"""How long one waits for a command that has nothing to do: `--help`, `status` and `run` on a finished run."""

from __future__ import annotations

from bench.measure import alternately, cpu, mlpipe, wall
from bench.results import Result, Section, shown
from bench.workspace import Workspace

LIMITS = {"help": 0.25, "status": 0.6, "run": 0.6}
TIMES = 5


def bench(work: Workspace) -> Section:
    """Wall seconds, best of five; CPU seconds beside them say how much of a long wait was other people's work."""
    commands = {"help": mlpipe("--help"), "status": mlpipe("status", *work.finished), "run": mlpipe("run", *work.finished)}
    costs = alternately(commands, TIMES)
    assert "nothing ran" in costs["run"][0].output, costs["run"][0].output
    names = {"help": "`mlpipe --help`", "status": "`mlpipe status`", "run": "`mlpipe run`, all fresh"}
    return Section(
        f"Seconds from start to end of a process, best of {TIMES}, on pipelines/adult.yaml after it ran once.",
        [shown(command, work.places) for command in commands.values()],
        [
            *(Result(f"{names[name]}, wall", wall(costs[name]), "s", limit=limit) for name, limit in LIMITS.items()),
            *(Result(f"{names[name]}, CPU", cpu(costs[name]), "s") for name in LIMITS),
        ],
    )
