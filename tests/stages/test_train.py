"""Stage train: interrupted and resumed, candidates, patience, what it writes."""

from __future__ import annotations

import csv
import signal
from pathlib import Path

import pytest

from mlpipe.errors import IntegrityError, StoppedError, TrainingError
from mlpipe.run import RunFolder
from mlpipe.spec import load_pipeline
from mlpipe.stages.base import Options
from mlpipe.stages.chain import interrupted, run_stages
from mlpipe.stages.train import _Training
from mlpipe.stopping import stopper
from tests.helpers import chain, small, table_csv


@pytest.fixture(autouse=True)
def no_signal() -> None:
    """Each test begins without a signal."""
    stopper.requested = None


def interrupt_after(monkeypatch: pytest.MonkeyPatch, epochs: int) -> None:
    """A SIGTERM arrives while epoch number `epochs` is judged."""
    judge = _Training._judge

    def judged(self: _Training, epoch: object, *rest: object) -> str:
        line = judge(self, epoch, *rest)  # type: ignore[arg-type]
        if epoch.number == epochs:  # type: ignore[attr-defined]
            stopper.requested = signal.SIGTERM
        return line

    monkeypatch.setattr(_Training, "_judge", judged)


@pytest.mark.parametrize("periodic", [False, True])
def test_stopped_after_two_epochs_and_resumed_is_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, periodic: bool) -> None:
    """Weights, history and manifest are those of four epochs in one go, bit for bit; trials are not repeated (R04)."""
    model = {"kind": "mlp", "hidden": [8], "dropout": 0.2, "numeric_embedding": "periodic" if periodic else "none", "frequencies": 4}
    for name in ("whole", "parts"):
        table_csv(tmp_path / name / "train.csv")
    whole = small(tmp_path / "whole", train__model=model)
    chain(whole, tmp_path / "whole/runs", until="train")
    parts = small(tmp_path / "parts", train__model=model)
    with monkeypatch.context() as patch:
        interrupt_after(patch, 2)
        with pytest.raises(StoppedError, match="after epoch 2") as fault:
            chain(parts, tmp_path / "parts/runs", until="train")
    assert fault.value.exit_code == 143
    assert not (tmp_path / "parts/runs/small/train").exists()
    assert interrupted(load_pipeline(parts), tmp_path / "parts/runs") == {"state": "interrupted", "epoch": 2, "step": 0}
    stopper.requested = None
    trials: list[object] = []
    monkeypatch.setattr(_Training, "choose", lambda *args: trials.append(args))
    chain(parts, tmp_path / "parts/runs", until="train")
    assert not trials
    for name in ("weights.safetensors", "history.csv", "model.json", "manifest.json"):
        assert (tmp_path / "whole/runs/small/train" / name).read_bytes() == (tmp_path / "parts/runs/small/train" / name).read_bytes(), name
    assert not any((tmp_path / "parts/runs/small/.checkpoints").iterdir())


def test_fresh_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """--fresh throws the checkpoint away; another configuration never picks it up."""
    file = small(tmp_path)
    with monkeypatch.context() as patch:
        interrupt_after(patch, 2)
        with pytest.raises(StoppedError):
            chain(file, tmp_path / "runs", until="train")
        stopper.requested = None
        interrupt_after(patch, 9)
        outcome = chain(file, tmp_path / "runs", until="train", overrides=["train.epochs=1"])
        assert outcome["train"].manifest.results["epochs"] == 1
    outcome = chain(file, tmp_path / "runs", until="train", resume=False)
    assert outcome["train"].manifest.results["epochs"] == 4


