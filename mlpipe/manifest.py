"""The record of one finished stage: what decided it, what it came from, what it wrote, what it found.

A manifest pairs names with digests; it knows nothing of disks beyond the folder it lies in. It is deterministic: no
clock, host, user, absolute path or duration. Volatile facts go to `run.json`, to which nothing refers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from mlpipe.base import json_text, read_json
from mlpipe.digest import canonical, portable, sha256_bytes, sha256_path, short, size_of
from mlpipe.errors import IntegrityError

SCHEMA = "mlpipe/manifest/v1"
T = TypeVar("T")
R = TypeVar("R")

NAME = "manifest.json"
VOLATILE = "run.json"


@dataclass(frozen=True)
class Input:
    """Something that decides a stage's result, by role and content digest. `path` is relative, for people."""

    role: str
    digest: Mapping[str, str]
    path: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """The entry in `identity.inputs`."""
        return {"role": self.role, "digest": dict(self.digest)} | ({"path": self.path} if self.path is not None else {})


@dataclass(frozen=True)
class Identity:
    """What decides whether a stage has to run."""

    stage: str
    version: int
    config: Mapping[str, Any]
    inputs: Sequence[Input]

    def as_dict(self) -> dict[str, Any]:
        """The member `identity`; floats are text, so that canonical JSON has one spelling."""
        return {
            "stage_version": self.version,
            "config": portable(dict(self.config)),
            "inputs": [item.as_dict() for item in self.inputs],
        }

    @property
    def id(self) -> str:
        """`sha256:` and the digest of canonical JSON over schema, stage and identity."""
        return id_of(self.stage, self.as_dict())


def id_of(stage: str, identity: Mapping[str, Any]) -> str:
    """A stage's id from its manifest's own members."""
    return "sha256:" + sha256_bytes(canonical({"schema": SCHEMA, "stage": stage, "identity": identity}))


@dataclass(frozen=True)
class Artifact:
    """A file or folder that a stage wrote. `content` holds digests of content beside the digest of bytes."""

    path: str
    role: str
    content: Mapping[str, str] = field(default_factory=dict)

    def as_dict(self, folder: Path) -> dict[str, Any]:
        """The entry in `outputs`, with size and digests of what lies in `folder`."""
        where = folder / self.path
        return {"path": self.path, "role": self.role, "size": size_of(where), "digest": {**sha256_path(where), **self.content}}


@dataclass(frozen=True)
class Manifest:
    """A manifest as read from or written to `folder`."""

    folder: Path
    data: Mapping[str, Any]

    @property
    def id(self) -> str:
        """The id that is written in it."""
        return str(self.data["id"])

    @property
    def stage(self) -> str:
        """The stage that wrote it."""
        return str(self.data["stage"])

    @property
    def identity(self) -> Mapping[str, Any]:
        """What decided it."""
        return dict(self.data["identity"])

    @property
    def results(self) -> Mapping[str, Any]:
        """What the stage found."""
        return dict(self.data["results"])

    @property
    def verdict(self) -> str:
        """`ok`, or `gate_failed`."""
        return str(self.data["verdict"])

    @property
    def digest(self) -> str:
        """The hex sha256 of the manifest's bytes."""
        return sha256_bytes(json_text(self.data).encode())

    def output(self, role: str) -> Mapping[str, Any]:
        """The entry of the artifact with this role. Raises IntegrityError when there is none."""
        for entry in self.data["outputs"]:
            if entry["role"] == role:
                return dict(entry)
        raise IntegrityError(f"{self.folder / NAME} lists no artifact with the role {role!r}", hint="run the stage again with --force")

    def has(self, role: str) -> bool:
        """Whether an artifact with this role was written."""
        return any(entry["role"] == role for entry in self.data["outputs"])

    def path(self, role: str) -> Path:
        """Where the artifact with this role lies."""
        return self.folder / str(self.output(role)["path"])

    def input(self, role: str, *digests: str) -> Input:
        """The artifact with this role as an input of a later stage, by the named digests (default: all of them)."""
        digest = self.output(role)["digest"]
        return Input(role, {name: digest[name] for name in digests or sorted(digest)})

    def as_parent(self) -> dict[str, str]:
        """The entry in a child's `parents`."""
        return {"stage": self.stage, "id": self.id, "manifest_sha256": self.digest, "path": f"../{self.folder.name}/{NAME}"}

    def with_parents(self, parents: Sequence[Manifest]) -> Manifest:
        """The same manifest, the parents' entries renewed."""
        return Manifest(self.folder, sealed({**self.data, "parents": [parent.as_parent() for parent in parents]}))


