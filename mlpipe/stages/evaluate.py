"""Stage `evaluate`: frozen weights on the test rows, metrics beside a trivial baseline, gates, predictions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mlpipe.base import write_json
from mlpipe.console import console
from mlpipe.digest import TableDigest
from mlpipe.errors import IntegrityError
from mlpipe.manifest import Artifact, Identity, Input, Manifest
from mlpipe.metrics import METRICS
from mlpipe.metrics.base import Outcome, Value, measured
from mlpipe.metrics.classification import confusion
from mlpipe.schema import Schema, load_schema
from mlpipe.spec import Gate, Pipeline
from mlpipe.stages.base import Context, Stage, Work, task_and_seed
from mlpipe.stages.encoded import read_tensors, release
from mlpipe.stages.slices import slice_lines, sliced
from mlpipe.tasks.classification import FittedClassification

if TYPE_CHECKING:
    import pyarrow as pa


WRITTEN_ROWS = 262_144  # predictions made and written at a time


class Evaluate(Stage):
    """Weights to metrics and a verdict."""

    name = "evaluate"
    version = 1
    parents = ("prepare", "train")

    def config(self, pipeline: Pipeline) -> dict[str, Any]:
        """Section `evaluate`, with the metrics that come of it."""
        section = pipeline.spec.evaluate.model_dump(mode="json")
        return {**section, "metrics": list(pipeline.spec.metrics), "threads": pipeline.spec.train.threads, **task_and_seed(pipeline)}

    def inputs(self, context: Context, parents: Mapping[str, Manifest]) -> list[Input]:
        """The content of the test rows, the schema, the weights, and the user's own code."""
        prepare, train = parents["prepare"], parents["train"]
        found = [prepare.input("encoded-test", "tensors-v1"), prepare.input("schema", "sha256"), prepare.input("test-rows", "table-v1")]
        found += [train.input("model", "sha256"), train.input("weights", "tensors-v1")]
        for shown, path in context.pipeline.spec.train.model.code(context.pipeline.base):
            found.append(Input("code", {"sha256": context.hashed(path)}, shown))
        return found

    def work(self, context: Context, identity: Identity, parents: Mapping[str, Manifest], out: Path) -> Work:
        """Scores every test row once; every number comes from whole arrays."""
        from pyarrow import parquet as pq

        prepare, train = parents["prepare"], parents["train"]
        spec = context.pipeline.spec
        schema = load_schema(prepare.path("schema"))
        arrays = read_tensors(prepare.path("encoded-test"))
        scores, digest = score_frozen(train, schema, arrays, spec.evaluate.batch_size, spec.train.threads, context.pipeline.base)
        target = schema.task.target
        texts = [target] if _classes(schema) else []
        column = pq.read_table(prepare.path("test-rows"), columns=[target], read_dictionary=texts).column(0)
        truth = np.concatenate([schema.task.truth(chunk) for chunk in column.chunks])
        del column
        outcome = Outcome(truth, scores, _classes(schema))
        report = evaluation(outcome, schema, spec.metrics, spec.evaluate.gates)
        for name in spec.evaluate.slices:
            parts_of = pq.read_table(prepare.path("test-rows"), columns=[name], read_dictionary=[name]).column(0)
            report.setdefault("slices", {})[name] = sliced(parts_of, outcome, spec.metrics)
        write_json(out / "metrics.json", report)
        del truth, outcome  # they have done their work, and are large
        names = list(dict.fromkeys([*schema.keys, target]))
        parts = in_slices(pq.ParquetFile(prepare.path("test-rows")).iter_batches(batch_size=WRITTEN_ROWS, columns=names), WRITTEN_ROWS)
        content = _write_predictions(_predictions(parts, schema, scores), out / "predictions.parquet")
        failed = [gate for gate in report["gates"] if not gate["passed"]]
        for line in [*metric_lines(report), *slice_lines(report.get("slices", {}), spec.metrics)]:
            console.say(f"  {line}")
        for column, found in prepare.results.get("unseen", {}).get("test", {}).items():
            console.say(f"  test: {column}: {found['rows']:,} rows with unseen values ({', '.join(list(found['values'])[:5])})")
        results = {**report, "weights": {"before": digest, "after": digest}}
        artifacts = [Artifact("metrics.json", "metrics"), Artifact("predictions.parquet", "predictions", {"table-v1": content})]
        return Work(artifacts, results, "gate_failed" if failed else "ok")


def score_frozen(
    train: Manifest, schema: Schema, arrays: Mapping[str, np.ndarray], batch_size: int, threads: int, base: Path
) -> tuple[np.ndarray, str]:
    """Scores with frozen weights, float32 [N, classes] or float64 [N, 1], and the weights' digest.

    Raises IntegrityError when the weights are not those of the manifest, or when scoring changed them.
    """
    import torch

    from mlpipe.stages.network import load_net
    from mlpipe.training.batches import as_torch
    from mlpipe.training.loop import outputs_of
    from mlpipe.training.weights import digest_of

    torch.set_num_threads(threads)
    net = load_net(train, schema, base)
    before = digest_of(net.state_dict())
    recorded = train.output("weights")["digest"]["tensors-v1"]
    if before != recorded:
        raise IntegrityError("the weights are not those that the manifest of train names", hint="run mlpipe train again")
    tensors = as_torch({name: array for name, array in arrays.items() if name != "target"}, torch.device("cpu"))
    outputs = outputs_of(net, tensors, batch_size, lambda: release(arrays))
    with torch.inference_mode():
        scores: np.ndarray = schema.task.activate(outputs).numpy()
    if digest_of(net.state_dict()) != before:
        raise IntegrityError(
            "scoring changed the weights: a module writes to its own state in evaluation mode", hint="mend the model's code"
        )
    return scores, before


