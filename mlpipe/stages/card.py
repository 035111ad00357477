"""card.md: a model card (Mitchell et al. 2019) with Hugging Face's front matter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlpipe.digest import short
from mlpipe.manifest import Manifest
from mlpipe.schema import Schema
from mlpipe.spec import Pipeline
from mlpipe.stages.evaluate import gate_line

HUB_TASKS = {"classification": "tabular-classification", "regression": "tabular-regression"}

TEMPLATE = """\
---
{{ front }}---

# {{ name }}

{{ description or "A model that predicts `" ~ target ~ "` from a row of a table." }}
`model.onnx` takes raw rows: filling gaps, scaling, vocabularies and label decoding are inside.

## How to call it

`schema.json` lists inputs and outputs; `sample_input.json` has rows, answers and the code that gets them.

| input | type | missing is sent as |
|---|---|---|
{% for i in inputs -%}
| `{{ i.name }}` | {{ i.type }} [batch, 1]{% if i.get("host_step") %} (host step: {{ i.host_step.step }}, format `{{ i.host_step.settings.format }}`){% endif %} | {{ '`""`' if i.missing == "" else "NaN" }} |
{% endfor %}
| output | type |
|---|---|
{% for o in outputs -%}
| `{{ o.name }}` | {{ o.type }} {{ o.shape }} |
{% endfor %}
Values that training did not see share one code with rare ones; missing has a code of its own.

## Data

{{ rows.read }} rows were read, {{ rows.kept }} kept{% for reason, n in rows.dropped.items() %}, {{ n }} dropped ({{ reason }}){% endfor %}: {% for s, v in splits.items() %}{{ s }} {{ v.rows }}{{ ", " if not loop.last else "" }}{% endfor %}.
{% if license %}Licence of the data: {{ license }}.
{% endif %}
{% for note in notes -%}
- {{ note }}
{% endfor %}
## Metrics on {{ report.n }} test rows

| metric | value | trivial baseline |
|---|---|---|
{% for m, b in report.baseline.items() -%}
| {{ m }} | {{ "%.6g" % report[m] if report[m] is not none else "undefined: " ~ report.undefined[m] }} | {{ "%.6g" % b if b is not none else "undefined" }} |
{% endfor %}
{% for gate in gates -%}
- {{ gate }}
{% endfor %}
## Parity

{{ parity.rows }} test rows and {{ parity.awkward.rows }} awkward ones through onnxruntime and through the trained network: the largest difference
of a score is {{ "%.2g" % parity.largest_scaled }} (absolute, or relative for scores above 1), {{ parity.label_flips }} labels changed.

## Limits

The metrics hold for rows like the test rows. Numbers are held within the range that scaling allows, unseen categories are treated alike, and
nothing here says how the model fares on data from another time or place.

## Lineage

{% for stage, m in parents.items() -%}
- {{ stage }}: `{{ m }}`
{% endfor %}
`mlpipe verify .` checks this folder against `lineage/`.
"""


def model_card(pipeline: Pipeline, schema: Schema, parents: Mapping[str, Manifest], contract: Mapping[str, Any], parity: Mapping[str, Any]) -> str:
    """The card's text: data, metrics, limits, lineage."""
    import jinja2

    prepare, report = parents["prepare"].results, parents["evaluate"].results
    spec = pipeline.spec
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True, autoescape=False)  # noqa: S701 (Markdown)
    return environment.from_string(TEMPLATE).render(
        front=_front_matter(pipeline, report),
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


def _front_matter(pipeline: Pipeline, report: Mapping[str, Any]) -> str:
    """YAML as the Hugging Face hub reads it (model-index)."""
    import io

    from ruamel.yaml import YAML

    spec = pipeline.spec
    task = HUB_TASKS[spec.task.kind]
    metrics = [{"type": name, "value": round(report[name], 6)} for name in report["baseline"] if report[name] is not None]
    result = {"task": {"type": task}, "dataset": {"name": spec.name, "type": spec.name}, "metrics": metrics}
    front = {
        "library_name": "onnx",
        "pipeline_tag": task,
        "tags": ["mlpipe", "onnx", "tabular", spec.task.kind],
        "model-index": [{"name": spec.name, "results": [result]}],
    }
    text = io.StringIO()
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.width = 10_000
    yaml.dump(front, text)
    return text.getvalue()
