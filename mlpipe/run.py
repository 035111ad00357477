"""The run folder: is a stage fresh, who holds the lock, work aside, manifest last, rename.

`runs/<name>/` holds a folder for each stage, `.lock` (a kernel lock, freed when its holder dies), `.checkpoints/` and,
while a stage works, `.<stage>.<pid>.tmp/`. A stage's folder is whole or absent: its manifest is written last and the
folder takes its name by a rename.
"""

from __future__ import annotations

import functools
import json
import os
import platform
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mlpipe import manifest as manifests
from mlpipe.base import json_text, machine_faults, refusal, replace_file, sync_folder, write_json, write_text
from mlpipe.errors import IntegrityError, LockedError
from mlpipe.manifest import NAME, VOLATILE, Identity, Manifest

STAGES = ("prepare", "train", "evaluate", "export")


@dataclass(frozen=True)
class State:
    """What a look at a stage's folder says: `fresh`, `moved` (only its parents' manifests changed) or `stale`, and why."""

    kind: str
    reason: str
    manifest: Manifest | None


class RunFolder:
    """`runs/<name>`, with everything that keeps it whole."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def stage(self, name: str) -> Path:
        """The folder of a finished stage."""
        return self.root / name

    def checkpoints(self, identity: str) -> Path:
        """Where the checkpoints of a training with this id lie."""
        return self.root / ".checkpoints" / identity.removeprefix("sha256:")[:16]

    @property
    def snapshots(self) -> Path:
        """Where copies of what prepare read from a network or a database lie, a folder each."""
        return self.root / ".snapshots"

    @contextmanager
    def locked(self, wait: float = 0.0) -> Iterator[None]:
        """Holds the run's lock; leftovers of killed processes are put right first.

        The lock is the kernel's (flock), so a dead holder never blocks and equal process numbers in containers do not
        matter. Raises LockedError, naming the holder, when it is not had within `wait` seconds.
        """
        from filelock import FileLock, Timeout

        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as fault:
            raise refusal(fault, self.root) from fault
        lock = FileLock(self.root / ".lock", timeout=wait)
        holder = self.root / ".lock.json"
        try:
            with machine_faults(self.root):
                lock.acquire(poll_interval=0.1)
        except Timeout:
            raise LockedError(
                f"the run {self.root.name!r} is locked by {_holder(holder)}", hint="wait for it, or use --wait-lock SECONDS"
            ) from None
        try:
            me = {
                "pid": os.getpid(),
                "host": platform.node(),
                "start": datetime.now(UTC).isoformat(timespec="seconds"),
                "command": _command(),
            }
            replace_file(holder, json_text(me).encode())
            self._recover()
            yield
        finally:
            holder.unlink(missing_ok=True)
            lock.release()

    def _recover(self) -> None:
        """Puts an old result back that was moved aside and not yet replaced, and removes half-done work."""
        for aside in sorted(self.root.glob(".*.old")):
            stage = self.stage(aside.name.split(".")[1])
            if not (stage / NAME).exists() and (aside / NAME).exists():
                shutil.rmtree(stage, ignore_errors=True)
                aside.rename(stage)
            else:
                shutil.rmtree(aside, ignore_errors=True)
        for left in [*self.root.glob(".*.tmp"), *self.root.glob("*/.*.tmp")]:
            shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink(missing_ok=True)

    @contextmanager
    def workspace(self, stage: str) -> Iterator[Path]:
        """A new folder beside the stage's own, removed when the work fails."""
        aside = self.root / f".{stage}.{os.getpid()}.tmp"
        with machine_faults(aside):
            shutil.rmtree(aside, ignore_errors=True)
            aside.mkdir()
            try:
                yield aside
            finally:
                shutil.rmtree(aside, ignore_errors=True)

    def commit(self, stage: str, work: Path, manifest: Manifest, volatile: Mapping[str, Any]) -> Manifest:
        """Makes `work` the result of `stage`: flush, manifest last, old aside, new in, old away."""
        write_json(work / VOLATILE, dict(volatile))
        for path in [work, *work.rglob("*")]:
            if path.is_file():
                with path.open("rb") as file:
                    os.fsync(file.fileno())
        for path in [p for p in work.rglob("*") if p.is_dir()]:
            sync_folder(path)
        write_text(work / NAME, json_text(manifest.data))  # written last: its existence means that the work is whole
        with (work / NAME).open("rb") as file:
            os.fsync(file.fileno())
        sync_folder(work)
        final, aside = self.stage(stage), self.root / f".{stage}.{os.getpid()}.old"
        if final.exists():
            final.rename(aside)
        work.rename(final)
        sync_folder(self.root)
        shutil.rmtree(aside, ignore_errors=True)
        return Manifest(final, manifest.data)

    def renew_parents(self, manifest: Manifest, parents: Sequence[Manifest]) -> Manifest:
        """Rewrites a manifest of which only the parents' entries changed."""
        renewed = manifest.with_parents(parents)
        replace_file(manifest.folder / NAME, json_text(renewed.data).encode())
        return renewed


