"""`predict`: rows in, labels and scores out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mlpipe.cli import common
from mlpipe.cli.common import emit, emit_json


def register(app: typer.Typer) -> None:
    """Adds the command."""

    @app.command(
        help="Scores rows with an exported model (onnxruntime only). Example: mlpipe predict runs/penguins/export new.csv -o scored.csv"
    )
    def predict(
        export: Annotated[Path, typer.Argument(help="The folder that export wrote.", metavar="EXPORT_DIR", show_default=False)],
        rows: Annotated[
            Path,
            typer.Argument(
                help="Rows in a file: CSV, Parquet, JSON, Excel, ...; its kind is told by the ending.", metavar="ROWS", show_default=False
            ),
        ],
        output: Annotated[
            Path, typer.Option("-o", "--output", help="CSV, Parquet or JSONL, by its ending.", metavar="OUT", show_default=False)
        ],
        carry: Annotated[
            list[str] | None, typer.Option("--carry", help="A column to carry along; may be repeated.", metavar="COLUMN")
        ] = None,
        carry_all: Annotated[bool, typer.Option("--carry-all", help="Carries every column along.")] = False,
        reader: common.Reader = None,
        as_json: common.Json = False,
        quiet: common.Quiet = False,
    ) -> None:
        from mlpipe.errors import listed
        from mlpipe.stages.predict import predict as score
        from mlpipe.stages.strangers import cut_line

        common.set_level(quiet, False)
        common.without_pandas()
        done = score(export, rows, output, carry=carry or (), carry_all=carry_all, reader=common.reader_settings(reader or []))
        if as_json:
            emit_json(
                {
                    "status": "ok",
                    "exit_code": 0,
                    "rows": done.rows,
                    "output": str(done.output),
                    "ignored": list(done.ignored),
                    "unseen": done.unseen,
                    "cut": {column: {"rows": rows, f"{unit}_read": read} for column, (rows, read, unit) in done.cut.items()},
                }
            )
            return
        if done.ignored:
            emit(f"columns ignored: {', '.join(done.ignored)}")
        for column, values in done.unseen.items():
            shown = listed(sorted(values, key=lambda value: (-values[value], value)), 5)
            emit(f"{column}: {sum(values.values()):,} rows with values that training did not see, or seldom ({shown})")
        for column, cut in done.cut.items():
            emit(cut_line(column, *cut))
        emit(f"{done.rows:,} rows scored: {done.output}")
