"""Rows per second of mlpipe's training loop beside a plain hand-written one: the same network, one thread, in one process.

The hand-written loop is what one writes without thinking of speed: an Embedding per column, AdamW as it comes, a
shuffled index per epoch. Both have the same layers and widths. Prints JSON.
"""

from __future__ import annotations

import itertools
import json
import sys
import time

import torch
from torch import nn
from torch.nn import functional

from mlpipe.models.mlp import Mlp
from mlpipe.schema import Tensors
from mlpipe.tasks.classification import FittedClassification
from mlpipe.training.loop import Recipe, Run
from mlpipe.training.optimisers import AdamW, Constant

ROWS, NUMERIC, CARDINALITIES, WIDTH, HIDDEN = 32_561, 6, (9, 18, 9, 17, 8, 7, 4, 44), 16, (256, 256)


class Plain(nn.Module):
    """An Embedding per column, joined with the numbers, two hidden layers."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList([nn.Embedding(size, WIDTH) for size in CARDINALITIES])
        sizes = [NUMERIC + WIDTH * len(CARDINALITIES), *HIDDEN]
        layers: list[nn.Module] = []
        for before, after in itertools.pairwise(sizes):
            layers += [nn.Linear(before, after), nn.ReLU(), nn.Dropout(0.1)]
        self.layers = nn.Sequential(*layers, nn.Linear(sizes[-1], 1))

    def forward(self, numeric: torch.Tensor, category: torch.Tensor) -> torch.Tensor:
        parts = [numeric, *(table(category[:, i]) for i, table in enumerate(self.tables))]
        return self.layers(torch.cat(parts, 1)).squeeze(1)


def plain_epoch(
    net: Plain, optimiser: torch.optim.Optimizer, numeric: torch.Tensor, category: torch.Tensor, y: torch.Tensor, size: int
) -> None:
    net.train()
    for index in torch.randperm(len(y)).split(size):
        loss = functional.binary_cross_entropy_with_logits(net(numeric[index], category[index]), y[index])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    numeric = torch.randn(ROWS, NUMERIC)
    category = torch.stack([torch.randint(0, size, (ROWS,)) for size in CARDINALITIES], 1)
    y = (numeric[:, 0] > 0).long()
    tensors = Tensors(numeric=tuple("abcdef"), category=tuple("ghijklmn"), cardinalities=CARDINALITIES)
    task = FittedClassification(target="y", classes=("no", "yes"), counts=(1, 1))
    results = {}
    for size in (256, 1024):
        ours_net = Mlp(hidden=HIDDEN, dropout=0.1, one_hot_up_to=0, category_width=WIDTH).build(tensors, 1, {})
        recipe = Recipe(AdamW(lr=0.001), Constant(), 1000, size, 0)
        ours = Run(ours_net, task.loss, {"numeric": numeric, "category": category, "target": y}, recipe, torch.device("cpu")).epochs()
        plain = Plain()
        optimiser = torch.optim.AdamW(plain.parameters(), lr=0.001, weight_decay=0.01)
        seconds: dict[str, list[float]] = {"mlpipe": [], "plain": []}
        for turn in range(int(sys.argv[1]) if len(sys.argv) > 1 else 6):
            for name in ("mlpipe", "plain"):
                started = time.perf_counter()
                if name == "mlpipe":
                    next(ours)
                else:
                    plain_epoch(plain, optimiser, numeric, category, y.float(), size)
                if turn:
                    seconds[name].append(time.perf_counter() - started)
        results[size] = {name: ROWS / min(times) for name, times in seconds.items()}
    print(json.dumps(results))


if __name__ == "__main__":
    main()
