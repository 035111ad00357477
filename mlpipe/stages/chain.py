"""The chain: which stages a command brings up to date, in which order, and what it may skip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlpipe import manifest as manifests
from mlpipe.errors import DataError, GateError, listed
from mlpipe.manifest import Manifest
from mlpipe.run import STAGES, RunFolder
from mlpipe.spec import Pipeline
from mlpipe.stages.base import Context, Options, Outcome, Stage, bring, look, ready
from mlpipe.stages.evaluate import Evaluate, gate_line
from mlpipe.stages.export import Export, check_exporter
from mlpipe.stages.prepare import Prepare
from mlpipe.stages.train import Train

ALL: dict[str, Stage] = {stage.name: stage for stage in (Prepare(), Train(), Evaluate(), Export())}


@dataclass(frozen=True)
class Step:
    """What `status` and `--dry-run` say of a stage."""

    stage: str
    state: str
    reason: str


def run_stages(pipeline: Pipeline, runs: Path, names: Sequence[str], options: Options) -> list[Outcome]:
    """Brings stages up to date, in their order, under the run's lock; earlier ones must be ready.

    Raises GateError after evaluate when a gate failed, its evidence written, unless the pipeline allows that.
    """
    context = Context(pipeline, RunFolder(runs / pipeline.spec.name), options)
    if "export" in names:
        check_exporter()
    with context.folder.locked(options.wait_lock):
        parents: dict[str, Manifest] = {}
        for name in STAGES[: STAGES.index(names[0])]:
            parents[name] = ready(ALL[name], context, parents)
        outcomes = []
        for name in names:
            outcome = bring(ALL[name], context, parents)
            parents[name] = outcome.manifest
            outcomes.append(outcome)
            if name == "evaluate":
                check_gates(outcome.manifest, pipeline, last=name == names[-1])
    return outcomes


def check_gates(evaluate: Manifest, pipeline: Pipeline, *, last: bool) -> None:
    """Raises GateError when evaluate's verdict is not ok; where export is allowed to go on and follows, it does not."""
    if evaluate.verdict == "ok" or (pipeline.spec.export.allow_failed_gate and not last):
        return
    failed = [gate_line(gate) for gate in evaluate.results["gates"] if not gate["passed"]]
    raise GateError("a quality gate failed", faults=failed, hint=f"the evidence is in {evaluate.folder}")


def steps(pipeline: Pipeline, runs: Path, names: Sequence[str] = STAGES, *, force: bool = False) -> list[Step]:
    """What would run, and why; nothing is changed. Behind a stage that would run, what follows cannot be judged but by it."""
    context = Context(pipeline, RunFolder(runs / pipeline.spec.name))
    parents: dict[str, Manifest] = {}
    found: list[Step] = []
    waiting: str | None = None
    for name in STAGES[: STAGES.index(names[-1]) + 1]:
        stage = ALL[name]
        if waiting is None:
            state = look(stage, context, parents)
            kind = "stale" if state.kind == "moved" and not stage.renewable else state.kind
            if force and name in names:
                kind, reason = "stale", "asked for by --force"
            else:
                reason = state.reason
                if context.unasked and name == "prepare":
                    reason += f"; {listed(context.unasked, 3)} not asked for: a run does that"
            found.append(Step(name, kind, reason))
            if kind == "stale":
                waiting = name
            elif state.manifest is not None:
                parents[name] = state.manifest.with_parents([parents[p] for p in stage.parents]) if kind == "moved" else state.manifest
        else:
            found.append(Step(name, *_behind(context, name, waiting)))
    return [step for step in found if step.stage in names]


def _behind(context: Context, name: str, waiting: str) -> tuple[str, str]:
    """The state of a stage behind one that would run."""
    try:
        there = manifests.load(context.folder.stage(name))
    except Exception as fault:  # noqa: BLE001 (status tells, it does not fail)
        return "stale", str(fault).splitlines()[0]
    if there is None:
        return "stale", "has not run"
    return "waits", f"depends on what {waiting} gives"


def interrupted(pipeline: Pipeline, runs: Path) -> dict[str, Any] | None:
    """Where an interrupted training of this very pipeline stands, or None."""
    from mlpipe.base import read_json

    context = Context(pipeline, RunFolder(runs / pipeline.spec.name))
    try:
        prepare = manifests.load(context.folder.stage("prepare"))
        if prepare is None:
            return None
        state = read_json(context.folder.checkpoints(ALL["train"].identity(context, {"prepare": prepare}).id) / "state.json")
    except (OSError, ValueError, DataError):
        return None
    return dict(state)
