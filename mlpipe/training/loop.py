"""The training loop: a generator that knows how to take steps. Its caller knows when to stop, keep and save.

Letters: N train rows, B rows of a batch.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from mlpipe.errors import TrainingError
from mlpipe.training.batches import Tensors, batch_bounds, batches, epoch_order, in_order, nothing
from mlpipe.training.optimisers import AdamW, Constant, Cosine, OneCycle, Sgd
from mlpipe.training.randomness import derived, seed_all

Loss = Callable[[torch.Tensor, torch.Tensor, torch.Tensor | None], torch.Tensor]
CHECK_EVERY = 50  # steps between looks at the loss on an accelerator, where each look waits for it


@dataclass(frozen=True)
class Recipe:
    """How to train, in plain values."""

    optimiser: AdamW | Sgd
    schedule: Constant | Cosine | OneCycle
    epochs: int
    batch_size: int
    seed: int
    clip_norm: float | None = None
    accumulate: int = 1
    precision: str = "32"
    class_weights: torch.Tensor | None = None


@dataclass(frozen=True)
class Epoch:
    """What happened in one epoch, numbered from 1."""

    number: int
    train_loss: float
    lr: float
    rows: int


@dataclass
class Position:
    """Where a run stands: `epoch` epochs are done, and `step` batches of the next, whose losses sum up to `loss_sum` over `loss_rows`."""

    epoch: int = 0
    step: int = 0
    loss_sum: float = 0.0
    loss_rows: int = 0


@dataclass
class Run:
    """A training under way."""

    net: nn.Module
    loss: Loss
    train: Tensors
    recipe: Recipe
    device: torch.device
    position: Position = field(default_factory=Position)
    on_step: Callable[[], None] = lambda: None
    release: Callable[[], None] = nothing  # lets go of the pages of mapped train tensors

    def __post_init__(self) -> None:
        fused = self.device.type in ("cpu", "cuda", "mps", "xpu")
        self.optimiser = self.recipe.optimiser.build(self.net.parameters(), fused)
        self.rows = int(self.train["target"].shape[0])
        self.bounds = batch_bounds(self.rows, self.recipe.batch_size)
        self.updates = math.ceil(len(self.bounds) / self.recipe.accumulate)
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=self.recipe.precision == "16")

    def autocast(self) -> Any:
        """The context of forward passes at the recipe's precision."""
        return autocast(self.device, self.recipe.precision)

    def epochs(self) -> Iterator[Epoch]:
        """Trains from the position on, one epoch at a time. Raises TrainingError at the first loss that is not finite."""
        while self.position.epoch < self.recipe.epochs:
            yield self._epoch()

    def _epoch(self) -> Epoch:
        recipe, position, net = self.recipe, self.position, self.net
        number = position.epoch + 1
        order = epoch_order(self.rows, recipe.seed, number).to(self.device)
        net.train()
        losses: list[tuple[int, torch.Tensor]] = []
        rate = recipe.optimiser.lr
        gathered = batches(self.train, order, self.bounds[position.step :], self.release)
        for step, batch in enumerate(gathered, position.step):
            (start, end), target = self.bounds[step], batch.pop("target")
            seed_all(derived(recipe.seed, "step", number, step))
            group = step // recipe.accumulate
            first, last = group * recipe.accumulate, min((group + 1) * recipe.accumulate, len(self.bounds)) - 1
            rate = recipe.optimiser.lr * recipe.schedule.factor(position.epoch * self.updates + group, recipe.epochs * self.updates)
            for settings in self.optimiser.param_groups:
                settings["lr"] = rate
            with self.autocast():
                outputs = net(**batch)
            loss = self.loss(outputs.float(), target, recipe.class_weights)
            losses.append((step, loss.detach()))
            if step == first:
                self.optimiser.zero_grad(set_to_none=True)
            # the mean over the accumulated rows, whatever the size of each batch
            share = 1.0 if first == last else (end - start) / (self.bounds[last][1] - self.bounds[first][0])
            self.scaler.scale(loss * share if share != 1.0 else loss).backward()  # type: ignore[no-untyped-call]
            if self.device.type == "cpu" or len(losses) >= CHECK_EVERY:
                self._settle(losses, number)
            if step == last:
                if recipe.clip_norm is not None:
                    self.scaler.unscale_(self.optimiser)
                    nn.utils.clip_grad_norm_(net.parameters(), recipe.clip_norm)
                self.scaler.step(self.optimiser)
                self.scaler.update()
                position.step = step + 1
                self._settle(losses, number)
                self.on_step()
        self._settle(losses, number)
        mean = position.loss_sum / max(1, position.loss_rows)
        position.epoch, position.step, position.loss_sum, position.loss_rows = number, 0, 0.0, 0
        return Epoch(number, mean, rate, self.rows)

    def _settle(self, losses: list[tuple[int, torch.Tensor]], number: int) -> None:
        """Adds the losses to the epoch's sum. Raises TrainingError for one that is not finite."""
        for step, loss in losses:
            value = loss.item()
            if not math.isfinite(value):
                raise TrainingError(
                    f"the loss became {value} (non-finite) in epoch {number}, step {step + 1}",
                    hint="a lower train.optimiser.lr, train.clip_norm, or precision 32; nothing of this run is kept as a result",
                )
            start, end = self.bounds[step]
            self.position.loss_sum += value * (end - start)
            self.position.loss_rows += end - start
        losses.clear()

    def state(self) -> dict[str, torch.Tensor]:
        """The network and the optimiser as named tensors, for a checkpoint."""
        tensors = {f"net/{name}": tensor.detach().to("cpu", copy=True) for name, tensor in self.net.state_dict().items()}
        for number, values in self.optimiser.state_dict()["state"].items():
            for name, value in values.items():
                if value is not None:
                    tensors[f"optimiser/{number}/{name}"] = torch.as_tensor(value).detach().to("cpu", copy=True)
        if self.recipe.precision == "16":
            for name, value in self.scaler.state_dict().items():
                tensors[f"scaler/{name}"] = torch.tensor(value, dtype=torch.float64)
        return tensors

    def restore(self, net: Mapping[str, torch.Tensor], optimiser: Mapping[str, torch.Tensor], scaler: Mapping[str, torch.Tensor]) -> None:
        """Puts a checkpoint's tensors back."""
        self.net.load_state_dict(dict(net))
        whole = self.optimiser.state_dict()
        state: dict[int, dict[str, torch.Tensor]] = {}
        for key, value in optimiser.items():
            number, _, name = key.partition("/")
            state.setdefault(int(number), {})[name] = value
        whole["state"] = state
        self.optimiser.load_state_dict(whole)
        if scaler:
            self.scaler.load_state_dict({name: value.item() for name, value in scaler.items()})


