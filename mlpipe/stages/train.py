"""Stage `train`: encoded train and valid tensors -> weights. Owns patience, files and signals; the loop takes the steps."""

from __future__ import annotations

import csv
import io
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlpipe.base import write_json, write_text
from mlpipe.console import console
from mlpipe.errors import SpecError, StoppedError, TrainingError, did_you_mean, listed
from mlpipe.manifest import Artifact, Identity, Input, Manifest
from mlpipe.metrics import METRICS
from mlpipe.metrics.base import Outcome, measured
from mlpipe.schema import Schema, load_schema
from mlpipe.spec import Pipeline
from mlpipe.stages.base import Context, Stage, Work, task_and_seed
from mlpipe.stages.encoded import read_tensors, release
from mlpipe.stopping import NAMES, stopper
from mlpipe.tasks.classification import FittedClassification

if TYPE_CHECKING:
    import numpy as np
    import torch

    from mlpipe.training.loop import Epoch, Recipe, Run

EVAL_ROWS = 8192
UNDECISIVE = {"checkpoint_every"}


class Train(Stage):
    """Encoded tensors to weights."""

    name = "train"
    version = 1
    parents = ("prepare",)

    def config(self, pipeline: Pipeline) -> dict[str, Any]:
        """Section `train`; how often checkpoints are written decides nothing."""
        return {**pipeline.spec.train.model_dump(mode="json", exclude=UNDECISIVE), **task_and_seed(pipeline)}

    def inputs(self, context: Context, parents: Mapping[str, Manifest]) -> list[Input]:
        """The content of the encoded train and valid rows, the schema, the user's own code, and weights that training starts from."""
        prepare, pipeline = parents["prepare"], context.pipeline
        found = [prepare.input(role, "tensors-v1") for role in ("encoded-train", "encoded-valid") if prepare.has(role)]
        found.append(prepare.input("schema", "sha256"))
        for shown, path in pipeline.spec.train.model.code(pipeline.base):
            found.append(Input("code", {"sha256": context.hashed(path)}, shown))
        for shown, path in pipeline.spec.train.model.files(pipeline.base):
            found.append(Input("pretrained", {"sha256": context.hashed(path)}, shown))
        return found

    def work(self, context: Context, identity: Identity, parents: Mapping[str, Manifest], out: Path) -> Work:
        """Trains, from a checkpoint of the same id where there is one."""
        return _Training(context, parents["prepare"], context.folder.checkpoints(identity.id)).work(out)

    def tidy(self, context: Context, identity: Identity) -> None:
        """Removes the checkpoints of the run that is finished."""
        shutil.rmtree(context.folder.checkpoints(identity.id), ignore_errors=True)


@dataclass
class _Best:
    """The best epoch so far."""

    epoch: int = 0
    value: float | None = None
    weights: dict[str, torch.Tensor] = field(default_factory=dict)


