"""Worker processes, started once and used again, each document under a hard limit of time and memory."""

from __future__ import annotations

import json
import os
import queue
import select
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from mlpipe.documents.result import Converted, How, failed
from mlpipe.errors import MachineError

LOOK = 0.1  # seconds between two looks at a worker's memory
START = 180.0  # seconds in which a worker must be ready for its first document: it imports torch
WORKER = (sys.executable, "-m", "mlpipe.documents.worker")


@dataclass(frozen=True)
class Document:
    """A file to read: its name (unique, relative; its ending decides the format), where it lies, its password."""

    name: str
    file: Path
    password: str = field(default="", repr=False)


@dataclass(frozen=True)
class Limits:
    """What one document may take: seconds, and megabytes of a worker's resident memory."""

    seconds: float
    megabytes: int


def convert_all(
    jobs: Sequence[Document], how: How, workers: int, limits: Limits, command: Sequence[str] = ()
) -> Iterator[tuple[int, Converted]]:
    """(number of the job, what came of it) as the documents are done, in any order; every job gives one.

    A worker that runs beyond a limit, or dies, is killed and another is started for the documents that are left.
    Raises MachineError when workers cannot be started at all.
    """
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for number in range(len(jobs)):
        waiting.put(number)
    done: queue.SimpleQueue[tuple[int, Converted] | BaseException | None] = queue.SimpleQueue()
    stop = threading.Event()
    with tempfile.TemporaryDirectory(prefix="mlpipe-documents-") as scratch:
        crews = [
            threading.Thread(target=_crew, args=(jobs, waiting, done, stop, how, limits, command or WORKER, Path(scratch)), daemon=True)
            for _ in range(max(1, min(workers, len(jobs))))
        ]
        for crew in crews:
            crew.start()
        try:
            left = len(crews)
            while left:
                found = done.get()
                if found is None:
                    left -= 1
                elif isinstance(found, BaseException):
                    raise found
                else:
                    yield found
        finally:
            stop.set()
            for crew in crews:
                crew.join()


def _crew(
    jobs: Sequence[Document],
    waiting: Any,
    done: Any,
    stop: threading.Event,
    how: How,
    limits: Limits,
    command: Sequence[str],
    scratch: Path,
) -> None:
    """One worker after another, until no job is left."""
    worker: Worker | None = None
    try:
        while not stop.is_set():
            try:
                number = waiting.get_nowait()
            except queue.Empty:
                break
            if worker is None:
                worker = Worker(how, command, scratch)
            found = worker.convert(jobs[number], limits, stop)
            if found is None:  # asked to stop
                break
            if worker.dead:
                worker = None
            done.put((number, found))
    except BaseException as fault:  # noqa: BLE001 (raised again where the results are read)
        done.put(fault)
    finally:
        if worker is not None:
            worker.close()
        done.put(None)


class Worker:
    """A process that converts one document at a time."""

    def __init__(self, how: How, command: Sequence[str], scratch: Path) -> None:
        home = tempfile.mkdtemp(dir=scratch)  # libraries that keep caches keep them there, and they go with it
        quiet = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "ORT_DISABLE_TELEMETRY": "1",
                 "OMP_NUM_THREADS": "1", "HOME": home,
                 "XDG_CACHE_HOME": home, "XDG_CONFIG_HOME": home, "HF_HOME": home, "MPLCONFIGDIR": home,
                 "TMPDIR": home, "PYTHONDONTWRITEBYTECODE": "1", "TQDM_DISABLE": "1", "NO_COLOR": "1"}  # fmt: skip
        self._log = (Path(home) / "stderr.log").open("w+b")
        try:
            self._process = subprocess.Popen(
                list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, env={**os.environ, **quiet},
                start_new_session=True,
            )  # fmt: skip
        except OSError as fault:
            raise MachineError(f"a process for documents cannot be started: {fault.strerror or fault}") from None
        assert self._process.stdin is not None and self._process.stdout is not None  # both are pipes
        self._input: IO[bytes] = self._process.stdin
        self._output: IO[bytes] = self._process.stdout
        self._fresh, self.dead, self._told = True, False, ""
        self._rest = b""
        self._send({"how": how.as_dict()})

    def convert(self, job: Document, limits: Limits, stop: threading.Event) -> Converted | None:
        """What came of a document, or None when `stop` was set meanwhile. The time of starting up does not count."""
        if self._fresh and not self._ready(stop):
            return None
        asked = {"name": job.name, "file": str(job.file), "password": job.password}
        if not self._send(asked):
            return self._died()
        begun, seconds = time.monotonic(), limits.seconds
        while True:
            line = self._line()
            if line is not None:
                return Converted.model_validate(json.loads(line)) if line else self._died()
            if stop.is_set():
                return None
            if time.monotonic() - begun > seconds:
                self.close()
                return failed("time limit", f"it took more than {limits.seconds:g} s")
            if self._megabytes() > limits.megabytes:
                self.close()
                return failed("memory limit", f"it took more than {limits.megabytes:,} MB")

    def _ready(self, stop: threading.Event) -> bool:
        """Waits until the worker has imported what it needs; False when `stop` was set. Raises MachineError when it never is."""
        begun = time.monotonic()
        while not stop.is_set():
            line = self._line()
            if line:
                self._fresh = False
                return True
            if line == b"" or time.monotonic() - begun > START:
                self._end()
                told = self._told.strip().splitlines()
                raise MachineError(
                    f"the process that reads documents ends before it begins: {told[-1] if told else 'no message'}",
                    hint="pip install docling, in the version of constraints.txt",
                )
        return False

    def _send(self, message: dict[str, Any]) -> bool:
        try:
            self._input.write(json.dumps(message).encode() + b"\n")
            self._input.flush()
        except OSError:
            return False
        return True

    def _line(self) -> bytes | None:
        """The next line; b"" when the worker ended, None when nothing came for a moment."""
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self._output], [], [], LOOK)
            if not ready:
                return None
            piece = os.read(self._output.fileno(), 1 << 20)
            if not piece:
                return b""
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def _megabytes(self) -> float:
        """Resident memory of the worker and what it started."""
        import psutil

        total = 0
        with suppress(psutil.Error):
            process = psutil.Process(self._process.pid)
            for one in [process, *process.children(recursive=True)]:
                with suppress(psutil.Error):
                    total += one.memory_info().rss
        return total / 1e6

    def _died(self) -> Converted:
        """The worker ended by itself: the document was too much for it."""
        code = self._end()
        if code in (-9, 137):
            return failed("memory limit", "its process was killed by the system")
        return failed("unreadable", f"its process ended with {code}")

    def _end(self) -> int:
        """How the worker ended, which it is about to do."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=10)
        self.close()
        return int(self._process.returncode)

    def close(self) -> None:
        """Ends the process and what it started."""
        if self.dead:
            return
        self.dead = True
        with suppress(OSError):
            self._input.close()
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, 9)
        self._process.wait()
        self._output.close()
        self._log.seek(0)
        self._told = self._log.read().decode("utf-8", "replace")[-4000:]
        self._log.close()
