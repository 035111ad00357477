"""The command line. `main` alone turns errors into messages and exit codes.

A command reads its options, imports its stage inside its body, calls one function and prints the result: nothing heavy
is imported before a command's body runs, so that `--help` answers at once.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from mlpipe import __version__
from mlpipe.cli import drift, inspect, predict, stages
from mlpipe.cli.common import emit, print_failure, wants_json
from mlpipe.errors import MlpipeError, SpecError, StoppedError
from mlpipe.stopping import stopper

app = typer.Typer(
    name="mlpipe",
    help="Raw data to a verified ONNX model in four commands: prepare, train, evaluate, export.\n\n"
    "Start with: mlpipe init DATA --target COLUMN, then: mlpipe run PIPELINE",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


def _version(wanted: bool) -> None:
    if wanted:
        emit(f"mlpipe {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[bool, typer.Option("--version", help="The version.", callback=_version, is_eager=True)] = False,
) -> None:
    """Options of the command itself."""


stages.register(app)
inspect.register(app)
predict.register(app)
drift.register(app)


def main(arguments: list[str] | None = None) -> None:
    """Runs a command and leaves with its exit code (see `mlpipe/errors.py`)."""
    arguments = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    stopper.install()
    sys.exit(_run(arguments))


def _run(arguments: list[str]) -> int:
    """The exit code of a command, its failure told."""
    command = typer.main.get_command(app)
    try:
        code = command.main(args=arguments, prog_name="mlpipe", standalone_mode=False)
        code = code if isinstance(code, int) else 0
    except (MlpipeError, StoppedError) as fault:
        print_failure(fault, wants_json(arguments))
        code = fault.exit_code
    except BrokenPipeError:
        code = 0  # the reader of our output has seen enough
    except Exception as fault:
        usage = getattr(fault, "format_message", None)
        if usage is None and not hasattr(fault, "exit_code"):
            if wants_json(arguments):
                print_failure(MlpipeError(f"a bug: {type(fault).__name__}: {fault}"), True)
            raise
        code = int(getattr(fault, "exit_code", 2))
        if usage is not None:
            print_failure(SpecError(usage(), hint="mlpipe --help, or mlpipe COMMAND --help"), wants_json(arguments))
            code = SpecError.exit_code
    return _flushed(code)


def _flushed(code: int) -> int:
    """Flushes stdout here, where a closed one can be borne; otherwise Python would do it last and complain."""
    import os

    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except (OSError, ValueError):
        with open(os.devnull, "w") as nowhere:  # noqa: PTH123 (a device)
            os.dup2(nowhere.fileno(), 1)
    return code
