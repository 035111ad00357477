"""SIGINT and SIGTERM: stop at once where nothing is lost by it, at the next good moment where something would be."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from mlpipe.errors import StoppedError

NAMES = {signal.SIGINT: "SIGINT", signal.SIGTERM: "SIGTERM"}


class Stopper:
    """Turns the two signals into a StoppedError, now or when the work under way asks."""

    def __init__(self) -> None:
        self.requested: int | None = None
        self._deferred = 0

    def install(self) -> None:
        """Takes over the two signals of this process."""
        for number in NAMES:
            signal.signal(number, self._arrived)

    def _arrived(self, number: int, frame: FrameType | None) -> None:
        again, self.requested = self.requested is not None, number
        if not self._deferred or again:
            raise StoppedError(
                number, f"stopped by {NAMES[signal.Signals(number)]}", hint="finished stages are kept; run the same command again"
            )

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """While this holds a first signal only sets `requested`; a second one stops at once."""
        self._deferred += 1
        try:
            yield
        finally:
            self._deferred -= 1


stopper = Stopper()
