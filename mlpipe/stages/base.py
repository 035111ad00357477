"""How every stage is brought up to date: look, skip or run, commit."""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from mlpipe import manifest as manifests
from mlpipe.console import console
from mlpipe.digest import sha256_file, short
from mlpipe.errors import DataError, IntegrityError, NotReadyError
from mlpipe.manifest import Artifact, Identity, Input, Manifest
from mlpipe.run import STAGES, RunFolder, State, broken_outputs, differences, judge, volatile_facts
from mlpipe.sources.base import RawRows, Source
from mlpipe.spec import Pipeline
from mlpipe.stopping import stopper


@dataclass(frozen=True)
class Options:
    """How to work, none of which changes a result."""

    force: bool = False
    resume: bool = True
    wait_lock: float = 0.0


@dataclass(frozen=True)
class Work:
    """What a stage made: artifacts in its folder, findings for the manifest, a verdict."""

    artifacts: Sequence[Artifact]
    results: Mapping[str, Any]
    verdict: Literal["ok", "gate_failed"] = "ok"


@dataclass
class Context:
    """One pipeline in one run folder. Source files are hashed, and what lies elsewhere is fetched, at most once.

    `asking` says whether a network or a database may be asked: while a stage is brought up to date, and not when its state is told.
    """

    pipeline: Pipeline
    folder: RunFolder
    options: Options = field(default_factory=Options)
    asking: bool = False
    unasked: list[str] = field(default_factory=list)  # what was taken as recorded instead
    _hashed: dict[Path, str] = field(default_factory=dict)
    _local: dict[str, Source] = field(default_factory=dict)

    def local(self, role: str, rows: RawRows) -> Source:
        """The source with this role as files of this machine."""
        if role not in self._local:
            self._local[role] = rows.local(self.pipeline.base, self.folder.snapshots)
        return self._local[role]

    def hashed(self, path: Path) -> str:
        """The sha256 of a source file."""
        if path not in self._hashed:
            try:
                self._hashed[path] = sha256_file(path)
            except OSError as fault:
                raise DataError(f"{path.name} cannot be read: {(fault.strerror or str(fault)).lower()}") from None
        return self._hashed[path]


@dataclass(frozen=True)
class Outcome:
    """What became of a stage: `ran`, `fresh`, or `moved` (only its parents' manifests were renewed)."""

    stage: str
    state: Literal["ran", "fresh", "moved"]
    reason: str
    seconds: float
    manifest: Manifest


class Stage(ABC):
    """One of the four. `version` is raised when its output changes meaning."""

    name: str
    version: int
    parents: tuple[str, ...] = ()
    renewable = True  # whether a change of the parents' manifests alone leaves the artifacts as they are

    @abstractmethod
    def config(self, pipeline: Pipeline) -> dict[str, Any]:
        """The resolved settings that decide this stage's result."""

    @abstractmethod
    def inputs(self, context: Context, parents: Mapping[str, Manifest]) -> list[Input]:
        """The content that decides it."""

    @abstractmethod
    def work(self, context: Context, identity: Identity, parents: Mapping[str, Manifest], out: Path) -> Work:
        """Does the work and writes its artifacts into `out`."""

    def tidy(self, context: Context, identity: Identity) -> None:  # noqa: B027 (most stages leave nothing behind)
        """Removes what the finished result makes useless."""

    def attend(self, context: Context, manifest: Manifest) -> None:  # noqa: B027 (most stages have nothing that ages)
        """Judges, when nothing has to run, what time alone changes. Raises DataError where that must end the command."""

    def identity(self, context: Context, parents: Mapping[str, Manifest]) -> Identity:
        """One function for deciding and for recording."""
        return Identity(self.name, self.version, self.config(context.pipeline), self.inputs(context, parents))


def task_and_seed(pipeline: Pipeline) -> dict[str, Any]:
    """What every stage's config has beside its own section."""
    return {"task": pipeline.spec.task.model_dump(mode="json"), "seed": pipeline.spec.seed}


