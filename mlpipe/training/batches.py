"""Index batches over whole tensors: never row by row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import torch

from mlpipe.training.randomness import derived

Tensors = dict[str, torch.Tensor]


def as_torch(arrays: Mapping[str, np.ndarray], device: torch.device) -> Tensors:
    """Encoded arrays as tensors: mapped files stay mapped on the CPU, and are copied to an accelerator."""
    found = {}
    for name, array in arrays.items():
        if not array.flags.writeable:  # torch warns of read-only memory; these tensors are only read
            import warnings

            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tensor = torch.from_numpy(array)
        else:
            tensor = torch.from_numpy(array)
        found[name] = tensor if device.type == "cpu" else tensor.to(device)
    return found


def epoch_order(rows: int, seed: int, epoch: int) -> torch.Tensor:
    """int64 [rows]: the order of an epoch, a function of seed and epoch alone."""
    generator = torch.Generator().manual_seed(derived(seed, "order", epoch))
    return torch.randperm(rows, generator=generator)


def batch_bounds(rows: int, size: int) -> list[tuple[int, int]]:
    """Where batches begin and end. A last batch of one row joins the one before: batch normalisation cannot do with one."""
    bounds = [(start, min(start + size, rows)) for start in range(0, rows, size)]
    if len(bounds) > 1 and bounds[-1][1] - bounds[-1][0] == 1:
        bounds[-2:] = [(bounds[-2][0], rows)]
    return bounds


def taken(tensors: Mapping[str, torch.Tensor], index: torch.Tensor) -> Tensors:
    """The rows of a batch, `[B, ...]` each."""
    return {name: _wide(tensor.index_select(0, index)) for name, tensor in tensors.items()}


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    """Codes lie on disk as int32, half the size; networks take int64."""
    return tensor.long() if tensor.dtype == torch.int32 else tensor


def in_order(tensors: Mapping[str, torch.Tensor], size: int) -> Iterator[Tensors]:
    """Batches as rows stand, for evaluation."""
    rows = next(iter(tensors.values())).shape[0]
    for start in range(0, rows, size):
        yield {name: _wide(tensor[start : start + size]) for name, tensor in tensors.items()}