def compose(
    identity: Identity, parents: Sequence[Manifest], artifacts: Sequence[Artifact], folder: Path, results: Mapping[str, Any], verdict: str
) -> Manifest:
    """The manifest of a stage whose artifacts lie in `folder`."""
    data = {
        "schema": SCHEMA,
        "stage": identity.stage,
        "id": identity.id,
        "identity": identity.as_dict(),
        "parents": [parent.as_parent() for parent in parents],
        "outputs": _in_threads(lambda artifact: artifact.as_dict(folder), sorted(artifacts, key=lambda a: a.path)),
        "results": dict(results),
        "verdict": verdict,
    }
    return Manifest(folder, sealed(json.loads(json_text(data))))


def _in_threads(function: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """`function` of each item, two at a time: hashing lets go of the interpreter."""
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(function, items))


def seal_of(data: Mapping[str, Any]) -> str:
    """The sha256 of canonical JSON over every member but `seal`: an edit shows even where no child refers to the manifest."""
    return sha256_bytes(canonical(portable({key: value for key, value in data.items() if key != "seal"})))


def sealed(data: Mapping[str, Any]) -> dict[str, Any]:
    """`data` with the member `seal` that fits it."""
    return {**data, "seal": seal_of(data)}


def load(folder: Path, path: Path | None = None) -> Manifest | None:
    """The manifest in `folder`, or None when there is none.

    Raises IntegrityError when it is not JSON, of an unknown schema, or lacks a member.
    """
    path = path or folder / NAME
    try:
        data = read_json(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, OSError) as fault:
        raise IntegrityError(f"{path} cannot be read: {fault}", hint="run the stage again with --force") from None
    members = {"schema", "stage", "id", "identity", "parents", "outputs", "results", "verdict"}
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        found = data.get("schema") if isinstance(data, dict) else type(data).__name__
        raise IntegrityError(f"{path} has the schema {found!r}; this mlpipe reads {SCHEMA!r}", hint="read it with the mlpipe that wrote it")
    if missing := sorted(members - set(data)):
        raise IntegrityError(f"{path} lacks {', '.join(missing)}", hint="run the stage again with --force")
    return Manifest(folder, data)


def edited(manifest: Manifest) -> str | None:
    """How a manifest contradicts itself, or None: its id must fit its identity, its seal the rest."""
    try:
        if id_of(manifest.stage, manifest.identity) != manifest.id:
            return f"{NAME} was edited: its id does not fit its identity"
        if manifest.data.get("seal") != seal_of(manifest.data):
            return f"{NAME} was edited: its seal does not fit what it says"
    except ValueError as fault:
        return f"{NAME} was edited: {fault}"
    return None


def broken_outputs(manifest: Manifest, folder: Path | None = None) -> list[str]:
    """What does not hold among the artifacts of a manifest: missing, of another size, changed bytes."""
    where = folder or manifest.folder
    return [fault for faults in _in_threads(lambda entry: _broken(where, entry), manifest.data["outputs"]) for fault in faults]


def _broken(folder: Path, entry: Mapping[str, Any]) -> list[str]:
    """What does not hold of one artifact."""
    path = folder / entry["path"]
    if not path.exists():
        return [f"{entry['path']} is missing"]
    if (size := size_of(path)) != entry["size"]:
        return [f"{entry['path']} has {size} bytes; the manifest says {entry['size']}"]
    written = entry["digest"]
    return [
        f"{entry['path']} has changed: {short(digest)}; the manifest says {short(str(written.get(name)))}"
        for name, digest in sha256_path(path).items()
        if written.get(name) != digest
    ]


def extra_files(manifest: Manifest) -> list[str]:
    """Files in the folder that the manifest does not list."""
    known = {entry["path"] for entry in manifest.data["outputs"]} | {NAME, VOLATILE}
    found = []
    for file in sorted(p for p in manifest.folder.rglob("*") if p.is_file()):
        path = file.relative_to(manifest.folder).as_posix()
        if path not in known and not any(path.startswith(f"{name}/") for name in known):
            found.append(path)
    return found
