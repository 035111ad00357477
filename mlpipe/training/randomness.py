"""Stateless randomness: every draw is a function of the seed and of where it happens, so that a resumed run is the same run."""

from __future__ import annotations

import hashlib

import torch


def derived(seed: int, *where: str | int) -> int:
    """A 63-bit number for a place: the order of an epoch, the dropout of a step, the initial weights."""
    text = ":".join(map(str, ("mlpipe-random-v1", seed, *where)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def seed_all(value: int) -> None:
    """Seeds torch's generators, of the CPU and of an accelerator where there is one."""
    torch.default_generator.manual_seed(value)
    if torch.accelerator.is_available():
        torch.manual_seed(value)
