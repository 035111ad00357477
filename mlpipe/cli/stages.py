"""`prepare`, `train`, `evaluate`, `export`, `run` and `status`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mlpipe.cli import common
from mlpipe.cli.common import emit, emit_json, table

if TYPE_CHECKING:
    from mlpipe.spec import Pipeline
    from mlpipe.stages.base import Outcome
    from mlpipe.stages.chain import Step

RUNS = Path("runs")
NAMES = ("prepare", "train", "evaluate", "export")

HELP = {
    "prepare": "Reads the sources, splits the rows, fits the features on train rows, writes encoder.onnx and encoded tensors.",
    "train": "Trains the network on what prepare wrote.",
    "evaluate": "Scores the test rows with frozen weights: metrics beside a baseline, gates, predictions.",
    "export": "Writes model.onnx, which takes raw rows, once it is proven to agree with the trained network.",
}


def _example(command: str) -> str:
    return f"Example: mlpipe {command} pipelines/penguins.yaml"


def _work(names: Sequence[str], file: Path, runs: Path, overrides: list[str], as_json: bool, dry_run: bool, **options: Any) -> None:
    """Brings stages up to date and prints what became of them."""
    from mlpipe.spec import load_pipeline
    from mlpipe.stages.base import Options
    from mlpipe.stages.chain import run_stages, steps

    pipeline = load_pipeline(file, overrides)
    if not dry_run and pipeline.spec.train.model.kind != "python":  # a user's own module may well want pandas with its pyarrow
        common.without_pandas()
    if dry_run:
        _print_steps(steps(pipeline, runs, names, force=options["force"]), as_json)
        return
    outcomes = run_stages(pipeline, runs, names, Options(**options))
    given = ([] if runs == RUNS else ["--runs", str(runs)]) + [word for override in overrides for word in ("--set", override)]
    _print_outcomes(outcomes, pipeline, shlex.join([str(file), *given]), as_json)


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    for name in NAMES:
        _register_stage(app, name)

    @app.command(help=f"The four stages, one after the other, in one process. {_example('run')}")
    def run(
        pipeline: common.PipelineFile,
        until: Annotated[str, typer.Option("--until", help="The last stage to run.", metavar="STAGE")] = "export",
        runs: common.Runs = RUNS,
        overrides: common.Set = None,
        force: common.Force = False,
        dry_run: common.DryRun = False,
        as_json: common.Json = False,
        quiet: common.Quiet = False,
        verbose: common.Verbose = False,
        wait_lock: common.WaitLock = 0.0,
        device: common.Device = None,
        resume: common.Resume = True,
    ) -> None:
        from mlpipe.errors import SpecError, did_you_mean

        common.set_level(quiet, verbose)
        if until not in NAMES:
            raise SpecError(f"--until {until!r} is no stage", hint=did_you_mean(until, NAMES) or f"one of: {', '.join(NAMES)}")
        names = NAMES[: NAMES.index(until) + 1]
        _work(
            names,
            pipeline,
            runs,
            common.with_device(overrides, device),
            as_json,
            dry_run,
            force=force,
            resume=resume,
            wait_lock=wait_lock,
        )

    @app.command(help=f"What would run, and why. Exit code 0: all is fresh; 1: something is stale. {_example('status')}")
    def status(
        pipeline: common.PipelineFile,
        runs: common.Runs = RUNS,
        overrides: common.Set = None,
        as_json: common.Json = False,
        device: common.Device = None,
    ) -> None:
        from mlpipe.spec import load_pipeline
        from mlpipe.stages.chain import interrupted, steps

        loaded = load_pipeline(pipeline, common.with_device(overrides, device))
        found = steps(loaded, runs)
        code = int(any(step.state != "fresh" for step in found))
        _print_steps(found, as_json, interrupted(loaded, runs), code)
        raise typer.Exit(code)


def _register_stage(app: typer.Typer, name: str) -> None:
    def command(
        pipeline: common.PipelineFile,
        runs: common.Runs = RUNS,
        overrides: common.Set = None,
        force: common.Force = False,
        dry_run: common.DryRun = False,
        as_json: common.Json = False,
        quiet: common.Quiet = False,
        verbose: common.Verbose = False,
        wait_lock: common.WaitLock = 0.0,
        device: common.Device = None,
        resume: common.Resume = True,
    ) -> None:
        common.set_level(quiet, verbose)
        _work(
            (name,),
            pipeline,
            runs,
            common.with_device(overrides, device),
            as_json,
            dry_run,
            force=force,
            resume=resume,
            wait_lock=wait_lock,
        )

    app.command(name, help=f"{HELP[name]} {_example(name)}")(command)


def _print_steps(found: Sequence[Step], as_json: bool, interrupted: dict[str, Any] | None = None, code: int = 0) -> None:
    stale = any(step.state != "fresh" for step in found)
    if as_json:
        listed = [vars(step) for step in found]
        emit_json({"status": "stale" if stale else "fresh", "exit_code": code, "stages": listed, "interrupted": interrupted})
        return
    emit(table([("stage", "state", "why"), *((step.stage, step.state, step.reason) for step in found)]))
    if interrupted:
        emit(f"training was interrupted after epoch {interrupted['epoch']}; the next run resumes there")


def _print_outcomes(outcomes: Sequence[Outcome], pipeline: Pipeline, again: str, as_json: bool) -> None:
    last = outcomes[-1]
    by_name = {outcome.stage: outcome.manifest for outcome in outcomes}
    if as_json:
        shown = [
            {
                "stage": o.stage,
                "state": o.state,
                "reason": o.reason,
                "seconds": round(o.seconds, 3),
                "id": o.manifest.id,
                "path": str(o.manifest.folder),
                "results": o.manifest.results,
            }
            for o in outcomes
        ]
        emit_json({"status": "ok", "exit_code": 0, "name": pipeline.spec.name, "stages": shown})
        return
    rows = [
        (o.stage, "ran" if o.state == "ran" else "fresh", f"{o.seconds:.1f}", _key_figures(o.stage, o.manifest.results)) for o in outcomes
    ]
    emit(table([("stage", "state", "seconds", "figures"), *rows]))
    if "evaluate" in by_name:
        report = by_name["evaluate"].results
        emit("")
        emit(f"metrics on {report['n']:,} test rows")
        emit(table([("", "model", "baseline"), *_metric_rows(report)]))
        from mlpipe.stages.evaluate import gate_line
        from mlpipe.stages.slices import slice_lines

        for line in [*map(gate_line, report["gates"]), *slice_lines(report.get("slices", {}), list(report["baseline"]))]:
            emit(line)
    if "export" in by_name:
        parity = by_name["export"].results["parity"]
        emit("")
        tests, odd = f"{parity['rows']:,} test rows", f"{parity['awkward']['rows']:,} awkward ones"
        emit(f"parity: {tests} and {odd}, largest difference {parity['worst_scaled']:.2g}, {parity['label_flips']} labels changed")
        emit(f"model: {by_name['export'].folder / 'model.onnx'}")
    if all(outcome.state != "ran" for outcome in outcomes):
        emit("nothing changed: nothing ran")
    emit(_next(last.stage, last.manifest.folder, again))


def _metric_rows(report: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    def number(value: float | None) -> str:
        return "undefined" if value is None else f"{value:.6g}"

    return [(name, number(report[name]), number(base)) for name, base in report["baseline"].items()]


def _key_figures(stage: str, results: Mapping[str, Any]) -> str:
    """What a reader wants to know of a stage in half a line."""
    if stage == "prepare":
        sizes = ", ".join(f"{name} {results['splits'][name]['rows']:,}" for name in ("train", "valid", "test"))
        return f"{results['rows']['kept']:,} rows: {sizes}"
    if stage == "train":
        return f"best epoch {results['best_epoch']} of {results['epochs']}, {results['parameters']:,} parameters"
    if stage == "evaluate":
        passed = sum(gate["passed"] for gate in results["gates"])
        return f"{passed} of {len(results['gates'])} gates passed" if results["gates"] else "no gates"
    return f"{len(results['inputs'])} inputs, opset {results['opset']}"


def _next(stage: str, folder: Path, again: str) -> str:
    """What to try next; `again` is the pipeline file with the options that led here."""
    if stage == "export":
        return f"next: mlpipe predict {folder} ROWS.csv -o OUT.csv, or mlpipe verify {folder.parent}"
    following = NAMES[NAMES.index(stage) + 1]
    return f"next: mlpipe {following} {again}"
