"""What people see while a command works: notes, warnings and progress, all on stderr.

On a terminal progress is a rich bar. Elsewhere (cron, CI, a pipe) each message is one plain line: no carriage return,
no colour. Results go to stdout and are the command's own business (`mlpipe/cli`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any


class Console:
    """Messages by importance. `level` 0 is the default, -1 is `--quiet`, 1 is `--verbose`."""

    def __init__(self) -> None:
        self.level = 0

    def say(self, text: str) -> None:
        """A line that a user expects to see."""
        if self.level >= 0:
            self._write(text)

    def detail(self, text: str) -> None:
        """A line for `--verbose`."""
        if self.level >= 1:
            self._write(text)

    def warn(self, text: str) -> None:
        """Something that the user should know; shown even with `--quiet`."""
        self._write(f"mlpipe: warning: {text}")

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):  # stderr may be closed (cron, `2>&-`): losing a message must not end the run
            print(text, file=sys.stderr, flush=True)

    def terminal(self) -> bool:
        """Whether stderr is a terminal, so that a bar may be redrawn."""
        try:
            return self.level >= 0 and sys.stderr is not None and sys.stderr.isatty()
        except ValueError:
            return False

    @contextmanager
    def progress(self, title: str, total: float | None = None) -> Iterator[Progress]:
        """A progress bar on a terminal, nothing elsewhere."""
        if not self.terminal():
            yield Progress(None, None)
            return
        from rich.console import Console as RichConsole
        from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        columns = [TextColumn("{task.description}"), BarColumn(bar_width=20), TimeRemainingColumn()]
        with RichProgress(*columns, console=RichConsole(stderr=True), transient=True) as bar:
            yield Progress(bar, bar.add_task(title, total=total))


class Progress:
    """A handle on one bar; without a terminal every call does nothing."""

    def __init__(self, bar: Any, task: Any) -> None:
        self._bar, self._task = bar, task

    def advance(self, steps: float = 1, text: str | None = None) -> None:
        """Moves the bar on and changes the text before it."""
        if self._bar is not None:
            self._bar.update(self._task, advance=steps, **({"description": text} if text else {}))


console = Console()