def autocast(device: torch.device, precision: str) -> Any:
    """Mixed precision, or nothing for 32 bits."""
    if precision == "32":
        return contextlib.nullcontext()
    return torch.autocast(device.type, dtype=torch.bfloat16 if precision == "bf16" else torch.float16)


def outputs_of(net: nn.Module, inputs: Tensors, batch_size: int, release: Callable[[], None] = nothing) -> torch.Tensor:
    """Network outputs of all rows, float32 [N, outputs] on the CPU: evaluation mode, no gradients, in batches.

    `release` lets go of the pages of mapped inputs.
    """
    training = net.training
    net.eval()
    try:
        with torch.inference_mode():
            found, at = torch.empty(0), 0
            for batch in in_order(inputs, batch_size, release):
                part = net(**batch).float().cpu()
                if not at:
                    found = torch.empty((next(iter(inputs.values())).shape[0], *part.shape[1:]))
                found[at : at + len(part)] = part
                at += len(part)
            return found
    finally:
        net.train(training)


def pick_device(wanted: str) -> torch.device:
    """The device asked for; `auto` is the accelerator where there is one. Raises TrainingError when it is not there."""
    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    if wanted == "auto":
        return torch.device(accelerator.type) if accelerator else torch.device("cpu")
    if wanted != "cpu" and (accelerator is None or accelerator.type != wanted):
        there = f"only {accelerator.type} and cpu" if accelerator else "only the cpu"
        raise TrainingError(f"device {wanted!r} is not there ({there})", hint="set train.device or --device to auto or cpu")
    return torch.device(wanted)
