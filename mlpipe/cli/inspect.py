"""`init`, `inspect`, `check`, `schema`, `verify` and `kinds`: looking, without running a stage."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mlpipe.cli import common
from mlpipe.cli.common import emit, emit_json

DATA_HELP = "The data: files, URLs, an SQLite file, or the address of a database as SQLAlchemy writes it."
TABLE_HELP = "The table of a database, or the sheet of a workbook."


def register(app: typer.Typer) -> None:
    """Adds the commands."""

    @app.command(
        help="Looks at the data once and writes a commented pipeline file. Example: mlpipe init sales.csv --target price -o sales.yaml"
    )
    def init(
        data: Annotated[list[str], typer.Argument(help=DATA_HELP, metavar="DATA", show_default=False)],
        target: Annotated[str, typer.Option("--target", help="The column to predict.", metavar="COLUMN", show_default=False)],
        output: Annotated[
            Path | None, typer.Option("-o", "--output", help="The file to write [default: NAME.yaml].", metavar="FILE")
        ] = None,
        task: Annotated[str | None, typer.Option("--task", help="classification or regression; otherwise guessed.", metavar="KIND")] = None,
        name: Annotated[str | None, typer.Option("--name", help="The pipeline's name; otherwise the file's.", metavar="NAME")] = None,
        table: Annotated[str | None, typer.Option("--table", help=TABLE_HELP, metavar="NAME")] = None,
        reader: common.Reader = None,
        force: Annotated[bool, typer.Option("--force", help="Overwrites the file.")] = False,
        as_json: common.Json = False,
    ) -> None:
        from mlpipe.stages.init.report import init as look
        from mlpipe.stages.init.report import run_name

        common.without_pandas()

        stem = run_name(data, table)
        settings = common.reader_settings(reader or [])
        report = look(data, target, task=task, name=name, output=output or Path(f"{stem}.yaml"), force=force, reader=settings, table=table)
        if as_json:
            emit_json(
                {"status": "ok", "exit_code": 0, "pipeline": str(report.pipeline), "summary": list(report.summary), "text": report.text}
            )
            return
        for line in report.summary:
            emit(line)

    @app.command(
        help="How data are written and what they hold, without a target. Example: mlpipe inspect sales.csv --to sales.jsonl",
    )
    def inspect(
        data: Annotated[list[str], typer.Argument(help=DATA_HELP, metavar="DATA", show_default=False)],
        to: Annotated[
            Path | None, typer.Option("--to", help="Writes the rows as read: CSV, Parquet or JSONL, by the ending.", metavar="FILE")
        ] = None,
        table: Annotated[str | None, typer.Option("--table", help=TABLE_HELP, metavar="NAME")] = None,
        reader: common.Reader = None,
        as_json: common.Json = False,
        quiet: common.Quiet = False,
    ) -> None:
        from mlpipe.stages.inspect import inspect as look

        common.set_level(quiet, False)
        common.without_pandas()
        report = look(data, reader=common.reader_settings(reader or []), to=to, table=table)
        if as_json:
            emit_json({"status": "ok", "exit_code": 0, **report.found})
            return
        for line in report.lines:
            emit(line)

    @app.command(help="All faults of a pipeline file, nothing run. Example: mlpipe check pipelines/penguins.yaml")
    def check(pipeline: common.PipelineFile, overrides: common.Set = None, as_json: common.Json = False) -> None:
        from mlpipe.spec import load_pipeline
        from mlpipe.stages.check import check_sources

        loaded = load_pipeline(pipeline, overrides or [])
        lines = check_sources(loaded)
        if as_json:
            emit_json({"status": "ok", "exit_code": 0, "name": loaded.spec.name, "checked": lines})
            return
        for line in lines:
            emit(line)
        emit(f"{pipeline} is valid. next: mlpipe run {pipeline}")

    @app.command(help="The JSON Schema of pipeline files, for editors. Example: mlpipe schema > mlpipe.schema.json")
    def schema() -> None:
        from mlpipe.spec import json_schema

        emit_json(json_schema())

    @app.command(
        help="Walks from a result to its sources and names the first link that does not hold. Example: mlpipe verify runs/penguins"
    )
    def verify(
        folder: Annotated[Path, typer.Argument(help="A run folder, or a stage's.", metavar="DIR", show_default=False)],
        sources: Annotated[
            Path | None, typer.Option("--sources", help="The pipeline file's folder: the original files are hashed too.", metavar="DIR")
        ] = None,
        as_json: common.Json = False,
    ) -> None:
        from mlpipe.stages.verify import verify as walk

        found = walk(folder, sources)
        if as_json:
            emit_json({"status": "ok", "exit_code": 0, "stages": found.stages, "checked": found.lines})
            return
        for line in found.lines:
            emit(line)
        emit("every link holds")

    @app.command(help="Every kind of source, split, feature, task, model, metric and export target. Example: mlpipe kinds")
    def kinds(as_json: common.Json = False) -> None:
        from mlpipe.stages.kinds import all_kinds

        found = all_kinds()
        if as_json:
            emit_json({"status": "ok", "exit_code": 0, "kinds": found})
            return
        for group, members in found.items():
            emit(group)
            for member, meaning in members.items():
                emit(f"  {member:<18} {meaning}")
