"""`mlpipe verify`: walks from a finished stage to everything it came from and names the first link that does not hold."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mlpipe import manifest as manifests
from mlpipe.digest import sha256_file, short
from mlpipe.errors import IntegrityError, NotReadyError
from mlpipe.manifest import NAME, Manifest
from mlpipe.run import STAGES


@dataclass
class Verified:
    """What was checked: lines for people, and the stages by id."""

    lines: list[str] = field(default_factory=list)
    stages: dict[str, str] = field(default_factory=dict)


def verify(folder: Path, sources: Path | None = None) -> Verified:
    """Checks a stage's folder, or every stage of a run folder. `sources` is the pipeline file's folder: original files are hashed too.

    Raises IntegrityError that names the first broken link, NotReadyError when nothing is there to check.
    """
    found = Verified()
    if (folder / NAME).is_file():
        _walk(folder, found, sources)
    else:
        there = [folder / name for name in STAGES if (folder / name).is_dir()]
        if (folder / "schema.json").is_file() or len(without := [p for p in there if not (p / NAME).is_file()]):
            lost = folder if (folder / "schema.json").is_file() else without[0]
            raise IntegrityError(f"{lost} has no {NAME}", hint="run the stage again")
        stages = there
        if not stages:
            raise NotReadyError(
                f"there is no {NAME} in {folder}, nor in a stage below it", hint="name a run folder (runs/NAME) or a stage's folder"
            )
        for stage in reversed(stages):
            if stage.name not in found.stages:
                _walk(stage, found, sources)
    return found


def _walk(folder: Path, found: Verified, sources: Path | None) -> None:
    manifest = _loaded(folder)
    _check_whole(manifest, f"{folder / NAME}")
    if faults := manifests.broken_outputs(manifest):
        raise _broken(folder, faults)
    if extra := manifests.extra_files(manifest):
        raise _broken(folder, [f"{name} is not listed in the manifest" for name in extra])
    found.stages[manifest.stage] = manifest.id
    found.lines.append(f"{manifest.stage} {short(manifest.id)}: {len(manifest.data['outputs'])} artifacts hold")
    if manifest.stage == "prepare" and sources is not None:
        _check_sources(manifest, sources, found)
    for entry in manifest.data["parents"]:
        _check_parent(manifest, entry, found, sources)


def _check_parent(child: Manifest, entry: dict[str, Any], found: Verified, sources: Path | None) -> None:
    """A parent beside the child, or, for a model shipped alone, its copy in lineage/."""
    stage = entry["stage"]
    beside = Path(os.path.normpath(child.folder / entry["path"])).parent
    copy = child.folder / "lineage" / f"{stage}.json"
    alone = not beside.exists()
    if not alone and not (beside / NAME).is_file():
        raise IntegrityError(f"{beside} has no {NAME}", hint=f"run mlpipe {stage} again")
    if alone and not copy.is_file():
        raise IntegrityError(
            f"{child.stage}: its parent {stage} is missing: there is no {beside / NAME}", hint=f"put it back, or run mlpipe {stage} again"
        )
    path = copy if alone else beside / NAME
    parent = _loaded(beside, path)
    digest = sha256_file(path)
    if digest != entry["manifest_sha256"]:
        raise IntegrityError(
            f"{child.stage} was made from another {stage}: {path} is {short(digest)}, recorded is {short(entry['manifest_sha256'])}",
            hint="the parent was edited or made again; run the later stages again",
        )
    _check_whole(parent, str(path))
    if parent.id != entry["id"]:
        raise IntegrityError(f"{child.stage}: its parent {stage} has the id {short(parent.id)}, recorded is {short(entry['id'])}")
    for fault in _lacking(child, parent):
        raise IntegrityError(f"{child.stage} read something else than {stage} holds: {fault}", hint="run the later stages again")
    if alone:
        if stage not in found.stages:
            found.stages[stage] = parent.id
            found.lines.append(f"{stage} {short(parent.id)}: its manifest holds (checked against lineage/; its artifacts are not here)")
            if stage == "prepare" and sources is not None:
                _check_sources(parent, sources, found)
            for grand in parent.data["parents"]:
                _check_parent(Manifest(child.folder, {**parent.data}), grand, found, sources)
    elif stage not in found.stages:
        _walk(beside, found, sources)


def _lacking(child: Manifest, parent: Manifest) -> Iterator[str]:
    """Inputs of the child that carry a role of the parent with another digest."""
    outputs = {entry["role"]: entry["digest"] for entry in parent.data["outputs"]}
    for entry in child.identity["inputs"]:
        digests = outputs.get(entry["role"])
        if digests is None:
            continue
        for name, digest in entry["digest"].items():
            if digests.get(name) != digest:
                yield f"{entry['role']} ({name} {short(digest)}, the parent has {short(str(digests.get(name)))})"


def _check_sources(manifest: Manifest, base: Path, found: Verified) -> None:
    """Hashes the original files anew; their paths are relative to the pipeline file's folder."""
    from mlpipe.base import expand
    from mlpipe.sources.remote import is_far

    count = 0
    for entry in manifest.identity["inputs"]:
        if "sha256" not in entry["digest"]:
            found.lines.append(f"source: {entry['path']} came from a database, which is not asked again")
            continue
        if is_far(expand(entry["path"])):
            found.lines.append(f"source: {entry['path']} lies elsewhere and is not fetched again")
            continue
        path = base / expand(entry["path"])
        if not path.is_file():
            raise IntegrityError(
                f"the source {entry['path']} is not there (relative to {base})", hint="--sources takes the pipeline file's folder"
            )
        digest = sha256_file(path)
        if digest != entry["digest"]["sha256"]:
            raise IntegrityError(f"the source {entry['path']} has changed: {short(digest)}, recorded is {short(entry['digest']['sha256'])}")
        count += 1
    if count:
        found.lines.append(f"sources: {count} file{'s' * (count != 1)} hold{'s' * (count == 1)}")


def _loaded(folder: Path, path: Path | None = None) -> Manifest:
    manifest = manifests.load(folder, path)
    if manifest is None:
        raise NotReadyError(f"there is no {path or folder / NAME}")
    return manifest


def _check_whole(manifest: Manifest, path: str) -> None:
    if fault := manifests.edited(manifest):
        raise IntegrityError(f"{path}: {fault}", hint="run the stage again with --force")


def _broken(folder: Path, faults: list[str]) -> IntegrityError:
    return IntegrityError(f"{folder} is not what its manifest says", faults=faults, hint="run the stage again, or put the files back")
