"""Options that commands share, and how results and failures are printed."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from mlpipe.errors import Told

PipelineFile = Annotated[Path, typer.Argument(help="The pipeline file.", metavar="PIPELINE", show_default=False)]
Runs = Annotated[Path, typer.Option("--runs", envvar="MLPIPE_RUNS", help="Where runs are kept.", metavar="DIR")]
Set = Annotated[
    list[str] | None, typer.Option("--set", help="Changes one setting, as YAML: --set train.epochs=5. May be repeated.", metavar="A.B=C")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, on failure too.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Only warnings and results.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Says more: ids, what each stage reads and writes.")]
Force = Annotated[bool, typer.Option("--force", help="Runs even if nothing changed.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Says what would run and why; changes nothing.")]
WaitLock = Annotated[float, typer.Option("--wait-lock", help="Seconds to wait for another process's lock.", metavar="SECONDS", min=0)]
Device = Annotated[
    str | None, typer.Option("--device", help="auto, cpu, cuda, mps or xpu; the same as --set train.device=...", metavar="NAME")
]
Resume = Annotated[bool, typer.Option("--resume/--fresh", help="Goes on from a checkpoint of an interrupted training, or begins anew.")]


Reader = Annotated[
    list[str] | None,
    typer.Option("--reader", help="Changes how the rows are read: --reader delimiter=';'. May be repeated.", metavar="NAME=VALUE"),
]


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether the command line asks for JSON, also where it is not valid otherwise."""
    return "--json" in arguments


def set_level(quiet: bool, verbose: bool) -> None:
    """How much is said on stderr."""
    from mlpipe.console import console

    console.level = -1 if quiet else 1 if verbose else 0


def emit(text: str) -> None:
    """A result on stdout. A stdout that was closed does not end the run."""
    with suppress(ValueError, AttributeError):
        try:
            print(text, file=sys.stdout)
        except BrokenPipeError:
            raise
        except OSError:
            pass


def emit_json(value: dict[str, Any]) -> None:
    """The one JSON object of a command; never NaN."""
    emit(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def print_failure(fault: Told, as_json: bool) -> None:
    """What went wrong: for people on stderr, for machines on stdout."""
    with suppress(OSError, ValueError):
        print(f"mlpipe: {fault}", file=sys.stderr)
    if as_json:
        error = {"class": type(fault).__name__, "message": fault.message, "faults": fault.faults, "hint": fault.hint}
        emit_json({"status": "failed", "exit_code": fault.exit_code, "error": error})


def table(rows: Sequence[Sequence[str]]) -> str:
    """Aligned columns; the first row is the heading."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)


class _NoPandas:
    """An import hook that says that there is no pandas."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Refuses pandas, knows nothing of the rest."""
        if name == "pandas":
            raise ModuleNotFoundError("pandas is not used here", name=name)


def without_pandas() -> None:
    """Lets pyarrow find in this process that there is no pandas: it would import it (0.4 s) to look at its first list."""
    import pyarrow

    if "pandas" in sys.modules:
        return
    hook = _NoPandas()
    sys.meta_path.insert(0, hook)
    try:
        pyarrow.array([True])  # it looks once
    finally:
        sys.meta_path.remove(hook)


def with_device(overrides: Sequence[str] | None, device: str | None) -> list[str]:
    """The overrides, with --device as one of them."""
    return [*(overrides or []), *([f"train.device={device}"] if device else [])]


def reader_settings(pairs: list[str]) -> dict[str, Any]:
    """`name=value` pairs, the values read as YAML."""
    from mlpipe.errors import SpecError
    from mlpipe.yamlfile import parse_yaml, plain

    found = {}
    for pair in pairs:
        name, sign, text = pair.partition("=")
        if not sign:
            raise SpecError(f"--reader {pair!r} is not of the form name=value", hint="for example --reader delimiter=';'")
        found[name.strip()] = plain(parse_yaml(text, f"--reader {name}"))
    return found