def test_damaged_checkpoint_ends_the_run_cleanly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint cut short is named (exit code 7); --fresh goes on."""
    file = small(tmp_path)
    with monkeypatch.context() as patch:
        interrupt_after(patch, 2)
        with pytest.raises(StoppedError):
            chain(file, tmp_path / "runs", until="train")
    stopper.requested = None
    (folder,) = (tmp_path / "runs/small/.checkpoints").iterdir()
    newest = sorted(folder.glob("*.safetensors"))[-1]
    newest.write_bytes(newest.read_bytes()[:2000])
    with pytest.raises(IntegrityError, match=newest.name):
        chain(file, tmp_path / "runs", until="train")
    chain(file, tmp_path / "runs", until="train", resume=False)


def test_history_has_every_epoch(tmp_path: Path) -> None:
    """history.csv: a line an epoch, with losses and the monitored metric."""
    file = small(tmp_path, train__monitor="roc_auc", train__epochs=5)
    outcome = chain(file, tmp_path / "runs", until="train")["train"].manifest
    rows = list(csv.DictReader(outcome.path("history").open()))
    assert [row["epoch"] for row in rows] == ["1", "2", "3", "4", "5"]
    best = max(rows, key=lambda row: float(row["roc_auc"]))
    assert outcome.results["valid"]["roc_auc"] == float(best["roc_auc"])
    assert outcome.results["best_epoch"] == int(best["epoch"])


def test_patience_ends_training_and_the_best_weights_are_kept(tmp_path: Path) -> None:
    """No better epoch for `patience` epochs: the end; the result is the best epoch's."""
    file = small(tmp_path, train__patience=2, train__epochs=200, train__optimiser={"kind": "adamw", "lr": 0.2})
    results = chain(file, tmp_path / "runs", until="train")["train"].manifest.results
    assert results["stopped_by"] == "patience"
    assert results["epochs"] == results["best_epoch"] + 2


def test_auto_scale_tries_all_and_records_its_choice(tmp_path: Path) -> None:
    """frequency_scale auto: five trials on train and valid, the best one is built."""
    model = {"kind": "mlp", "hidden": [8], "numeric_embedding": "periodic", "frequencies": 4, "embedding_width": 3}
    manifest = chain(small(tmp_path, train__model=model), tmp_path / "runs", until="train")["train"].manifest
    trials = manifest.results["trials"]
    assert [t["model"] for t in trials] == ["no numeric embedding", *(f"frequency_scale {s}" for s in (0.1, 1.0, 4.0, 16.0))]
    best = min(trials, key=lambda t: t["loss"])["model"]
    import json

    built = json.loads(manifest.path("model").read_text())["model"]
    told = "no numeric embedding" if built["numeric_embedding"] == "none" else f"frequency_scale {built['frequency_scale']}"
    assert told == best


def test_huge_learning_rate_leaves_no_result(tmp_path: Path) -> None:
    """A loss that is not finite: exit code 5, epoch and step, no weights, and evaluate is not ready (R02b)."""
    from mlpipe.errors import NotReadyError

    file = small(tmp_path, train__optimiser={"kind": "adamw", "lr": 1e30})
    with pytest.raises(TrainingError, match="epoch 1, step"):
        chain(file, tmp_path / "runs")
    assert not (tmp_path / "runs/small/train").exists()
    with pytest.raises(NotReadyError):
        run_stages(load_pipeline(file), tmp_path / "runs", ["evaluate"], Options())


@pytest.mark.parametrize(
    "model",
    [
        {"kind": "linear"},
        {"kind": "mlp", "hidden": [8], "normalisation": "batch", "one_hot_up_to": 0},
        {"kind": "mlp", "hidden": [8, 4], "normalisation": "layer", "activation": "silu", "one_hot_up_to": 4},
        {"kind": "mlp", "hidden": [8], "numeric_embedding": "piecewise_linear", "bins": 5, "embedding_width": 4},
        {"kind": "mlp", "hidden": [8], "numeric_embedding": "periodic", "frequency_scale": 16.0, "activation": "gelu"},
    ],
    ids=lambda model: "-".join(str(v) for v in model.values()),
)
@pytest.mark.parametrize("task", ["binary", "classes", "regression"])
def test_every_model_goes_through_the_chain(tmp_path: Path, model: dict[str, object], task: str) -> None:
    """Each model with each task: trained, evaluated, exported with parity."""
    changes: dict[str, object] = {"train__model": model, "train__epochs": 2}
    if task == "classes":
        table_csv(tmp_path / "train.csv", 150, classes=("a", "b", "c"))
    if task == "regression":
        changes |= {"task": {"kind": "regression", "target": "x1", "transform": "log1p"}}
        features = [{"kind": "numeric", "columns": ["x2"], "scale": "quantile"}, {"kind": "category", "columns": ["colour", "label"]}]
        changes["prepare__features"] = features
    outcome = chain(small(tmp_path, **changes), tmp_path / "runs")
    assert outcome["export"].manifest.results["parity"]["largest_scaled"] <= 1e-5


