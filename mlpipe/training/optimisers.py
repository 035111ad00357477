"""Optimisers and learning-rate schedules: settings, and what they build."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from mlpipe.base import Settings

if TYPE_CHECKING:
    import torch

Rate = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(ge=0, lt=1)]


class AdamW(Settings):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019), torch's fused kernel where the device has one."""

    kind: Literal["adamw"] = "adamw"
    lr: Rate = 0.001
    weight_decay: Annotated[float, Field(ge=0)] = 0.01
    betas: tuple[Share, Share] = (0.9, 0.999)

    def build(self, parameters: Iterable[torch.nn.Parameter], fused: bool) -> torch.optim.Optimizer:
        """The optimiser."""
        import torch

        return torch.optim.AdamW(parameters, lr=self.lr, weight_decay=self.weight_decay, betas=self.betas, fused=fused)


class Sgd(Settings):
    """Stochastic gradient descent with momentum."""

    kind: Literal["sgd"] = "sgd"
    lr: Rate = 0.01
    momentum: Share = 0.9
    nesterov: bool = False
    weight_decay: Annotated[float, Field(ge=0)] = 0.0

    def build(self, parameters: Iterable[torch.nn.Parameter], fused: bool) -> torch.optim.Optimizer:
        """The optimiser."""
        import torch

        return torch.optim.SGD(
            parameters, lr=self.lr, momentum=self.momentum, nesterov=self.nesterov, weight_decay=self.weight_decay, fused=fused
        )


AnyOptimiser = Annotated[AdamW | Sgd, Field(discriminator="kind")]


class Constant(Settings):
    """The same learning rate all along, after `warmup`, a share of all steps in which it rises from nothing."""

    kind: Literal["constant"] = "constant"
    warmup: Share = 0.0

    def factor(self, step: int, steps: int) -> float:
        """What the learning rate is multiplied with at `step` (from 0) of `steps`."""
        return warm(step, steps, self.warmup)


class Cosine(Settings):
    """After the warm-up, half a cosine down to `floor` of the learning rate."""

    kind: Literal["cosine"] = "cosine"
    warmup: Share = 0.0
    floor: Annotated[float, Field(ge=0, le=1)] = 0.0

    def factor(self, step: int, steps: int) -> float:
        """What the learning rate is multiplied with at `step` (from 0) of `steps`."""
        rising = round(self.warmup * steps)
        if step < rising:
            return warm(step, steps, self.warmup)
        done = (step - rising) / max(1, steps - rising)
        return self.floor + (1 - self.floor) * 0.5 * (1 + math.cos(math.pi * min(1.0, done)))


class OneCycle(Settings):
    """Up to the learning rate in the share `warmup` of all steps, then down to nearly nothing, both along cosines (Smith 2018)."""

    kind: Literal["one_cycle"] = "one_cycle"
    warmup: Annotated[float, Field(gt=0, lt=1)] = 0.3
    start: Annotated[float, Field(gt=0, le=1)] = 0.04
    end: Annotated[float, Field(gt=0, le=1)] = 0.0001

    def factor(self, step: int, steps: int) -> float:
        """What the learning rate is multiplied with at `step` (from 0) of `steps`."""
        rising = max(1, round(self.warmup * steps))
        if step < rising:
            return _cosine(self.start, 1.0, step / rising)
        return _cosine(1.0, self.end, (step - rising) / max(1, steps - rising))


AnySchedule = Annotated[Constant | Cosine | OneCycle, Field(discriminator="kind")]


def warm(step: int, steps: int, share: float) -> float:
    """Linear from 1/n to 1 in the first n = share * steps steps, then 1."""
    rising = round(share * steps)
    return (step + 1) / rising if step < rising else 1.0


def _cosine(start: float, end: float, share: float) -> float:
    return end + (start - end) * 0.5 * (1 + math.cos(math.pi * min(1.0, share)))
