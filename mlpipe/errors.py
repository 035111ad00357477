"""The ways in which mlpipe fails on purpose. One class an exit code; `cli.main` alone turns them into messages.

An exception of any other class is a bug: its traceback is shown and the exit code is 1.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


class Told(BaseException):
    """What a person is told: what is wrong (with the value), where, and one thing to do.

    `faults` lists several faults of one kind, all shown together; `message` then is their heading.
    """

    exit_code = 1

    def __init__(self, message: str, *, hint: str | None = None, faults: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.faults = list(faults)

    def __str__(self) -> str:
        lines = [self.message, *(f"  {fault}" for fault in self.faults)]
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)


class MlpipeError(Told, Exception):
    """A failure that a person can act on."""


class MachineError(MlpipeError):
    """The machine said no: the disk is full, a folder cannot be written."""

    exit_code = 1


class SpecError(MlpipeError):
    """Usage, or a pipeline file that is not valid."""

    exit_code = 2


class DataError(MlpipeError):
    """The data: an unreadable file, a missing column, bad values, an empty split, a failed check, a leak."""

    exit_code = 3


class NotReadyError(MlpipeError):
    """An earlier stage has not run, or ran with other settings or on other data."""

    exit_code = 4


class TrainingError(MlpipeError):
    """Training failed: a loss that is not finite, nothing to train on."""

    exit_code = 5


class GateError(MlpipeError):
    """A quality gate failed, its evidence written first; for `drift`: a column is beyond a limit."""

    exit_code = 6


class IntegrityError(MlpipeError):
    """An artifact differs from what its manifest says."""

    exit_code = 7


class ParityError(MlpipeError):
    """The exported model disagrees with the trained one. Nothing is published."""

    exit_code = 8


class LockedError(MlpipeError):
    """Another process works on this run; a scheduler may try again."""

    exit_code = 75


class StoppedError(Told):
    """SIGINT or SIGTERM arrived. `exit_code` is 128 plus the signal's number.

    No Exception, as KeyboardInterrupt is none: a library that catches those (torch's exporter does) must not swallow it.
    """

    def __init__(self, signum: int, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.exit_code = 128 + signum


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """The hint for a misspelt name, or None when nothing known is close."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else None


def listed(names: Iterable[str], most: int = 12) -> str:
    """`a, b, c, ...`: names for a message, cut so that it stays readable."""
    names = list(names)
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")