class _Training:
    """One run of train."""

    def __init__(self, context: Context, prepare: Manifest, checkpoints: Path) -> None:
        import torch

        from mlpipe.training.batches import as_torch
        from mlpipe.training.loop import pick_device

        self.context, self.spec, self.seed = context, context.pipeline.spec.train, context.pipeline.spec.seed
        self.schema: Schema = load_schema(prepare.path("schema"))
        self.folder = checkpoints
        torch.set_num_threads(self.spec.threads)
        self.device = pick_device(self.spec.device)
        self.arrays = read_tensors(prepare.path("encoded-train"))
        self.train = as_torch(self.arrays, self.device)
        self.valid_arrays = read_tensors(prepare.path("encoded-valid")) if prepare.has("encoded-valid") else {}
        self.valid = as_torch(self.valid_arrays, self.device) if self.valid_arrays else None
        self.validated: Mapping[str, torch.Tensor] | None = None  # the valid rows as the network of the run under way takes them
        self.release()  # on an accelerator lie copies
        self.higher = self.spec.monitor != "loss" and METRICS[self.spec.monitor].higher_is_better
        if len(self.train["target"]) < 2:
            raise TrainingError(f"{len(self.train['target'])} train rows are too few to train on")

    def release(self) -> None:
        """Lets go of the pages of train and valid tensors."""
        release(self.arrays)
        release(self.valid_arrays)

    # ---- building

    def recipe(self, epochs: int) -> Recipe:
        """The spec's recipe, for a number of epochs."""
        from mlpipe.training.loop import Recipe

        s = self.spec
        return Recipe(
            s.optimiser, s.schedule, epochs, s.batch_size, self.seed, s.clip_norm, s.accumulate, s.precision, self._class_weights()
        )

    def _class_weights(self) -> torch.Tensor | None:
        """float32 [classes]; `balanced` is rows / (classes * rows of the class), as scikit-learn has it."""
        import torch

        task, wanted = self.schema.task, self.spec.class_weights
        if wanted == "none" or not isinstance(task, FittedClassification):
            return None
        if wanted == "balanced":
            weights = [sum(task.counts) / (len(task.counts) * count) for count in task.counts]
        else:
            assert isinstance(wanted, dict)  # the other two are literals
            if unknown := sorted(set(wanted) - set(task.classes)):
                hint = did_you_mean(unknown[0], task.classes) or f"the classes are {listed(task.classes)}"
                raise SpecError(f"train.class_weights names {unknown[0]!r}, which is no class", hint=hint)
            weights = [wanted.get(name, 1.0) for name in task.classes]
        return torch.tensor(weights, dtype=torch.float32, device=self.device)

    def start(self, model: Any, arguments: Mapping[str, Any], epochs: int) -> Run:
        """A new run of a model."""
        from mlpipe.stages.network import build_net
        from mlpipe.training.loop import Run

        net = build_net(model, self.schema, arguments, self.seed)
        model.load(net)
        net = net.to(self.device)
        train = model.ahead(net, self.train)
        self.validated = model.ahead(net, self.valid) if self.valid is not None else None
        return Run(net, self.schema.task.loss, dict(train), self.recipe(epochs), self.device, release=self.release)

    # ---- looking at the valid rows

    def validate(self, run: Run) -> tuple[float | None, float | None]:
        """(loss, monitored value) on the valid rows; (None, None) without them. Rows of a class that train lacks have no loss."""
        from mlpipe.training.loop import outputs_of

        if self.validated is None:
            return None, None
        inputs = {name: tensor for name, tensor in self.validated.items() if name != "target"}
        outputs, target = outputs_of(run.net, inputs, EVAL_ROWS, self.release), self.validated["target"].cpu()
        known = target >= 0 if isinstance(self.schema.task, FittedClassification) else target == target
        weights = run.recipe.class_weights
        if not bool(known.any()):
            return None, None
        loss = float(self.schema.task.loss(outputs[known], target[known], weights.cpu() if weights is not None else None))
        if self.spec.monitor == "loss":
            return loss, loss
        value = measured(METRICS[self.spec.monitor], self._outcome(outputs, target))
        if value.value is None:
            raise TrainingError(f"train.monitor: {self.spec.monitor} has no value on the valid rows: {value.reason}", hint="monitor: loss")
        return loss, value.value

    def _outcome(self, outputs: torch.Tensor, target: torch.Tensor) -> Outcome:
        import numpy as np

        scores: np.ndarray = self.schema.task.activate(outputs).numpy().astype(np.float64)
        task = self.schema.task
        if isinstance(task, FittedClassification):
            names = np.array([*task.classes, "(a class that train lacks)"], dtype=object)
            return Outcome(names[target.numpy()], scores, task.classes)
        truth = task.activate(target[:, None].to(outputs.dtype)).numpy()[:, 0]
        return Outcome(truth, scores)

    def better(self, value: float, than: float | None) -> bool:
        """Whether a monitored value beats the best so far by more than min_delta."""
        if than is None:
            return True
        return value - than > self.spec.min_delta if self.higher else than - value > self.spec.min_delta

    # ---- choosing among candidates

    def choose(self, model: Any) -> tuple[Any, list[dict[str, Any]]]:
        """The candidate that does best on the valid rows in a few epochs, and what each reached."""
        candidates = model.candidates()
        if not candidates or self.valid is None:
            return model, []
        trials, best, best_value = [], candidates[0], None
        for candidate in candidates:
            epochs = min(self.spec.trial_epochs, self.spec.epochs)
            run, values = self.start(candidate, candidate.measure(self.arrays), epochs), []
            try:
                for _ in run.epochs():
                    _, value = self.validate(run)
                    values.append(value if value is not None else float("inf"))
            except TrainingError as fault:
                console.say(f"  trial {_trial_name(candidate)}: {fault.message}")
                continue
            reached = max(values) if self.higher else min(values)
            trials.append({"model": _trial_name(candidate), self.spec.monitor: reached})
            console.say(f"  trial {_trial_name(candidate)}: valid {self.spec.monitor} {reached:.5g} after {epochs} epochs")
            if best_value is None or (reached > best_value if self.higher else reached < best_value):
                best, best_value = candidate, reached
        console.say(f"  chosen: {_trial_name(best)}")
        return best, trials

    # ---- the run

    def work(self, out: Path) -> Work:
        from mlpipe.training.checkpoints import newest_checkpoint
        from mlpipe.training.weights import digest_of, save_weights, weights_of

        base, options = self.context.pipeline.base, self.context.options
        model = self.spec.model.resolved_against(base)
        if not options.resume:
            shutil.rmtree(self.folder, ignore_errors=True)
        checkpoint = newest_checkpoint(self.folder)
        facts: dict[str, Any] = dict(checkpoint.facts) if checkpoint else {}
        if checkpoint:
            model = type(model).model_validate(facts["model"]).resolved_against(base)
            arguments, trials, history = facts["arguments"], facts["trials"], facts["history"]
        else:
            model, trials = self.choose(model)
            arguments, history = model.measure(self.arrays), []
        run = self.start(model, arguments, self.spec.epochs)
        best = _Best()
        if checkpoint:
            run.restore(checkpoint.part("net"), checkpoint.part("optimiser"), checkpoint.part("scaler"))
            for name in ("epoch", "step", "loss_sum", "loss_rows"):
                setattr(run.position, name, facts[name])
            best = _Best(facts["best_epoch"], facts["best_value"], checkpoint.part("best"))
            inside = f", step {run.position.step}" if run.position.step else ""
            console.say(f"  resumes after epoch {run.position.epoch}{inside} from {self.folder.name}")
        known = {"model": model.model_dump(mode="json"), "arguments": arguments, "trials": trials, "history": history}
        reason = self._epochs(run, best, known)
        final = best.weights or weights_of(run.net)
        save_weights(final, out / "weights.safetensors")
        write_json(out / "model.json", {name: known[name] for name in ("model", "arguments")} | {"outputs": self.schema.task.outputs})
        write_text(out / "history.csv", _as_csv(history))
        digest = digest_of(final)
        entry = next((row for row in history if row["epoch"] == best.epoch), history[-1])
        results = {
            "epochs": len(history),
            "best_epoch": best.epoch,
            "stopped_by": reason,
            "train": {"loss": entry["train_loss"]},
            "valid": {name: entry[name] for name in dict.fromkeys(("valid_loss", self.spec.monitor)) if name in entry},
            "parameters": sum(p.numel() for p in run.net.parameters()),
            "device": self.device.type,
            "trials": trials,
        }
        console.say(f"  best epoch {best.epoch} of {len(history)}, {results['parameters']:,} parameters")
        artifacts = [
            Artifact("weights.safetensors", "weights", {"tensors-v1": digest}),
            Artifact("model.json", "model"),
            Artifact("history.csv", "history"),
        ]
        return Work(artifacts, results)

    def _epochs(self, run: Run, best: _Best, known: dict[str, Any]) -> str:
        """Trains until the end, until patience runs out, or until a signal comes. Returns what ended it."""
        history: list[dict[str, Any]] = known["history"]
        run.on_step = lambda: self._stop_if_asked(run, best, known)
        if self._out_of_patience(history, best):
            return "patience"
        with console.progress("training", self.spec.epochs) as bar, stopper.deferred():
            bar.advance(len(history))
            for epoch in run.epochs():
                line = self._judge(epoch, run, best, history)
                bar.advance(1, line.replace(f"  lr {epoch.lr:.5g}", ""))
                if not console.terminal():
                    console.say(f"  {line}")
                if self._out_of_patience(history, best):
                    return "patience"
                if epoch.number % self.spec.checkpoint_every == 0 and epoch.number < self.spec.epochs:
                    self._save(run, best, known)
                self._stop_if_asked(run, best, known)
        return "epochs"

    def _judge(self, epoch: Epoch, run: Run, best: _Best, history: list[dict[str, Any]]) -> str:
        """Validates, keeps the weights if they are the best, adds a line to the history."""
        import math

        from mlpipe.training.weights import weights_of

        loss, value = self.validate(run)
        if loss is not None and not math.isfinite(loss):
            raise TrainingError(
                f"the loss on the valid rows became {loss} (non-finite) after epoch {epoch.number}", hint="a lower train.optimiser.lr"
            )
        row: dict[str, Any] = {"epoch": epoch.number, "lr": epoch.lr, "train_loss": epoch.train_loss}
        if loss is not None:
            row["valid_loss"] = loss
        if self.spec.monitor != "loss" and value is not None:
            row[self.spec.monitor] = value
        history.append(row)
        mark = ""
        if value is None or self.better(value, best.value):
            best.epoch, best.value, best.weights, mark = epoch.number, value, weights_of(run.net), "  best"
        numbers = "  ".join(f"{name} {number:.5g}" for name, number in row.items() if name != "epoch")
        return f"epoch {epoch.number}/{self.spec.epochs}  {numbers}{mark}"

    def _out_of_patience(self, history: list[dict[str, Any]], best: _Best) -> bool:
        patience = self.spec.patience
        return patience is not None and self.valid is not None and bool(history) and history[-1]["epoch"] - best.epoch >= patience

    def _save(self, run: Run, best: _Best, known: Mapping[str, Any]) -> Path:
        from mlpipe.training.checkpoints import Checkpoint, save_checkpoint

        tensors = {**run.state(), **{f"best/{name}": tensor for name, tensor in best.weights.items()}}
        facts = {**known, **vars(run.position), "best_epoch": best.epoch, "best_value": best.value}
        return save_checkpoint(self.folder, Checkpoint(tensors, facts))

    def _stop_if_asked(self, run: Run, best: _Best, known: Mapping[str, Any]) -> None:
        """After a signal: a checkpoint, then StoppedError."""
        if stopper.requested is None:
            return
        self._save(run, best, known)
        position = run.position
        write_json(self.folder / "state.json", {"state": "interrupted", "epoch": position.epoch, "step": position.step})
        where = f"after epoch {position.epoch}" + (f", step {position.step}" if position.step else "")
        name = NAMES[stopper.requested]  # type: ignore[index]  # a signal that was installed
        raise StoppedError(
            stopper.requested,
            f"training was interrupted by {name} {where}; a checkpoint was saved",
            hint="run the same command again to resume",
        )


def _trial_name(model: Any) -> str:
    """What sets a candidate apart."""
    if model.kind == "mlp" and model.numeric_embedding == "periodic":
        return f"frequency_scale {model.frequency_scale}"
    return "no numeric embedding" if model.kind == "mlp" else str(model.kind)


def _as_csv(history: list[dict[str, Any]]) -> str:
    """The history as a table; floats by their shortest repr."""
    names = list(dict.fromkeys(name for row in history for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: repr(value) if isinstance(value, float) else value for name, value in row.items()} for row in history)
    return text.getvalue()
