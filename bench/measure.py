"""Runs commands in processes of their own and measures them: wall seconds, CPU seconds, peak memory.

A command that fails raises, so that no benchmark reports how fast a failure is. Peak memory is the kernel's own high-water
mark (VmHWM) of the running program; the mark that wait4 gives counts the parent's memory at the moment of the fork.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Cost:
    """What one run of a command took. `output` is its stdout."""

    wall: float
    cpu: float
    peak_mb: float
    output: str


def run(command: Sequence[str], cwd: Path | None = None) -> Cost:
    """Runs a command to its end. Raises RuntimeError, with its stderr, when it fails."""
    env = {**os.environ, "ORT_DISABLE_TELEMETRY": "1"}
    env.pop("OMP_NUM_THREADS", None)  # the Makefile sets it for tests; a user has not
    started = time.perf_counter()
    with subprocess.Popen(command, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        peak = [0.0]
        watch = threading.Thread(target=_watch, args=(process.pid, peak), daemon=True)
        watch.start()
        chunks: list[str] = []
        drain = threading.Thread(target=lambda: chunks.append(process.stderr.read()), daemon=True)  # type: ignore[union-attr]
        drain.start()
        output = process.stdout.read()  # type: ignore[union-attr]
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.perf_counter() - started
        drain.join()
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}:\n{''.join(chunks)[-2000:]}")
    return Cost(wall, usage.ru_utime + usage.ru_stime, peak[0], output)


def _watch(pid: int, peak: list[float]) -> None:
    """Reads the high-water mark until the process is gone."""
    status = Path(f"/proc/{pid}/status")
    while True:
        try:
            text = status.read_text(encoding="utf-8")
        except OSError:
            return
        name, mark = re.search(r"^Name:\s*(\S+)", text), re.search(r"^VmHWM:\s*(\d+) kB", text, re.MULTILINE)
        if mark is None and name is not None:
            return  # it has ended
        if mark is not None:
            peak[0] = max(peak[0], int(mark[1]) / 1024)
        time.sleep(0.01)


def alternately(commands: Mapping[str, Sequence[str]], times: int, cwd: Path = ROOT) -> dict[str, list[Cost]]:
    """Each command `times` times, in turns (A, B, A, B, ...), so that a busy minute strikes them all."""
    costs: dict[str, list[Cost]] = {name: [] for name in commands}
    for _ in range(times):
        for name, command in commands.items():
            costs[name].append(run(command, cwd))
    return costs


def wall(costs: Sequence[Cost]) -> float:
    """The least wall seconds: on a busy machine the least disturbed run."""
    return min(cost.wall for cost in costs)


def cpu(costs: Sequence[Cost]) -> float:
    """The least CPU seconds."""
    return min(cost.cpu for cost in costs)


def peak(costs: Sequence[Cost]) -> float:
    """The most memory that any run took."""
    return max(cost.peak_mb for cost in costs)


def mlpipe(*arguments: object) -> list[str]:
    """The command line of mlpipe in this environment."""
    return [sys.executable, "-m", "mlpipe", *map(str, arguments)]


def module(name: str, *arguments: object) -> list[str]:
    """A Python process that runs a module of this folder."""
    return [sys.executable, "-m", f"bench.{name}", *map(str, arguments)]
