"""Runs commands in processes of their own and measures them: wall seconds, CPU seconds, peak memory."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil


@dataclass(frozen=True)
class Cost:
    """What one run of a command took. `output` is its stdout."""

    wall: float
    cpu: float
    peak_mb: float
    output: str


def run(command: Sequence[str], cwd: Path | None = None) -> Cost:
    """Runs a command to its end. Raises RuntimeError, with its stderr, when it fails."""
    env = {**os.environ, "OMP_NUM_THREADS": "1", "ORT_DISABLE_TELEMETRY": "1"}
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
    return Cost(wall, usage.ru_utime + usage.ru_stime, max(peak[0], usage.ru_maxrss / 1024), output)


def _watch(pid: int, peak: list[float]) -> None:
    try:
        process = psutil.Process(pid)
        while True:
            peak[0] = max(peak[0], process.memory_info().rss / 2**20)
            time.sleep(0.02)
    except psutil.Error:
        return


def best(command: Sequence[str], times: int, cwd: Path | None = None) -> Cost:
    """The quickest of several runs: on a busy machine the least disturbed one."""
    return min((run(command, cwd) for _ in range(times)), key=lambda cost: cost.wall)


def mlpipe(*arguments: str) -> list[str]:
    """The command line of mlpipe in this environment."""
    return [sys.executable, "-m", "mlpipe", *arguments]


def python(code: str, *arguments: str) -> list[str]:
    """A Python process that runs a piece of code."""
    return [sys.executable, "-c", code, *arguments]