def bring(stage: Stage, context: Context, parents: Mapping[str, Manifest]) -> Outcome:
    """Runs a stage unless its result is there already. The run's lock must be held."""
    started = time.time()
    context.asking = True
    mine = [parents[name] for name in stage.parents]
    identity = stage.identity(context, parents)
    state = judge(context.folder.stage(stage.name), identity, mine)
    if (
        not context.options.force
        and state.manifest is not None
        and state.kind in ("fresh", "moved")
        and (state.kind == "fresh" or stage.renewable)
    ):
        manifest = state.manifest
        if state.kind == "moved":
            manifest = context.folder.renew_parents(manifest, mine)
        console.say(f"{stage.name}: fresh ({state.reason})")
        stage.attend(context, manifest)
        return Outcome(stage.name, "fresh" if state.kind == "fresh" else "moved", state.reason, time.time() - started, manifest)
    reason = "asked for by --force" if state.kind == "fresh" else state.reason
    console.say(f"{stage.name}: runs ({reason})")
    console.detail(f"  id {identity.id}")
    for item in identity.inputs:
        digests = ", ".join(f"{name} {short(digest)}" for name, digest in item.digest.items())
        console.detail(f"  reads {item.role}{f' {item.path}' if item.path else ''}: {digests}")
    for parent in mine:
        check_whole(parent)
    with context.folder.workspace(stage.name) as out:
        done = stage.work(context, identity, parents, out)
        manifest = manifests.compose(identity, mine, done.artifacts, out, done.results, done.verdict)
        with stopper.deferred():
            manifest = context.folder.commit(stage.name, out, manifest, volatile_facts(started, ["mlpipe", *sys.argv[1:]]))
            stage.tidy(context, identity)
    for entry in manifest.data["outputs"]:
        console.detail(f"  wrote {entry['path']}, {entry['size']:,} bytes")
    seconds = time.time() - started
    console.say(f"{stage.name}: done in {seconds:.1f} s")
    return Outcome(stage.name, "ran", reason, seconds, manifest)


def check_whole(parent: Manifest) -> None:
    """Raises IntegrityError when an artifact of a finished stage is not what its manifest says."""
    if faults := broken_outputs(parent):
        raise IntegrityError(
            f"the result of {parent.stage} is not what its manifest says",
            faults=faults,
            hint=f"run mlpipe {parent.stage} again, or put the files back",
        )


def ready(stage: Stage, context: Context, parents: Mapping[str, Manifest]) -> Manifest:
    """The finished result of an earlier stage, for a command that begins after it.

    Raises NotReadyError when it has not run or ran with other settings or inputs, IntegrityError when it was changed.
    Where the source files are gone, prepare's settings are compared and its inputs taken as recorded.
    """
    folder = context.folder.stage(stage.name)
    manifest = manifests.load(folder)
    if manifest is None:
        raise NotReadyError(
            f"{stage.name} did not finish: there is no {folder / manifests.NAME}", hint=f"run mlpipe {stage.name} first, or mlpipe run"
        )
    check_whole(manifest)
    try:
        identity = stage.identity(context, parents).as_dict()
    except DataError as fault:
        console.warn(f"{fault.message}; {stage.name}'s result is taken as recorded")
        recorded = manifest.identity
        identity = {**recorded, "config": Identity(stage.name, stage.version, stage.config(context.pipeline), []).as_dict()["config"]}
    if changed := differences(manifest.identity, identity):
        raise NotReadyError(
            f"{stage.name} ran with other settings or data", faults=changed, hint=f"run mlpipe {stage.name} again, or mlpipe run"
        )
    return manifest


def look(stage: Stage, context: Context, parents: Mapping[str, Manifest]) -> State:
    """Whether a stage would run, without running it."""
    return judge(context.folder.stage(stage.name), stage.identity(context, parents), [parents[name] for name in stage.parents])


def order(name: str) -> int:
    """The place of a stage in the chain."""
    return STAGES.index(name)
