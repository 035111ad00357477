"""Index batches over whole tensors: never row by row."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import torch

from mlpipe.training.randomness import derived

Tensors = dict[str, torch.Tensor]

RESIDENT = 96 << 20  # bytes of mapped tensors that may stay in memory: larger ones are gathered window by window
WINDOW = 32 << 20  # bytes of the rows that are gathered at once from such tensors


def nothing() -> None:
    """What is done to let go of tensors that are not mapped."""


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


def row_bytes(tensors: Mapping[str, torch.Tensor]) -> int:
    """What one row of all tensors takes."""
    return max(1, sum(tensor.element_size() * tensor[:1].numel() for tensor in tensors.values()))


def batches(
    tensors: Mapping[str, torch.Tensor], order: torch.Tensor, bounds: Sequence[tuple[int, int]], release: Callable[[], None] = nothing
) -> Iterator[Tensors]:
    """The batches `bounds` (as `batch_bounds` cuts them, or the last ones of those) of the rows in `order`, `[B, ...]` each.

    Tensors up to `RESIDENT` bytes are indexed batch by batch. Rows picked at random from a larger mapped file would soon have
    all of it in memory: there the rows of many batches are gathered at once, in the order of the file, and `release` is called
    whenever `RESIDENT` bytes of it were walked through. The batches are the same.
    """
    size = row_bytes(tensors)
    if size * len(order) <= RESIDENT or order.device.type != "cpu":
        for start, end in bounds:
            yield taken(tensors, order[start:end])
        return
    window = max(1, WINDOW // size)
    first = 0
    while first < len(bounds):
        last = first + 1
        while last < len(bounds) and bounds[last][1] - bounds[first][0] <= window:
            last += 1
        begin = bounds[first][0]
        held = _gathered(tensors, order[begin : bounds[last - 1][1]], max(1, RESIDENT // size), release)
        for start, end in bounds[first:last]:
            yield {name: _wide(tensor[start - begin : end - begin]) for name, tensor in held.items()}
        first = last


def _gathered(tensors: Mapping[str, torch.Tensor], index: torch.Tensor, span: int, release: Callable[[], None]) -> Tensors:
    """Rows of mapped tensors in the order of `index`, read in the order of the file, at most `span` rows of it between two releases."""
    ordered, places = index.sort()
    found = {name: torch.empty((len(index), *tensor.shape[1:]), dtype=tensor.dtype) for name, tensor in tensors.items()}
    edges = torch.arange(0, int(ordered[-1]) + 1 + span, span)
    cuts = torch.searchsorted(ordered, edges).tolist()
    for start, end in itertools.pairwise(cuts):
        if start < end:
            for name, tensor in tensors.items():
                found[name][places[start:end]] = tensor.index_select(0, ordered[start:end])
        release()
    return found


def taken(tensors: Mapping[str, torch.Tensor], index: torch.Tensor) -> Tensors:
    """The rows of a batch, `[B, ...]` each."""
    return {name: _wide(tensor.index_select(0, index)) for name, tensor in tensors.items()}


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    """Codes lie on disk as int32, half the size; networks take int64."""
    return tensor.long() if tensor.dtype == torch.int32 else tensor


def in_order(tensors: Mapping[str, torch.Tensor], size: int, release: Callable[[], None] = nothing) -> Iterator[Tensors]:
    """Batches of up to `size` rows as they stand, for evaluation, each of `WINDOW` bytes at most: long texts make wide rows.

    `release` is called after every `WINDOW` bytes or so.
    """
    rows = next(iter(tensors.values())).shape[0]
    size = max(1, min(size, WINDOW // row_bytes(tensors)))
    every = max(1, WINDOW // (row_bytes(tensors) * size))
    for number, start in enumerate(range(0, rows, size), 1):
        yield {name: _wide(tensor[start : start + size]) for name, tensor in tensors.items()}
        if number % every == 0:
            release()
    release()