def test_batch_one_short_of_the_rows_trains(tmp_path: Path) -> None:
    """R01: a batch size of n - 1 with batch normalisation; every test row is evaluated."""
    from tests.helpers import CASES, small_settings, write_pipeline

    (tmp_path / "rows.csv").write_bytes((CASES / "R01/rows.csv").read_bytes())
    features = [{"kind": "numeric", "columns": ["x1", "x2"]}]
    settings = small_settings(prepare__source={"kind": "csv", "path": "rows.csv"}, prepare__features=features)
    file = write_pipeline(tmp_path / "r.yaml", settings)
    rows = chain(file, tmp_path / "runs", until="prepare")["prepare"].manifest.results["splits"]
    changes = [
        f"train.batch_size={rows['train']['rows'] - 1}",
        "train.model={kind: mlp, hidden: [4], normalisation: batch}",
        "evaluate.batch_size=1",
    ]
    results = chain(file, tmp_path / "runs", until="evaluate", overrides=changes)["evaluate"].manifest.results
    assert results["n"] == rows["test"]["rows"]


def test_checkpoints_of_a_run_lie_under_its_id(tmp_path: Path) -> None:
    """Two ids, two folders."""
    folder = RunFolder(tmp_path)
    assert folder.checkpoints("sha256:" + "a" * 64) != folder.checkpoints("sha256:" + "b" * 64)


FAULTY = {
    "double": ("return self.out(numeric).double()", "gives float64"),
    "tuple": ("return self.out(numeric), 1", "gives a tuple, not a tensor"),
    "shape": ("return self.out(numeric)[:2]", r"gives \[2, 1\] for 3 rows"),
    "whole numbers": ("return self.out(numeric).long()", "gives int64"),
}


def user_net(folder: Path, forward: str, extra: str = "pass") -> Path:
    """A pipeline with a module of the user's own."""
    (folder / "net.py").write_text(
        "import sys\nimport numpy as np\nimport torch\nfrom torch import nn\n\n\n"
        "class Net(nn.Module):\n"
        "    def __init__(self, tensors, outputs):\n"
        "        super().__init__()\n"
        "        self.out = nn.Linear(len(tensors.numeric), outputs)\n"
        f"        {extra}\n\n"
        "    def forward(self, numeric=None, plain=None, category=None):\n"
        f"        {forward}\n"
    )
    return small(folder, train__model={"kind": "python", "object": "net.py:Net"})


@pytest.mark.parametrize(("forward", "words"), FAULTY.values(), ids=FAULTY)
def test_a_module_that_gives_something_else_is_refused_before_training(tmp_path: Path, forward: str, words: str) -> None:
    """What a user's module gives is checked once, at the start, in words."""
    from mlpipe.errors import SpecError

    with pytest.raises(SpecError, match=words):
        chain(user_net(tmp_path, forward), tmp_path / "runs")


def test_a_module_that_ends_the_process_or_has_nothing_to_train(tmp_path: Path) -> None:
    """sys.exit in a user's code is no exit code of ours; a module without parameters cannot be trained."""
    from mlpipe.errors import SpecError

    with pytest.raises(SpecError, match="ends the process"):
        chain(user_net(tmp_path, "return self.out(numeric)", "sys.exit(3)"), tmp_path / "runs")
    with pytest.raises(SpecError, match="no parameters"):
        chain(user_net(tmp_path, "return self.out(numeric)", "self.requires_grad_(False)"), tmp_path / "runs")


def test_a_module_may_draw_from_numpy_and_import_where_it_likes(tmp_path: Path) -> None:
    """A number drawn in __init__ is the same whenever the module is made; an import inside a method is found, and is in the id."""
    (tmp_path / "helper.py").write_text("FACTOR = 2.0\n")
    extra = "from helper import FACTOR; self.shift = torch.tensor([float(np.random.rand()) * FACTOR])"
    file = user_net(tmp_path, "return self.out(numeric) + self.shift", extra)
    first = chain(file, tmp_path / "runs")["evaluate"].manifest
    np_random()
    again = chain(file, tmp_path / "runs", until="evaluate", force=True)["evaluate"].manifest
    assert first.results == again.results
    assert {entry.get("path") for entry in first.identity["inputs"]} >= {"net.py", "helper.py"}


def np_random() -> None:
    """Moves numpy's global generator on, as other code in a process would."""
    import numpy as np

    np.random.rand(17)


def test_a_module_that_cannot_be_exported_is_named_without_a_traceback(tmp_path: Path) -> None:
    """Control flow on values: exit code 8, torch's own first line, nothing published."""
    from mlpipe.errors import ParityError

    with pytest.raises(ParityError, match="torch cannot export the model"):
        chain(user_net(tmp_path, "return self.out(numeric) if numeric.sum() > 0 else -self.out(numeric)"), tmp_path / "runs")
    assert not (tmp_path / "runs/small/export").exists()