def _classes(schema: Schema) -> tuple[str, ...]:
    return schema.task.classes if isinstance(schema.task, FittedClassification) else ()


def evaluation(outcome: Outcome, schema: Schema, names: tuple[str, ...], gates: tuple[Gate, ...]) -> dict[str, Any]:
    """The content of metrics.json: rows, each metric (null where it is undefined, with its reason), baseline, gates."""
    values = {name: measured(METRICS[name], outcome) for name in names}
    table = confusion(outcome) if outcome.classes else None
    outcome.made.clear()  # the baseline makes as much again
    trivial = Outcome(outcome.truth, schema.task.baseline(len(outcome.truth)), outcome.classes)
    plain = {name: measured(METRICS[name], trivial) for name in names}
    report: dict[str, Any] = {
        "n": len(outcome.truth),
        **{name: value.value for name, value in values.items()},
        "undefined": {name: value.reason for name, value in values.items() if value.reason is not None},
        "baseline": {name: value.value for name, value in plain.items()},
        "gates": [judged for gate in gates for judged in judge_gate(gate, values[gate.metric], plain[gate.metric])],
    }
    if table is not None:
        report["confusion_matrix"] = table
    return report


def judge_gate(gate: Gate, value: Value, baseline: Value) -> list[dict[str, Any]]:
    """Each bound of a gate with what was observed. An undefined value fails every bound: NaN must not walk through."""
    judged = []
    higher = METRICS[gate.metric].higher_is_better
    bounds = [("at_least", gate.at_least), ("at_most", gate.at_most)]
    if gate.better_than:
        bounds.append(("better_than baseline", baseline.value))
    for bound, limit in bounds:
        if limit is None and not bound.startswith("better"):
            continue
        entry: dict[str, Any] = {"metric": gate.metric, "bound": bound, "limit": limit, "observed": value.value}
        if value.value is None:
            entry |= {"passed": False, "reason": f"{gate.metric} is undefined: {value.reason}"}
        elif limit is None:
            entry |= {"passed": False, "reason": f"the baseline's {gate.metric} is undefined: {baseline.reason}"}
        elif bound == "at_least":
            entry["passed"] = value.value >= limit
        elif bound == "at_most":
            entry["passed"] = value.value <= limit
        else:
            entry["passed"] = value.value > limit if higher else value.value < limit
        judged.append(entry)
    return judged


def metric_lines(report: Mapping[str, Any]) -> list[str]:
    """Metrics beside the baseline, then gates, as lines."""
    lines = [f"test rows {report['n']:,}"]
    for name, base in report["baseline"].items():
        value = report[name]
        shown = f"{value:.6g}" if value is not None else f"undefined ({report['undefined'][name]})"
        lines.append(f"{name} {shown}  (baseline {f'{base:.6g}' if base is not None else 'undefined'})")
    return lines + [gate_line(gate) for gate in report["gates"]]


def gate_line(gate: Mapping[str, Any]) -> str:
    """One gate in words."""
    limit = "undefined" if gate["limit"] is None else f"{gate['limit']:.6g}"
    told = gate.get("reason") or f"it is {gate['observed']:.6g}"
    return f"gate {'passed' if gate['passed'] else 'FAILED'}: {gate['metric']} {gate['bound']} {limit}: {told}"


def in_slices(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of exactly `rows`, however they were cut before; the last may have fewer."""
    import pyarrow as pa

    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        held.append(batch)
        count += batch.num_rows
        while count >= rows:
            whole = pa.Table.from_batches(held)
            yield from whole.slice(0, rows).combine_chunks().to_batches()
            held = whole.slice(rows).to_batches()
            count -= rows
    if count:
        yield from pa.Table.from_batches(held).combine_chunks().to_batches()


def _predictions(parts: Iterable[pa.RecordBatch], schema: Schema, scores: np.ndarray) -> Iterator[pa.RecordBatch]:
    """Key columns, target, prediction, and for classes a score each, some rows at a time."""
    import pyarrow as pa

    start = 0
    for part in parts:
        mine = scores[start : start + part.num_rows]
        start += part.num_rows
        columns = dict(zip(part.schema.names, part.columns, strict=True))
        yield pa.record_batch({**columns, **prediction_columns(schema.task.decode(mine), mine, _classes(schema))})


def prediction_columns(labels: np.ndarray, scores: np.ndarray, classes: tuple[str, ...]) -> dict[str, Any]:
    """`prediction`, then `score_<class>` for each class; the same in predictions.parquet and in what predict writes."""
    import pyarrow as pa

    if not classes:
        return {"prediction": pa.array(np.asarray(labels, dtype=np.float64))}
    named = {f"score_{name}": pa.array(np.ascontiguousarray(scores[:, i], dtype=np.float64)) for i, name in enumerate(classes)}
    return {"prediction": pa.array(labels.tolist(), pa.string()), **named}


def _write_predictions(batches: Iterator[pa.RecordBatch], path: Path) -> str:
    """Writes the rows; returns their `table-v1`."""
    import pyarrow as pa
    from pyarrow import parquet as pq

    first = next(batches)
    kinds = [
        (f.name, "number" if f.type == pa.float64() else "timestamp" if pa.types.is_timestamp(f.type) else "text") for f in first.schema
    ]
    digest = TableDigest(kinds)
    with pq.ParquetWriter(path, first.schema, compression="zstd") as writer:
        for batch in chain([first], batches):
            digest.update(batch)
            writer.write_batch(batch)
    return digest.hexdigest()
