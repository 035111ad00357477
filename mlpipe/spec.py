"""The pipeline file: YAML 1.2 to frozen settings, all faults at once, each with its line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError, field_validator, model_validator

from mlpipe.base import Settings
from mlpipe.checks import AnyCheck
from mlpipe.columns import Column
from mlpipe.errors import SpecError, did_you_mean, listed
from mlpipe.exporters import AnyTarget
from mlpipe.exporters.targets import Onnx
from mlpipe.features import AnyFeature
from mlpipe.metrics import METRICS
from mlpipe.models import AnyModel
from mlpipe.models.mlp import Mlp
from mlpipe.sources import AnySource
from mlpipe.splits import AnySplit
from mlpipe.splits.column import ColumnSplit
from mlpipe.splits.random import RandomSplit
from mlpipe.splits.time import TimeSplit
from mlpipe.tasks import AnyTask
from mlpipe.training.optimisers import AdamW, AnyOptimiser, AnySchedule, Constant
from mlpipe.yamlfile import apply_override, line_of, parse_yaml, plain

Count = Annotated[int, Field(ge=1)]


def _kind(default: str) -> BeforeValidator:
    """Settings without `kind` are of the kind that stands when the whole is left out, so that one of them can be set alone."""

    def fill(value: Any) -> Any:
        return {"kind": default, **value} if isinstance(value, dict) and "kind" not in value else value

    return BeforeValidator(fill)


Level = Literal["fail", "warn", "off"]


class Leaks(Settings):
    """What is looked for that lets a test look better than the model is.

    All of it warns unless told otherwise: each finding has cases in which it is meant (twins in a table of few columns, a
    customer whose next order is predicted, a feature that is known in time), and only a person can tell.
    `fail` ends prepare with 3, `off` does not look.
    """

    duplicates: Level = "warn"
    groups: Level = "warn"
    time: Level = "warn"
    giveaway: Level = "warn"


class PrepareSpec(Settings):
    """Section `prepare`: where rows come from, how they are split, what becomes of each column."""

    source: AnySource
    test: AnySource | None = None
    split: Annotated[AnySplit, _kind("random")] = RandomSplit()
    features: Annotated[tuple[AnyFeature, ...], Field(min_length=1)]
    keys: tuple[str, ...] = ()
    ignore: dict[str, str] = {}
    checks: tuple[AnyCheck, ...] = ()
    leaks: Leaks = Leaks()

    @field_validator("ignore", mode="before")
    @classmethod
    def _named(cls, value: Any) -> Any:
        """A list of names is as good as a map from names to reasons."""
        return dict.fromkeys(value, "named under prepare.ignore") if isinstance(value, list) else value


class TrainSpec(Settings):
    """Section `train`."""

    model: Annotated[AnyModel, _kind("mlp")] = Mlp()
    optimiser: Annotated[AnyOptimiser, _kind("adamw")] = AdamW()
    schedule: Annotated[AnySchedule, _kind("constant")] = Constant()
    epochs: Count = 30
    batch_size: Count = 256
    patience: Count | None = 5
    monitor: str = "loss"
    min_delta: Annotated[float, Field(ge=0)] = 0.0
    clip_norm: Annotated[float, Field(gt=0)] | None = None
    accumulate: Count = 1
    class_weights: Literal["none", "balanced"] | dict[str, Annotated[float, Field(gt=0)]] = "none"
    trial_epochs: Count = 3
    checkpoint_every: Count = 1
    device: Literal["auto", "cpu", "cuda", "mps", "xpu"] = "auto"
    precision: Literal["32", "bf16", "16"] = "32"
    threads: Count = 1

    @field_validator("precision", mode="before")
    @classmethod
    def _as_text(cls, value: Any) -> Any:
        """32 and 16 may be written as numbers."""
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


class Gate(Settings):
    """A bound on a test metric. Beyond it evaluate exits with 6, and export refuses."""

    metric: str
    at_least: float | None = None
    at_most: float | None = None
    better_than: Literal["baseline"] | None = None

    @model_validator(mode="after")
    def _bounds(self) -> Gate:
        if self.at_least is None and self.at_most is None and self.better_than is None:
            raise ValueError("a gate needs at_least, at_most or better_than")
        return self


class EvaluateSpec(Settings):
    """Section `evaluate`. Without `metrics` the task's usual ones are computed."""

    metrics: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    gates: tuple[Gate, ...] = ()
    slices: tuple[str, ...] = ()
    batch_size: Count = 8192


