"""card.md: a model card (Mitchell et al. 2019) with Hugging Face's front matter."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mlpipe.digest import short
from mlpipe.features.text import FittedText
from mlpipe.features.tokeniser import STEP
from mlpipe.manifest import Manifest
from mlpipe.schema import Schema
from mlpipe.spec import Pipeline
from mlpipe.stages.evaluate import gate_line

HUB_TASKS = {"classification": "tabular-classification", "regression": "tabular-regression"}

TEMPLATE = Path(__file__).with_name("card.jinja")


def model_card(
    pipeline: Pipeline, schema: Schema, parents: Mapping[str, Manifest], contract: Mapping[str, Any], parity: Mapping[str, Any]
) -> str:
    """The card's text: data, metrics, limits, lineage."""
    import jinja2

    texts = [feature for feature in schema.features if isinstance(feature, FittedText)]
    tokens = [entry for entry in contract["inputs"] if entry.get("host_step", {}).get("step") == STEP]
    prepare, report = parents["prepare"].results, parents["evaluate"].results
    spec = pipeline.spec
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True, autoescape=False)  # noqa: S701 (Markdown)
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        front=_front_matter(pipeline, report, bool(schema.tensors.text)),
        texts=texts,
        tokens=[{**entry, "variable": f"rows_{n}"} for n, entry in enumerate(tokens, 1)],
        at_once=contract.get("rows_at_once"),
        name=spec.name,
        description=spec.export.description,
        target=schema.task.target,
        inputs=contract["inputs"],
        outputs=contract["outputs"],
        rows=prepare["rows"],
        splits=prepare["splits"],
        license=spec.export.data_license,
        notes=prepare["notes"],
        report=report,
        gates=[gate_line(gate) for gate in report["gates"]],
        parity=parity,
        parents={name: f"{short(manifest.id)}" for name, manifest in parents.items()},
    )


def _front_matter(pipeline: Pipeline, report: Mapping[str, Any], reads_text: bool) -> str:
    """YAML as the Hugging Face hub reads it (model-index)."""
    import io

    from ruamel.yaml import YAML

    spec = pipeline.spec
    task = "text-classification" if reads_text and spec.task.kind == "classification" else HUB_TASKS[spec.task.kind]
    metrics = [{"type": name, "value": round(report[name], 6)} for name in report["baseline"] if report[name] is not None]
    result = {"task": {"type": task}, "dataset": {"name": spec.name, "type": spec.name}, "metrics": metrics}
    front = {
        "library_name": "onnx",
        "pipeline_tag": task,
        "tags": ["mlpipe", "onnx", "text" if reads_text else "tabular", spec.task.kind],
        "model-index": [{"name": spec.name, "results": [result]}],
    }
    text = io.StringIO()
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.width = 10_000
    yaml.dump(front, text)
    return text.getvalue()