def _command() -> str:
    return " ".join(["mlpipe", *sys.argv[1:]])


def _holder(path: Path) -> str:
    """Who holds the lock, as its holder wrote it down."""
    for _ in range(5):
        try:
            told = json.loads(path.read_text(encoding="utf-8"))
            return f"process {told['pid']} on {told['host']}, started {told['start']} ({told['command']})"
        except (OSError, ValueError, KeyError):
            time.sleep(0.05)
    return "another process"


def judge(folder: Path, identity: Identity, parents: Sequence[Manifest]) -> State:
    """Whether the result in `folder` is what the stage would make now. The same `Identity` is written when it runs."""
    try:
        manifest = manifests.load(folder)
    except IntegrityError as broken:
        return State("stale", broken.message, None)
    if manifest is None:
        return State("stale", "has not run", None)
    if fault := manifests.edited(manifest):
        return State("stale", fault, manifest)
    if manifest.id != identity.id:
        return State("stale", "; ".join(differences(manifest.identity, identity.as_dict())) or "another id", manifest)
    if faults := manifests.broken_outputs(manifest):
        return State("stale", "; ".join(faults), manifest)
    if manifest.data["parents"] != [parent.as_parent() for parent in parents]:
        return State("moved", "the same inputs under new manifests", manifest)
    return State("fresh", "nothing changed", manifest)


def broken_outputs(manifest: Manifest) -> list[str]:
    """What does not hold in a finished stage: an edited manifest, missing or changed artifacts."""
    fault = manifests.edited(manifest)
    return [fault] if fault else manifests.broken_outputs(manifest)


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """What changed between two identities, in words: `optimiser.lr 0.001 -> 0.01`, `encoded-train changed`."""
    said = []
    if old.get("stage_version") != new.get("stage_version"):
        said.append(f"stage version {old.get('stage_version')} -> {new.get('stage_version')}")
    before, after = _leaves(old.get("config", {})), _leaves(new.get("config", {}))
    for key in sorted(before.keys() | after.keys()):
        if before.get(key) != after.get(key):
            said.append(f"{key} {_word(before, key)} -> {_word(after, key)}")
    was, now = ({(i["role"], i.get("path")): i["digest"] for i in side.get("inputs", [])} for side in (old, new))
    for role, path in sorted(was.keys() | now.keys(), key=str):
        name = f"{role} {path}" if path else role
        if (role, path) not in was:
            said.append(f"{name} is new")
        elif (role, path) not in now:
            said.append(f"{name} is gone")
        elif was[role, path] != now[role, path]:
            said.append(f"{name} changed")
    return said


def _word(leaves: Mapping[str, Any], key: str) -> str:
    """A setting's value as a pipeline file has it."""
    value = leaves.get(key)
    return "(none)" if value is None else value if isinstance(value, str) else json.dumps(value)


def _leaves(value: Any, prefix: str = "") -> dict[str, Any]:
    """`{"model.hidden.0": 256, ...}`: every leaf of nested settings under its dotted name."""
    if isinstance(value, Mapping) and value:
        items = list(value.items())
    elif isinstance(value, list) and value:
        items = list(enumerate(value))
    else:
        return {prefix: value}
    found: dict[str, Any] = {}
    for key, item in items:
        found |= _leaves(item, f"{prefix}.{key}" if prefix else str(key))
    return found


def volatile_facts(started: float, argv: Sequence[str]) -> dict[str, Any]:
    """What `run.json` records of one execution: never part of an id, and nothing refers to it."""
    import importlib.metadata
    import resource

    packages = {}
    for name in (
        "mlpipe",
        "numpy",
        "onnx",
        "onnxruntime",
        "onnxscript",
        "pyarrow",
        "pydantic",
        "scikit-learn",
        "tokenizers",
        "torch",
        "transformers",
    ):
        try:
            packages[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "start": datetime.fromtimestamp(started, UTC).isoformat(timespec="milliseconds"),
        "seconds": round(time.time() - started, 3),
        "host": platform.node(),
        "platform": platform.platform(),
        "python": platform.python_version(),
        "argv": list(argv),
        "git": _git(),
        "packages": packages,
        "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024),
    }


@functools.cache
def _git() -> dict[str, Any] | None:
    """Commit and dirtiness of the current folder's repository, or None; its index is left alone."""
    import subprocess

    try:
        commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, timeout=10, check=True).stdout.strip()
        changed = subprocess.run(
            ["git", "--no-optional-locks", "status", "--porcelain"], capture_output=True, text=True, timeout=10, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    return {"commit": commit, "dirty": bool(changed.strip())}
