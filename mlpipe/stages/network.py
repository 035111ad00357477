"""The trained network as later stages find it: settings in model.json, weights beside it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import TypeAdapter

from mlpipe.base import read_json
from mlpipe.errors import IntegrityError, SpecError
from mlpipe.features.graph import CODES
from mlpipe.manifest import Manifest
from mlpipe.models import AnyModel
from mlpipe.schema import Schema
from mlpipe.training.randomness import derived, seed_all
from mlpipe.training.weights import load_into, read_weights

if TYPE_CHECKING:
    import torch
    from torch import nn


def build_net(model: Any, schema: Schema, arguments: Mapping[str, Any], seed: int) -> nn.Module:
    """A new network, its weights a function of the seed. Raises SpecError when it does not give [B, outputs]."""
    import torch

    seed_all(derived(seed, "weights"))
    random.seed(derived(seed, "weights"))  # a user's module may draw from these, too: the same in every process
    np.random.seed(derived(seed, "weights") % 2**32)
    net: nn.Module = model.build(schema.tensors, schema.task.outputs, arguments)
    sample: dict[str, torch.Tensor] = {}
    for name in schema.tensors.present:
        sample[name] = torch.zeros(3, schema.tensors.width(name), dtype=torch.int64 if name in CODES else torch.float32)
    net.eval()
    with torch.no_grad():
        given = net(**sample)
    net.train()
    wanted = f"it must give float32 [rows, {schema.task.outputs}]"
    if not isinstance(given, torch.Tensor):
        raise SpecError(f"the model {model.kind!r} gives a {type(given).__name__}, not a tensor", hint=wanted)
    if list(given.shape) != [3, schema.task.outputs]:
        raise SpecError(f"the model {model.kind!r} gives {list(given.shape)} for 3 rows", hint=wanted)
    if given.dtype != torch.float32:
        raise SpecError(f"the model {model.kind!r} gives {str(given.dtype).removeprefix('torch.')}", hint=wanted)
    if not any(parameter.requires_grad for parameter in net.parameters()):
        raise SpecError(f"the model {model.kind!r} has no parameters to train")
    return net


def load_net(train: Manifest, schema: Schema, base: Path) -> nn.Module:
    """The trained network with frozen weights, in evaluation mode on the CPU. Raises IntegrityError when its files do not fit."""
    try:
        facts = read_json(train.path("model"))
        model = TypeAdapter[Any](AnyModel).validate_python(facts["model"]).resolved_against(base)
    except (OSError, ValueError, KeyError) as fault:
        raise IntegrityError(f"{train.path('model')} is no model: {fault}", hint="run train again") from None
    net = build_net(model, schema, facts["arguments"], 0)
    load_into(net, read_weights(train.path("weights")), train.path("weights").name)
    net.eval()
    net.requires_grad_(False)
    return net
