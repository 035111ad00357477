"""`drift`: whether new rows look like the train rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mlpipe.cli import common
from mlpipe.cli.common import emit, emit_json


def register(app: typer.Typer) -> None:
    """Adds the command."""

    @app.command(
        help="Compares new rows with the train rows that an exported model remembers, column by column, the worst first. "
        "Exit code 0: alike; 6: a column is beyond a limit; 3: too few rows to judge, or none that can be read. "
        "A column has drifted when its population stability index, its share of missing cells or its share of unseen values is beyond "
        "its limit. The p-values of the Kolmogorov-Smirnov and chi-square tests are shown and decide nothing: with many rows they are tiny "
        "for changes that matter to nobody. Columns of times are shown and not judged, since time moves on. "
        "Example: mlpipe drift runs/penguins/export new.csv"
    )
    def drift(
        export: Annotated[Path, typer.Argument(help="The folder that export wrote.", metavar="EXPORT_DIR", show_default=False)],
        rows: Annotated[Path, typer.Argument(help="Rows as predict takes them; also with the target.", metavar="ROWS", show_default=False)],
        psi: Annotated[float, typer.Option("--psi", help="The largest population stability index.", metavar="X", min=0)] = 0.2,
        missing: Annotated[
            float, typer.Option("--missing", help="The largest change of the share of missing cells.", metavar="X", min=0, max=1)
        ] = 0.05,
        unseen: Annotated[
            float,
            typer.Option(
                "--unseen",
                help="The largest growth of the share of values that training lacks, or numbers beyond its range.",
                metavar="X",
                min=0,
                max=1,
            ),
        ] = 0.05,
        min_rows: Annotated[
            int, typer.Option("--min-rows", help="Fewer rows (or values of a column) are shown and not judged.", metavar="N", min=0)
        ] = 100,
        reader: Annotated[
            list[str] | None, typer.Option("--reader", help="Changes how the rows are read: --reader delimiter=';'.", metavar="NAME=VALUE")
        ] = None,
        as_json: common.Json = False,
        quiet: common.Quiet = False,
    ) -> None:
        from mlpipe.console import console
        from mlpipe.errors import DataError, GateError
        from mlpipe.stages.drift import Limits, lines
        from mlpipe.stages.drift import drift as compare

        common.set_level(quiet, False)
        common.without_pandas()
        found = compare(export, rows, limits=Limits(psi, missing, unseen, min_rows), reader=common.reader_settings(reader or []))
        drifted = found.drifted
        code = DataError.exit_code if not found.judged else GateError.exit_code if drifted else 0
        if as_json:
            emit_json(
                {"status": "too few rows" if not found.judged else "drift" if drifted else "ok", "exit_code": code, **found.as_dict()}
            )
        else:
            emit(common.table(lines(found)))
        if not found.judged:
            console.warn(f"{found.rows:,} rows are too few to judge (--min-rows {min_rows}): the figures above are noise at that size")
        elif drifted:
            console.warn(f"{len(drifted)} of {len(found.columns)} columns drifted: {', '.join(column.column for column in drifted)}")
        elif not as_json:
            emit(f"{found.rows:,} rows look like the {found.train_rows:,} train rows")
        if code:
            raise typer.Exit(code)
