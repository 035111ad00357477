"""Host steps between stages: what a schema says of them, and the files that they need, from folder to folder."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from mlpipe.columns import Column
from mlpipe.digest import sha256_file
from mlpipe.features.subwords import NAME, FittedTokens
from mlpipe.features.tokeniser import FOLDER, STEP, VERSION, Tokeniser, step_settings, tokenisers
from mlpipe.manifest import Artifact, Manifest
from mlpipe.schema import HostStep, Schema

ROLE = "tokeniser"
TIME = "time text to seconds since 1970-01-01T00:00:00"


def steps_of(columns: Iterable[Column], features: Iterable[Any]) -> tuple[HostStep, ...]:
    """What happens to columns before the graph: times become seconds, and texts ids where the feature says so."""
    tokens = {feature.column: feature for feature in features if isinstance(feature, FittedTokens)}
    names = _names(tokens.values())
    found = []
    for column in columns:
        if column.type == "timestamp":
            found.append(HostStep(column=column.name, step=TIME, version=1, settings={"format": column.format or "iso"}))
        if state := tokens.get(column.name):
            settings = step_settings(names[state.digest], state.digest, state.length, state.pad)
            found.append(HostStep(column=column.name, step=STEP, version=VERSION, settings=settings))
    return tuple(found)


def _names(features: Iterable[FittedTokens]) -> dict[str, str]:
    """A file name for each tokeniser: `tokenizer.json`, `tokenizer-2.json`, ..."""
    digests = dict.fromkeys(feature.digest for feature in features)
    return {digest: NAME if not i else f"{Path(NAME).stem}-{i + 1}.json" for i, digest in enumerate(digests)}


def write_tokenisers(features: Iterable[FittedTokens], files: Sequence[tuple[str, Path]], out: Path) -> list[Artifact]:
    """Copies of the files that the features' tokenisers came from; nothing when no feature has one."""
    names = _names(features)
    if not names:
        return []
    (out / FOLDER).mkdir()
    for _, path in files:
        if name := names.get(sha256_file(path)):
            shutil.copyfile(path, out / FOLDER / name)
    return [Artifact(FOLDER, ROLE)]


def copy_tokenisers(prepare: Manifest, out: Path) -> list[Artifact]:
    """The same files for an export."""
    if not prepare.has(ROLE):
        return []
    shutil.copytree(prepare.path(ROLE), out / FOLDER, copy_function=shutil.copyfile)
    return [Artifact(FOLDER, ROLE)]


def steps_for(schema: Schema, folder: Path) -> dict[str, Tokeniser]:
    """The steps that turn texts into ids, by column; their files lie in `folder`. Raises what `tokenisers` does."""
    return tokenisers([step.model_dump() for step in schema.host_steps], folder)
