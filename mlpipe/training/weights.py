"""Weights on disk (safetensors) and their digest."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import nn

from mlpipe.base import replace_file
from mlpipe.digest import tensors_digest
from mlpipe.errors import IntegrityError


def weights_of(net: nn.Module) -> dict[str, torch.Tensor]:
    """A copy of everything that a network learns or keeps, on the CPU."""
    return {name: tensor.detach().to("cpu", copy=True).contiguous() for name, tensor in net.state_dict().items()}


def digest_of(weights: Mapping[str, torch.Tensor]) -> str:
    """`tensors-v1` of weights."""
    return tensors_digest({name: tensor.detach().cpu().numpy() for name, tensor in weights.items()})


def save_weights(weights: Mapping[str, torch.Tensor], path: Path) -> None:
    """Writes weights, whole or not at all."""
    from safetensors.torch import save

    replace_file(path, save({name: tensor.contiguous() for name, tensor in weights.items()}))


def read_weights(path: Path) -> dict[str, torch.Tensor]:
    """Weights from a file. Raises IntegrityError when it is damaged or no safetensors file (a pickle is never loaded)."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        return load(path.read_bytes())
    except (SafetensorError, OSError, ValueError) as fault:
        raise IntegrityError(f"{path} is damaged or no safetensors file: {fault}", hint="run train again") from None


def load_into(net: nn.Module, weights: Mapping[str, torch.Tensor], name: str) -> None:
    """Puts weights into a network. Raises IntegrityError that names the tensor that is missing, unknown or of another shape."""
    wanted = net.state_dict()
    faults = [f"{key} is missing" for key in wanted if key not in weights] + [f"{key} is unknown" for key in weights if key not in wanted]
    faults += [
        f"{key} has the shape {list(weights[key].shape)}; the model has {list(wanted[key].shape)}"
        for key in wanted
        if key in weights and weights[key].shape != wanted[key].shape
    ]
    if faults:
        raise IntegrityError(f"{name} does not fit the model", faults=faults, hint="run train again")
    net.load_state_dict(dict(weights))
