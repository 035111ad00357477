"""Stage `export`: encoder + network + decoding -> one model.onnx, published only when it agrees with the trained model."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mlpipe.base import json_text, write_json, write_text
from mlpipe.console import console
from mlpipe.errors import GateError, MachineError, ParityError
from mlpipe.exporters.targets import LOWEST_RUNTIME, Onnx
from mlpipe.features.category import FittedCategory
from mlpipe.features.graph import ENCODED
from mlpipe.features.text import FittedText
from mlpipe.manifest import Artifact, Identity, Input, Manifest
from mlpipe.metrics import METRICS
from mlpipe.metrics.base import Outcome, measured
from mlpipe.schema import Schema, load_schema
from mlpipe.spec import Pipeline
from mlpipe.stages.base import Context, Stage, Work, task_and_seed
from mlpipe.stages.card import model_card
from mlpipe.stages.evaluate import gate_line
from mlpipe.stages.hosting import copy_tokenisers, steps_for
from mlpipe.stages.scoring import Exported
from mlpipe.tasks.classification import FittedClassification

if TYPE_CHECKING:
    import pyarrow as pa
    from torch import nn

PARITY_ROWS = 8192
SAMPLE_ROWS = 5
MISSING_IS = {"string": "", "double": "NaN", "int64": "all 0"}
DTYPES = {"O": "string", "f": "double", "i": "int64"}


class Export(Stage):
    """Weights to model.onnx."""

    name = "export"
    version = 2
    parents = ("prepare", "train", "evaluate")
    renewable = False  # it carries copies of the parents' manifests

    def config(self, pipeline: Pipeline) -> dict[str, Any]:
        """Section `export`, the name on the card, and how raw rows are read."""
        section = pipeline.spec.export.model_dump(mode="json")
        return {**section, "name": pipeline.spec.name, "reader": reader_of(pipeline), **task_and_seed(pipeline)}

    def inputs(self, context: Context, parents: Mapping[str, Manifest]) -> list[Input]:
        """Encoder, schema, profile, weights, test rows, and what evaluate made of them."""
        prepare, train, evaluate = (parents[name] for name in self.parents)
        found = [
            prepare.input("encoder", "sha256"),
            prepare.input("schema", "sha256"),
            prepare.input("profile", "sha256"),
            prepare.input("test-rows", "table-v1"),
        ]
        found += [train.input("model", "sha256"), train.input("weights", "tensors-v1")]
        found += [evaluate.input("metrics", "sha256"), evaluate.input("predictions", "table-v1")]
        for shown, path in context.pipeline.spec.train.model.code(context.pipeline.base):
            found.append(Input("code", {"sha256": context.hashed(path)}, shown))
        return found

    def work(self, context: Context, identity: Identity, parents: Mapping[str, Manifest], out: Path) -> Work:
        """Joins, checks, compares, describes. Raises GateError or ParityError before anything is published."""
        check_exporter()
        refuse_failed_gate(context.pipeline, parents["evaluate"])
        return _Exporting(context, parents, out).work()


def check_exporter() -> None:
    """Raises MachineError when the package that torch's exporter needs is not installed: better before than after training."""
    if importlib.util.find_spec("onnxscript") is None:
        raise MachineError("export needs the package onnxscript, which is not installed", hint="pip install onnxscript")


def refuse_failed_gate(pipeline: Pipeline, evaluate: Manifest) -> None:
    """Raises GateError when evaluate's verdict is not ok, unless the pipeline file says `allow_failed_gate`."""
    if evaluate.verdict == "ok" or pipeline.spec.export.allow_failed_gate:
        return
    failed = [gate_line(gate) for gate in evaluate.results["gates"] if not gate["passed"]]
    raise GateError(
        "export refuses a model whose quality gate failed", faults=failed, hint="export.allow_failed_gate: true exports it all the same"
    )


def reader_of(pipeline: Pipeline) -> dict[str, Any]:
    """How raw rows are read, without where they lie."""
    return pipeline.spec.prepare.source.reader()