class ExportSpec(Settings):
    """Section `export`."""

    targets: Annotated[tuple[AnyTarget, ...], Field(min_length=1, max_length=1)] = (Onnx(),)
    allow_failed_gate: bool = False
    data_license: str | None = None
    description: str | None = None


class PipelineSpec(Settings):
    """A pipeline file."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=100)]
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    task: AnyTask
    prepare: PrepareSpec
    train: TrainSpec = TrainSpec()
    evaluate: EvaluateSpec = EvaluateSpec()
    export: ExportSpec = ExportSpec()

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics to compute: those asked for, then those that gates speak of."""
        named = [*(self.evaluate.metrics or self.task.default_metrics), *(gate.metric for gate in self.evaluate.gates)]
        return tuple(dict.fromkeys(named))

    def raw_columns(self) -> dict[str, Column]:
        """Every raw column that the pipeline reads, by name and with its type: features, target, keys, split columns."""
        columns = {column: feature.raw(column) for feature in self.prepare.features for column in feature.columns}
        columns[self.task.target] = self.task.raw()
        for name in (*self.prepare.keys, *self.prepare.split.columns()):
            columns.setdefault(name, Column(name=name, type="text"))
        if isinstance(self.prepare.split, TimeSplit) and columns[self.prepare.split.by].type != "timestamp":
            columns[self.prepare.split.by] = self.prepare.split.raw()
        return columns

    def feature_columns(self) -> tuple[str, ...]:
        """The columns that the model takes."""
        return tuple(column for feature in self.prepare.features for column in feature.columns)

    def faults(self) -> list[tuple[tuple[str | int, ...], str]]:
        """What is wrong between sections, as (where, what)."""
        found: list[tuple[tuple[str | int, ...], str]] = []
        seen: dict[str, int] = {}
        target = self.task.target
        for i, feature in enumerate(self.prepare.features):
            for j, column in enumerate(feature.columns):
                at = ("prepare", "features", i, "columns", j)
                if column == target:
                    found.append((at, f"{column!r} is the target; as a feature it would give the answer away"))
                if column in seen:
                    found.append((at, f"{column!r} stands in two features; a column has one"))
                if column in self.prepare.ignore:
                    found.append((at, f"{column!r} is under prepare.ignore too"))
                if column in RESERVED[self.task.kind]:
                    found.append((at, f"{column!r} is a name of an output of the exported graph; rename the column"))
                seen[column] = i
        for i, key in enumerate(self.prepare.keys):
            if key == target:
                found.append((("prepare", "keys", i), f"{key!r} is the target"))
            if key in self.prepare.keys[:i]:
                found.append((("prepare", "keys", i), f"{key!r} stands twice"))
        if target in self.prepare.ignore:
            found.append((("prepare", "ignore"), f"{target!r} is the target; it cannot be left out"))
        types = {name: column.type for name, column in self.raw_columns().items()}
        for i, column in enumerate(self.evaluate.slices):
            if (kind := types.get(column)) != "text":
                why = f"holds {kind}s, not text" if kind else "is not read; carry it along under prepare.keys"
                found.append((("evaluate", "slices", i), f"{column!r} {why}"))
        if self.train.model.needs and not any(feature.kind in self.train.model.needs for feature in self.prepare.features):
            wanted = " or ".join(self.train.model.needs)
            found.append((("train", "model"), f"{self.train.model.kind} reads text; give it a feature: {{kind: {wanted}, columns: [...]}}"))
        for i, check in enumerate(self.prepare.checks):
            if what := check.fault(types, self.task.kind):
                found.append((("prepare", "checks", i), what))
        split = self.prepare.split
        if isinstance(split, TimeSplit):
            kinds = {c: f.raw(c).type for f in self.prepare.features for c in f.columns}
            if kinds.get(split.by, "timestamp") != "timestamp" or split.by == target:
                found.append((("prepare", "split", "by"), f"{split.by!r} is not a datetime column elsewhere in the file"))
        if isinstance(split, ColumnSplit) and self.raw_columns()[split.by].type != "text":
            found.append(
                (("prepare", "split", "by"), f"{split.by!r} is read as a {self.raw_columns()[split.by].type} elsewhere in the file")
            )
        if isinstance(split, RandomSplit) and split.stratify and self.task.kind != "classification":
            found.append((("prepare", "split", "stratify"), "only classes can be stratified"))
        usable = [name for name, metric in METRICS.items() if metric.task == self.task.kind]
        asked: list[tuple[tuple[str | int, ...], str]] = [
            (("evaluate", "metrics", i), name) for i, name in enumerate(self.evaluate.metrics or ())
        ]
        asked += [(("evaluate", "gates", i, "metric"), gate.metric) for i, gate in enumerate(self.evaluate.gates)]
        asked += [(("train", "monitor"), self.train.monitor)] if self.train.monitor != "loss" else []
        for where, name in asked:
            if name not in usable:
                hint = did_you_mean(name, usable)
                what = f"{name!r} is no metric of {self.task.kind}" + (f"; {hint}" if hint else f" (there are: {listed(usable, 20)})")
                found.append((where, what))
        if self.train.class_weights != "none" and self.task.kind != "classification":
            found.append((("train", "class_weights"), "only classes have weights"))
        if self.train.batch_size == 1 and getattr(self.train.model, "normalisation", "none") == "batch":
            found.append((("train", "batch_size"), "batch normalisation needs batches of two rows or more"))
        return found


