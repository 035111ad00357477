"""The training loop: a resumed run is the same run, odd batches, accumulation, schedules, losses that are not finite."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import nn

from mlpipe.errors import TrainingError
from mlpipe.tasks.classification import FittedClassification
from mlpipe.training.batches import batch_bounds, epoch_order
from mlpipe.training.loop import Position, Recipe, Run, outputs_of, pick_device
from mlpipe.training.optimisers import AdamW, Constant, Cosine, OneCycle, Sgd
from mlpipe.training.randomness import derived, seed_all
from mlpipe.training.weights import digest_of, weights_of

TASK = FittedClassification(target="y", classes=("no", "yes"), counts=(50, 50))


def net(batch_norm: bool = False) -> nn.Module:
    """A small network with dropout, its weights always the same."""
    seed_all(1)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layers = [nn.Linear(3, 8), *([nn.BatchNorm1d(8)] if batch_norm else []), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 1)]
            self.layers = nn.Sequential(*layers)

        def forward(self, numeric: torch.Tensor) -> torch.Tensor:
            return self.layers(numeric)

    return Net()


def data(rows: int = 101) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(5)
    numeric = torch.randn(rows, 3, generator=generator)
    return {"numeric": numeric, "target": (numeric[:, 0] > 0).long()}


def run(recipe: Recipe, rows: int = 101, batch_norm: bool = False) -> Run:
    return Run(net(batch_norm), TASK.loss, data(rows), recipe, torch.device("cpu"))


def recipe(**changes: object) -> Recipe:
    settings: dict[str, object] = {"optimiser": AdamW(lr=0.01), "schedule": Cosine(warmup=0.1), "epochs": 4, "batch_size": 16, "seed": 7}
    return Recipe(**{**settings, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize("optimiser", [AdamW(lr=0.01), Sgd(lr=0.05, momentum=0.9)])
@pytest.mark.parametrize("accumulate", [1, 3])
def test_resumed_inside_an_epoch_gives_the_same_bits(optimiser: AdamW | Sgd, accumulate: int) -> None:
    """Stopped at any step and resumed from its state: weights bit for bit those of one go, with momentum and dropout (R04)."""
    whole = run(recipe(optimiser=optimiser, accumulate=accumulate), batch_norm=True)
    history = [(epoch.train_loss, epoch.lr) for epoch in whole.epochs()]

    class StopError(Exception):
        pass

    first = run(recipe(optimiser=optimiser, accumulate=accumulate), batch_norm=True)
    steps = 0

    def stop_later() -> None:
        nonlocal steps
        steps += 1
        if steps == 5 if accumulate > 1 else steps == 10:
            raise StopError

    first.on_step = stop_later
    got = []
    with pytest.raises(StopError):
        got.extend((epoch.train_loss, epoch.lr) for epoch in first.epochs())
    assert first.position.step > 0
    second = run(recipe(optimiser=optimiser, accumulate=accumulate), batch_norm=True)
    state = first.state()

    def part(prefix: str) -> dict[str, torch.Tensor]:
        return {name.removeprefix(f"{prefix}/"): tensor for name, tensor in state.items() if name.startswith(f"{prefix}/")}

    second.restore(part("net"), part("optimiser"), part("scaler"))
    second.position = Position(**vars(first.position))
    rest = [(epoch.train_loss, epoch.lr) for epoch in second.epochs()]
    assert digest_of(weights_of(second.net)) == digest_of(weights_of(whole.net))
    assert rest == history[-len(rest) :]


def test_epoch_orders_differ_and_depend_on_nothing_else() -> None:
    """The order of an epoch is a function of seed and epoch."""
    assert torch.equal(epoch_order(50, 7, 3), epoch_order(50, 7, 3))
    assert not torch.equal(epoch_order(50, 7, 3), epoch_order(50, 7, 4))
    assert not torch.equal(epoch_order(50, 7, 3), epoch_order(50, 8, 3))
    assert sorted(epoch_order(50, 7, 3).tolist()) == list(range(50))


@pytest.mark.parametrize(("rows", "size"), [(101, 100), (17, 16), (33, 16), (5, 2)])
def test_last_batch_of_one_row_joins_the_one_before(rows: int, size: int) -> None:
    """No batch has one row, none is lost (R01)."""
    bounds = batch_bounds(rows, size)
    assert min(end - start for start, end in bounds) > 1
    assert [bounds[0][0], bounds[-1][1]] == [0, rows]
    assert all(a[1] == b[0] for a, b in itertools.pairwise(bounds))
    epochs = list(run(recipe(batch_size=size, epochs=1), rows, batch_norm=True).epochs())
    assert epochs[0].rows == rows


def test_accumulated_batches_equal_one_large_batch() -> None:
    """Four batches of 4 accumulated are one of 16, also where the last group is short."""
    plain = recipe(optimiser=Sgd(lr=0.1, momentum=0.0), schedule=Constant(), epochs=2)
    large, small = run(plain, 42), run(Recipe(**{**vars(plain), "batch_size": 4, "accumulate": 4}), 42)
    for one in (large, small):
        one.net.layers[2] = nn.Identity()  # no dropout: its draws differ by step
        list(one.epochs())
    for name, tensor in weights_of(large.net).items():
        assert torch.allclose(tensor, weights_of(small.net)[name], atol=1e-6), name


def test_loss_that_is_not_finite_stops_with_epoch_and_step() -> None:
    """The first bad loss ends the run and says where (R02)."""
    with pytest.raises(TrainingError, match=r"non-finite.*epoch 1, step 2"):
        list(run(recipe(optimiser=AdamW(lr=1e30), schedule=Constant())).epochs())


def test_schedules_begin_and_end_where_they_say() -> None:
    """Warm-up rises to 1, cosine falls to its floor, one-cycle peaks after its warm-up."""
    cosine = [Cosine(warmup=0.1, floor=0.1).factor(step, 100) for step in range(100)]
    assert cosine[0] == pytest.approx(0.1)
    assert max(cosine) == cosine[10] == 1.0
    assert cosine[-1] == pytest.approx(0.1, abs=0.01)
    cycle = [OneCycle(warmup=0.3).factor(step, 100) for step in range(100)]
    assert cycle[0] == pytest.approx(0.04)
    assert cycle.index(max(cycle)) == 30
    assert cycle[-1] < 0.01
    assert {Constant().factor(step, 10) for step in range(10)} == {1.0}


def test_class_weights_are_those_of_torch() -> None:
    """The weighted binary loss equals the two-class cross-entropy with the same weights."""
    logits, target, weights = torch.randn(9, 1), torch.randint(0, 2, (9,)), torch.tensor([0.5, 2.0])
    two = torch.cat([torch.zeros(9, 1), logits], 1)
    assert TASK.loss(logits, target, weights) == pytest.approx(float(nn.functional.cross_entropy(two, target, weight=weights)), rel=1e-5)


@pytest.mark.parametrize("size", [1, 7, 64, 101])
def test_outputs_do_not_depend_on_the_batch_size(size: int) -> None:
    """Evaluation mode: the same outputs for every batch size, and buffers are left alone (E01)."""
    one = run(recipe(epochs=1), batch_norm=True)
    list(one.epochs())
    before = digest_of(one.net.state_dict())
    inputs = {"numeric": data()["numeric"]}
    assert torch.allclose(outputs_of(one.net, inputs, size), outputs_of(one.net, inputs, 101), atol=1e-6)
    assert digest_of(one.net.state_dict()) == before
    assert one.net.training


def test_bf16_trains_on_the_cpu() -> None:
    """Mixed precision runs and learns something."""
    epochs = list(run(recipe(precision="bf16", epochs=6)).epochs())
    assert epochs[-1].train_loss < epochs[0].train_loss


def test_missing_device_is_named() -> None:
    """A device that is not there is refused by name."""
    if torch.accelerator.is_available():
        pytest.skip("this machine has an accelerator")
    assert pick_device("auto").type == "cpu"
    with pytest.raises(TrainingError, match="xpu"):
        pick_device("xpu")


def test_draws_depend_on_seed_and_place() -> None:
    """Different places, different numbers."""
    assert len({derived(1, "step", e, s) for e in range(20) for s in range(20)}) == 400
    assert derived(1, "step", 1, 2) != derived(2, "step", 1, 2)