class _Exporting:
    """One run of export."""

    def __init__(self, context: Context, parents: Mapping[str, Manifest], out: Path) -> None:
        self.pipeline, self.parents, self.out = context.pipeline, parents, out
        self.prepare, self.train, self.evaluate = (parents[name] for name in Export.parents)
        self.schema: Schema = load_schema(self.prepare.path("schema"))
        self.target: Onnx = self.pipeline.spec.export.targets[0]
        task = self.schema.task
        self.classes = task.classes if isinstance(task, FittedClassification) else ()

    def work(self) -> Work:
        import torch

        from mlpipe.exporters.onnx import joined
        from mlpipe.features.encode import rows_at_once, session
        from mlpipe.stages.network import load_net

        torch.set_num_threads(self.pipeline.spec.train.threads)
        self.net: nn.Module = load_net(self.train, self.schema, self.pipeline.base)
        self.encoder = self.prepare.path("encoder").read_bytes()
        self.at_once = PARITY_ROWS if not self.schema.tensors.text else min(PARITY_ROWS, rows_at_once(session(self.encoder)))
        self.steps = steps_for(self.schema, self.prepare.folder)
        tokeniser = copy_tokenisers(self.prepare, self.out)
        first = next(self._test_rows())
        sample = self._tensors(first.slice(0, 3) if first.num_rows >= 2 else self._doubled(first))
        model = joined(self.encoder, self.net, sample, self.schema.task.activate, self.classes, self.target)
        data = model.SerializeToString(deterministic=True)
        (self.out / "model.onnx").write_bytes(data)
        self.exported = Exported((self.out / "model.onnx").read_bytes(), "model.onnx")
        self.exported.check_batch_axis()
        console.say(f"  model.onnx has {len(data):,} bytes, {len(model.graph.node)} nodes, opset {self.target.opset}")
        parity = self._parity(first)
        write_json(self.out / "parity.json", parity)
        contract = self._contract()
        write_json(self.out / "schema.json", contract)
        write_json(self.out / "sample_input.json", self._sample(first.slice(0, SAMPLE_ROWS)))
        (self.out / "profile.json").write_bytes(self.prepare.path("profile").read_bytes())
        self._lineage()
        write_text(self.out / "card.md", model_card(self.pipeline, self.schema, self.parents, contract, parity))
        roles = {
            "model.onnx": "model",
            "parity.json": "parity",
            "schema.json": "contract",
            "sample_input.json": "sample",
            "card.md": "card",
            "profile.json": "profile",
        }
        results = {
            "inputs": contract["inputs"],
            "outputs": contract["outputs"],
            "opset": self.target.opset,
            "ir_version": self.target.ir_version,
            "onnxruntime_minimum": LOWEST_RUNTIME,
            "parity": parity,
            "gate": self.evaluate.verdict,
        }
        artifacts = [Artifact(name, role) for name, role in roles.items()]
        return Work([*artifacts, *tokeniser, Artifact("lineage", "lineage")], results)

    # ---- the trained model's answers

    def _test_rows(self) -> Iterator[pa.RecordBatch]:
        from pyarrow import parquet as pq

        texts = [column.name for column in self.schema.columns if column.type == "text"]
        names = list(dict.fromkeys([*(column.name for column in self.schema.columns), self.schema.task.target]))
        file = pq.ParquetFile(self.prepare.path("test-rows"), read_dictionary=texts)
        yield from file.iter_batches(batch_size=self.at_once, columns=names)

    def _doubled(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        import pyarrow as pa

        return pa.Table.from_batches([batch, batch]).combine_chunks().to_batches()[0]

    def _tensors(self, batch: pa.RecordBatch) -> dict[str, Any]:
        """Encoded rows as torch tensors, in the network's order."""
        import torch

        from mlpipe.features.encode import Encoder

        encoded = Encoder(self.encoder, self.schema.columns, steps=self.steps)(batch)
        return {name: torch.from_numpy(encoded[name]) for name in self.schema.tensors.present}

    def _trained(self, encoded: Mapping[str, np.ndarray]) -> np.ndarray:
        """The trained network's scores, float64 [N, K]."""
        import torch

        with torch.inference_mode():
            outputs = self.net(**{name: torch.from_numpy(encoded[name]) for name in self.schema.tensors.present})
            scores: np.ndarray = self.schema.task.activate(outputs.float()).numpy().astype(np.float64)
        return scores

    # ---- parity

    def _parity(self, first: pa.RecordBatch) -> dict[str, Any]:
        """Compares every test row, small batches and awkward rows. Raises ParityError beyond the tolerance."""
        from mlpipe.exporters.parity import BATCHES, SMALL, Parity, awkward_rows, in_batches
        from mlpipe.features.encode import Encoder, feed, session
        from mlpipe.features.tokeniser import tokenised

        encoder, plain = Encoder(self.encoder, self.schema.columns, steps=self.steps), session(self.encoder)
        tests, small, awkward = (Parity(self.target.tolerance) for _ in range(3))
        # float32 holds what a classifier gives, half the size; numbers are float64
        count, width = self.evaluate.results["n"], len(self.classes) or 1
        exported, trained = (np.empty((count, width), np.float32 if self.classes else np.float64) for _ in range(2))
        truth = np.empty(count, dtype=object if self.classes else np.float64)
        at = 0
        with console.progress("parity", self.evaluate.results["n"]) as bar:
            for batch in self._test_rows():
                scores, labels = self.exported(feed(batch, self.schema.columns, self.steps))
                expected = self._trained(encoder(batch))
                tests.add(scores, expected, labels, self._labels(expected), self.schema.task.size(expected))
                if scores.shape != expected.shape:
                    raise ParityError(
                        f"the exported model gives scores {scores.shape}, the trained one {expected.shape}",
                        hint="is the model's code the one it was trained with?",
                    )
                exported[at : at + len(scores)], trained[at : at + len(scores)] = scores, expected
                truth[at : at + len(scores)] = self.schema.task.truth(batch.column(self.schema.task.target))
                at += len(scores)
                bar.advance(batch.num_rows)
        raw = feed(first.slice(0, SMALL), self.schema.columns)
        few = tokenised(raw, self.steps)
        expected = trained[: min(SMALL, first.num_rows)].astype(np.float64)  # a model of long texts takes fewer at once
        changes = self._metric_changes(truth, exported, trained)
        del exported, trained, truth
        for size in BATCHES:
            scores, labels = in_batches(self.exported, few, size)
            small.add(scores, expected, labels, self._labels(expected), self.schema.task.size(expected))
        known = {f.column: f.values for f in self.schema.features if isinstance(f, FittedCategory)}
        odd = tokenised(awkward_rows(self.schema.columns, raw, known), self.steps)
        encoded = dict(zip([o.name.removeprefix(ENCODED) for o in plain.get_outputs()], plain.run(None, odd), strict=True))
        scores, labels = self.exported(odd)
        expected = self._trained(encoded)
        awkward.add(scores, expected, labels, self._labels(expected), self.schema.task.size(expected))
        worst = max(tests.largest_scaled, small.largest_scaled, awkward.largest_scaled)
        report = {
            **tests.as_dict(),
            "worst_scaled": worst if np.isfinite(worst) else None,
            "batches": {"sizes": [*BATCHES, self.at_once], **small.as_dict()},
            "awkward": awkward.as_dict(),
            "metrics": changes,
        }
        console.say(
            f"  parity: {tests.rows:,} test rows, {awkward.rows} awkward ones, largest difference {worst:.2g}, {tests.flips} labels changed"
        )
        if not (tests.holds and small.holds and awkward.holds):
            faults = [
                f"{name}: largest difference {p.largest_scaled:.3g}, {p.flips} labels changed, over {p.rows:,} rows"
                for name, p in (("test rows", tests), ("batches of 1, 2 and 7", small), ("awkward rows", awkward))
                if not p.holds
            ]
            raise ParityError(
                f"the exported model disagrees with the trained one beyond {self.target.tolerance}; nothing is published",
                faults=faults,
                hint="look for code that depends on the batch, or raise export.targets.0.tolerance if such a difference is harmless",
            )
        return report

    def _labels(self, scores: np.ndarray) -> np.ndarray | None:
        return self.schema.task.decode(scores) if self.classes else None

    def _metric_changes(self, truth: np.ndarray, exported: np.ndarray, trained: np.ndarray) -> dict[str, Any]:
        """Each metric by the trained and by the exported scores."""
        found: list[dict[str, float | None]] = []
        for scores in (trained, exported):
            outcome = Outcome(truth, scores, self.classes)
            found.append({name: measured(METRICS[name], outcome).value for name in self.pipeline.spec.metrics})
        changes = {}
        for name, before in found[0].items():
            after = found[1][name]
            changes[name] = {"trained": before, "exported": after, "change": None if before is None or after is None else after - before}
        return changes

    # ---- what a stranger needs

    def _contract(self) -> dict[str, Any]:
        """schema.json of the export: inputs, outputs, and how raw rows become inputs."""
        types = {"tensor(string)": "string", "tensor(double)": "double", "tensor(int64)": "int64"}
        steps = {step.column: step for step in self.schema.host_steps}
        named = {column.name: column for column in self.schema.columns}
        known = {f.column: list(f.values) for f in self.schema.features if isinstance(f, FittedCategory)}
        texts = {f.column: f for f in self.schema.features if isinstance(f, FittedText)}
        inputs = []
        for name, kind, shape in self.exported.inputs:
            entry: dict[str, Any] = {
                "name": name,
                "type": types.get(kind, kind),
                "shape": shape,
                "missing": MISSING_IS[types.get(kind, kind)],
            }
            entry["column"] = named[name].model_dump(mode="json", exclude_none=True)
            if name in known:
                entry["values"] = known[name]
            if name in texts:
                entry["text"] = {"characters_read": texts[name].length, "folded": texts[name].fold}
            if replaced := self.pipeline.spec.prepare.source.replace.get(name):
                entry["reads_as"] = replaced
            if name in steps:
                entry["host_step"] = steps[name].model_dump(mode="json", exclude={"column"})
            inputs.append(entry)
        outputs: list[dict[str, Any]]
        if self.classes:
            outputs = [
                {"name": "label", "type": "string", "shape": ["batch"]},
                {"name": "probability", "type": "float", "shape": ["batch", len(self.classes)], "columns": list(self.classes)},
            ]
        else:
            outputs = [{"name": "prediction", "type": "double", "shape": ["batch"]}]
        return {
            "schema": "mlpipe/export/v1",
            "name": self.pipeline.spec.name,
            "model": "model.onnx",
            "target": self.schema.task.target,
            "keys": list(self.schema.keys),
            "classes": list(self.classes),
            "inputs": inputs,
            "outputs": outputs,
            "codes": {"missing": 0, "unknown or rare": 1, "known values": "2 and up"},
            "reader": reader_of(self.pipeline),
            "onnxruntime_minimum": LOWEST_RUNTIME,
            "onnx": {"opset": self.target.opset, "ir_version": self.target.ir_version},
            **({"rows_at_once": self.exported.at_once} if self.exported.at_once else {}),
            **({"operators_of_onnxruntime": ["com.microsoft.Tokenizer"]} if texts else {}),
        }

    def _sample(self, batch: pa.RecordBatch) -> dict[str, Any]:
        """sample_input.json: some test rows as the session takes them, its answers, and the code that gets them."""
        from mlpipe.features.encode import feed

        arrays = feed(batch, self.schema.columns, self.steps)
        scores, labels = self.exported(arrays)
        inputs = {name: {"dtype": DTYPES[array.dtype.kind], "data": _plain(array)} for name, array in arrays.items()}
        texts = {name: [text or "" for text in batch.column(name).to_pylist()] for name in self.steps}
        outputs = (
            {"label": labels.tolist(), "probability": scores.tolist()} if labels is not None else {"prediction": scores[:, 0].tolist()}
        )
        return {"inputs": inputs, "outputs": outputs, "python": SAMPLE_CODE.strip().split("\n"), **({"texts": texts} if texts else {})}

    def _lineage(self) -> None:
        """The parents' manifests, so that a model shipped alone can be checked."""
        folder = self.out / "lineage"
        folder.mkdir()
        for name in Export.parents:
            write_text(folder / f"{name}.json", json_text(self.parents[name].data))


SAMPLE_CODE = """
import os; os.environ["ORT_DISABLE_TELEMETRY"] = "1"
import json, numpy, onnxruntime, pathlib
sample = json.loads(pathlib.Path("sample_input.json").read_text(encoding="utf-8"))
dtype = {"string": object, "double": numpy.float64, "int64": numpy.int64}
cells = lambda rows: [[numpy.nan if v is None else v for v in row] for row in rows]
rows = {name: numpy.array(cells(i["data"]), dtype[i["dtype"]]) for name, i in sample["inputs"].items()}
session = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
print(dict(zip([o.name for o in session.get_outputs()], session.run(None, rows))))
"""


def _plain(array: np.ndarray) -> list[list[Any]]:
    """Rows for JSON; NaN is null."""
    return [[None if isinstance(value, float) and np.isnan(value) else value for value in row] for row in array.tolist()]