RESERVED = {"classification": ("label", "probability"), "regression": ("prediction",)}


@dataclass(frozen=True)
class Pipeline:
    """A pipeline file as read: its settings, the folder that its paths are relative to, and its own name."""

    spec: PipelineSpec
    base: Path
    file: Path


def load_pipeline(file: Path, overrides: Sequence[str] = ()) -> Pipeline:
    """Reads and checks a pipeline file, `--set a.b=c` applied. Raises SpecError with every fault and its line."""
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        names = [p.name for p in file.parent.glob("*.y*ml")] if file.parent.is_dir() else []
        raise SpecError(
            f"there is no pipeline file {file}", hint=did_you_mean(file.name, names) or "mlpipe init DATA --target COLUMN writes one"
        ) from None
    except (OSError, UnicodeDecodeError) as fault:
        raise SpecError(f"{file} cannot be read: {fault}") from None
    tree = parse_yaml(text, file)
    if not isinstance(tree, dict):
        raise SpecError(f"{file} holds no sections", hint="a pipeline file begins with name:, task:, prepare:")
    for override in overrides:
        apply_override(tree, override)
    try:
        spec = PipelineSpec.model_validate(plain(tree))
        faults: list[tuple[tuple[str | int, ...], str, str | None]] = [(where, what, None) for where, what in spec.faults()]
    except ValidationError as fault:
        errors = fault.errors()
        inner = [error for error in errors if not (error["type"] == "too_short" and any(_below(error, other) for other in errors))]
        faults = [(_path(error["loc"], tree), *_worded(error)) for error in inner]
    if faults:
        set_paths = {override.partition("=")[0].strip() for override in overrides}
        lines = [_fault_line(file, tree, where, what, hint, set_paths) for where, what, hint in faults]
        raise SpecError(f"{file} is not valid ({len(lines)} fault{'s' * (len(lines) > 1)})", faults=list(dict.fromkeys(lines)))
    return Pipeline(spec, file.resolve().parent, file)


def _below(error: Any, other: Any) -> bool:
    """Whether another fault lies inside this one (a list that lost its only, faulty entry is not also too short)."""
    return len(other["loc"]) > len(error["loc"]) and other["loc"][: len(error["loc"])] == error["loc"]


