"""Checkpoints: one safetensors file each, tensors and plain data only, whole or not there.

A file holds the network (`net/...`), the optimiser (`optimiser/<parameter>/<name>`), the best weights so far (`best/...`)
and, as JSON text in its header, where the run stands. Its content digest is in the header too: a changed byte shows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from mlpipe.base import machine_faults, replace_file
from mlpipe.errors import IntegrityError
from mlpipe.training.weights import digest_of

KEPT = 2


@dataclass(frozen=True)
class Checkpoint:
    """Where a run stands: tensors by prefixed name, and plain facts (epoch, step, history, ...)."""

    tensors: Mapping[str, torch.Tensor]
    facts: Mapping[str, Any]

    def part(self, prefix: str) -> dict[str, torch.Tensor]:
        """The tensors below a prefix, without it."""
        return {name.removeprefix(f"{prefix}/"): tensor for name, tensor in self.tensors.items() if name.startswith(f"{prefix}/")}


def save_checkpoint(folder: Path, checkpoint: Checkpoint) -> Path:
    """Writes `<epoch>-<step>.safetensors` and removes all but the newest two. Raises MachineError when the disk refuses."""
    from safetensors.torch import save

    facts = checkpoint.facts
    path = folder / f"{facts['epoch']:06d}-{facts['step']:08d}.safetensors"
    header = {"facts": json.dumps(facts, sort_keys=True), "digest": digest_of(checkpoint.tensors)}
    with machine_faults(path):
        folder.mkdir(parents=True, exist_ok=True)
    replace_file(path, save({name: tensor.contiguous() for name, tensor in checkpoint.tensors.items()}, metadata=header))
    for old in _files(folder)[:-KEPT]:
        old.unlink(missing_ok=True)
    return path


def newest_checkpoint(folder: Path) -> Checkpoint | None:
    """The newest checkpoint, or None when there is none.

    Raises IntegrityError when it is damaged; the message names the newest one that is whole.
    """
    files = _files(folder)
    if not files:
        return None
    try:
        return read_checkpoint(files[-1])
    except IntegrityError as fault:
        good = next((file for file in reversed(files[:-1]) if _whole(file)), None)
        told = f"the newest good one is {good}: remove the damaged file to resume from it" if good else "there is no other one"
        raise IntegrityError(fault.message, hint=f"{told}, or begin anew with --fresh") from None


def read_checkpoint(path: Path) -> Checkpoint:
    """One checkpoint. Raises IntegrityError when it is damaged or no safetensors file; nothing in it is ever executed."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
            header = file.metadata() or {}
        facts = json.loads(header["facts"])
    except (SafetensorError, OSError, ValueError, KeyError) as fault:
        raise IntegrityError(f"the checkpoint {path} is damaged or none of ours: {fault}") from None
    if header.get("digest") != digest_of(tensors):
        raise IntegrityError(f"the checkpoint {path} is damaged: its content has changed since it was written")
    return Checkpoint(tensors, facts)


def _whole(path: Path) -> bool:
    try:
        read_checkpoint(path)
    except IntegrityError:
        return False
    return True


def _files(folder: Path) -> list[Path]:
    """Checkpoints from old to new, whatever their content; other files there are taken for damaged ones, not passed over."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".") and path.suffix != ".json")