def _path(loc: tuple[int | str, ...], tree: Any) -> tuple[int | str, ...]:
    """A pydantic location without the tags of unions: only what the file itself has (and a last name that is missing)."""
    path: list[int | str] = []
    node = tree
    for i, part in enumerate(loc):
        if isinstance(node, dict) and (part in node or (i == len(loc) - 1 and isinstance(part, str))):
            path.append(part)
            node = node.get(part)
        elif isinstance(node, list) and isinstance(part, int) and part < len(node):
            path.append(part)
            node = node[part]
    return tuple(path)


def _worded(error: Any) -> tuple[str, str | None]:
    """A pydantic error in our words, and a hint."""
    kind, value, context = error["type"], error.get("input"), error.get("ctx", {})
    name = str(error["loc"][-1]) if error["loc"] else ""
    if kind == "extra_forbidden":
        known = _known_names(error["loc"][:-1])
        return f"unknown name {name!r}", did_you_mean(name, known) or (f"known here: {listed(known, 20)}" if known else None)
    if kind == "missing":
        return f"{name!r} is missing", None
    if kind == "union_tag_not_found":
        tags = [str(tag) for tag in _tags(error["loc"])]
        return "`kind` is missing", f"one of: {listed(tags)}" if tags else None
    if kind == "union_tag_invalid":
        tags = [tag.strip(" '") for tag in str(context.get("expected_tags", "")).split(",")]
        return f"unknown kind {context.get('tag')!r}", did_you_mean(str(context.get("tag")), tags) or f"one of: {listed(tags)}"
    if kind == "string_type":
        return f"{value!r} is not text", "put it in quotes" if isinstance(value, (int, float, bool)) else None
    if kind == "value_error":
        return str(context.get("error", error["msg"])), None
    if kind == "literal_error":
        choices = [choice.strip(" '") for choice in str(context.get("expected", "")).replace(" or ", ",").split(",")]
        return f"{value!r} is none of {listed(choices)}", did_you_mean(str(value), choices)
    if kind == "finite_number":
        return f"{value!r} is not a finite number", None
    shown = json.dumps(value, default=str)[:60]
    return f"{error['msg'][0].lower()}{error['msg'][1:]} (it is {shown})", None


def _schema_at(loc: Sequence[int | str]) -> dict[str, Any]:
    """The part of the JSON schema that describes a location."""
    root = PipelineSpec.model_json_schema()

    def deref(node: dict[str, Any]) -> dict[str, Any]:
        while "$ref" in node:
            node = root["$defs"][node["$ref"].rsplit("/", 1)[1]]
        return node

    node: dict[str, Any] = root
    for part in loc:
        node = deref(node)
        options = [node, *(deref(option) for option in node.get("anyOf", []))]
        for option in options:
            mapping = option.get("discriminator", {}).get("mapping", {})
            if isinstance(part, str) and part in mapping:
                node = deref({"$ref": mapping[part]})
                break
            if isinstance(part, str) and part in option.get("properties", {}):
                node = option["properties"][part]
                break
            if isinstance(part, int) and "items" in option:
                node = option["items"]
                break
    return deref(node)


def _known_names(loc: Sequence[int | str]) -> list[str]:
    return list(_schema_at(loc).get("properties", {}))


def _tags(loc: Sequence[int | str]) -> list[str]:
    node = _schema_at(loc)
    options = [node, *node.get("anyOf", [])]
    return [tag for option in options for tag in option.get("discriminator", {}).get("mapping", {})]


def _fault_line(file: Path, tree: Any, where: Sequence[int | str], what: str, hint: str | None, set_paths: set[str]) -> str:
    dotted = ".".join(map(str, where))
    tail = f" ({hint})" if hint else ""
    if any(dotted == path or dotted.startswith(f"{path}.") for path in set_paths):
        return f"--set {dotted}: {what}{tail}"
    line = line_of(tree, where)
    return f"{file.name}, line {line}: {dotted}: {what}{tail}" if dotted else f"{file.name}, line {line}: {what}{tail}"


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a pipeline file, for editors."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **PipelineSpec.model_json_schema(), "title": "mlpipe pipeline"}
