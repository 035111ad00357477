"""`python -m mlpipe.cli.reference` prints docs/reference.md from the code: commands, exit codes, the pipeline file, run folders.

Names, types, defaults and docstrings come from the classes themselves, so that a new kind is on the page once it is in its union.
`MEANINGS` says what a name and a type do not; a field's own description goes before it.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import typer

from mlpipe.base import SPLITS, Settings
from mlpipe.cli import app
from mlpipe.cli.meanings import MEANINGS
from mlpipe.errors import MlpipeError, StoppedError
from mlpipe.features.category import FIRST_KNOWN, MISSING, UNKNOWN
from mlpipe.metrics import METRICS
from mlpipe.sources.documents import Documents, Labels
from mlpipe.spec import RESERVED, EvaluateSpec, ExportSpec, Gate, Leaks, PipelineSpec, PrepareSpec, TrainSpec
from mlpipe.stages.kinds import UNIONS, kind_of, members

SECTIONS: dict[str, Any] = {"prepare": PrepareSpec, "train": TrainSpec, "evaluate": EvaluateSpec, "export": ExportSpec}

# what each stage writes: (file, role, what it is); tests/test_docs.py compares it with the manifests of a run
FILES: dict[str, list[tuple[str, str, str]]] = {
    "prepare": [
        *((f"{name}.parquet", f"{name}-rows", "typed raw rows") for name in SPLITS),
        ("encoder.onnx", "encoder", "the preprocessing, fitted on train rows, as a graph"),
        *((f"encoded/{name}", f"encoded-{name}", "tensors, one .npy file each") for name in SPLITS),
        ("schema.json", "schema", "columns, fitted features, tensors, classes"),
        ("profile.json", "profile", "counts, ranges, quantiles and common values of each column of the train rows"),
    ],
    "train": [
        ("weights.safetensors", "weights", "of the best epoch"),
        ("model.json", "model", "the resolved settings of the network"),
        ("history.csv", "history", "a line for each epoch"),
    ],
    "evaluate": [
        ("metrics.json", "metrics", "metrics, baseline, gates, confusion matrix"),
        ("predictions.parquet", "predictions", "a row for each test row: keys, target, scores"),
    ],
    "export": [
        ("model.onnx", "model", "raw rows in, answers out"),
        ("schema.json", "contract", "inputs and outputs by name, and how rows are read"),
        ("sample_input.json", "sample", "some rows, the answers, and the code that gets them"),
        ("parity.json", "parity", "how far the exported and the trained model differ"),
        ("card.md", "card", "the model card"),
        ("profile.json", "profile", "the same file as prepare's: what `mlpipe drift` compares new rows with"),
        ("lineage", "lineage", "the manifests of the stages before"),
    ],
}


def reference() -> str:
    """The whole page."""
    parts = [*_head(), *_commands(), *_exit_codes(), *_pipeline_file(), *_run_folder(), *_graph()]
    return "\n\n".join(parts) + "\n"


def _head() -> list[str]:
    return [
        "# Reference",
        "Printed from the code by `make docs`; a test compares the two.\nThe [README](../README.md) is the place to begin.",
    ]


def _prose(text: str) -> str:
    """Running text, one sentence a line."""
    paragraphs = [" ".join(block.split()) for block in re.split(r"\n\s*\n", text.strip())]
    paragraphs[0] = paragraphs[0][:1].upper() + paragraphs[0][1:]
    return "\n\n".join(re.sub(r"(?<=[.!?]) (?=[A-Z`])", "\n", paragraph) for paragraph in paragraphs)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _anchor(title: str) -> str:
    return re.sub(r"[^a-z0-9 _-]", "", title.lower()).replace(" ", "-")


# ---- commands


def commands() -> dict[str, Any]:
    """Every command by name."""
    root: Any = typer.main.get_command(app)
    return dict(root.commands)


def options(command: Any) -> list[Any]:
    """The options of a command, its arguments left out."""
    return [p for p in command.params if p.param_type_name == "option"]


def _option(option: Any) -> tuple[str, str, str, str]:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    value = "" if option.is_flag else f"`{option.metavar}`"
    if option.required:
        default = "required"
    elif option.is_flag:
        default = f"`{option.opts[0]}`" if option.default else ""
    else:
        default = "" if option.default is None else f"`{option.default:g}`" if isinstance(option.default, float) else f"`{option.default}`"
    told = f"{option.help} Or the environment variable `{option.envvar}`." if option.envvar else option.help
    return names, value, default, told


def _commands() -> Iterator[str]:
    found = commands()
    shown = [row for command in found.values() for row in map(_option, options(command))]
    common = [row for row in dict.fromkeys(shown) if shown.count(row) > 2]
    yield "## Commands"
    yield _table(["command", "what it does"], ([f"[`{name}`](#mlpipe-{name})", _short(command.help)] for name, command in found.items()))
    yield "Results go to stdout, everything else to stderr.\nEvery command has `--help`.\nThese options are shared by several commands:"
    heads = ["option", "value", "default", "what it does"]
    yield _table(heads, common)
    for name, command in found.items():
        arguments = [p for p in command.params if p.param_type_name == "argument"]
        usage = " ".join(f"{p.metavar}{'...' if p.nargs == -1 else ''}" for p in arguments)
        rows = [_option(option) for option in options(command)]
        told, _, example = command.help.partition(" Example: ")
        yield f"### mlpipe {name}"
        yield f"```sh\nmlpipe {name}{f' {usage}' if usage else ''}{' [OPTIONS]' if rows else ''}\n{example}\n```"
        yield _prose(told)
        own = [(f"`{p.metavar}`", "", "required", p.help) for p in arguments] + [row for row in rows if row not in common]
        if own:
            yield _table(["argument or option", *heads[1:]], own)
        if shared := [row[0] for row in rows if row in common]:
            yield f"Shared options: {', '.join(shared)}."


def _short(text: str) -> str:
    return text.partition(" Example: ")[0].partition(". ")[0].rstrip(".")


# ---- exit codes


def _exit_codes() -> Iterator[str]:
    yield "## Exit codes"
    rows = [("0", "", "Done, or already up to date.")]
    rows.append(("1", "", "A bug: the traceback is shown. For `status`: something is stale."))
    for fault in sorted(MlpipeError.__subclasses__(), key=lambda c: c.exit_code):
        rows.append((str(fault.exit_code), fault.__name__, _line(fault.__doc__)))
    rows.append(("130, 143", StoppedError.__name__, "SIGINT (130) or SIGTERM (143) arrived; a training goes on from its last checkpoint."))
    yield _table(["code", "class", "meaning"], rows)
    yield (
        "A message says what is wrong, where, and one thing to do.\n"
        'With `--json` stdout has one JSON object, on failure too: `{"status": "failed", "exit_code": 6, "error": {...}}`.'
    )


def _line(text: str | None) -> str:
    return " ".join((text or "").split("\n\n")[0].split())


# ---- the pipeline file


def _pipeline_file() -> Iterator[str]:
    yield "## The pipeline file"
    yield (
        "YAML 1.2, so `no` is a text.\n"
        "Unknown names and names that stand twice are refused.\n"
        "All faults of the settings are shown at once, each with its line.\n"
        "Paths are relative to the pipeline file's own folder.\n"
        "`mlpipe schema` prints all of this for editors."
    )
    yield _fields(PipelineSpec)
    for name, section in SECTIONS.items():
        yield f"### Section {name}"
        yield from filter(None, [_prose(re.sub(r"^Section `[a-z]+`[.:]\s*", "", section.__doc__))])
        yield _fields(section)
        if section is EvaluateSpec:
            yield "### Gates"
            yield _prose(Gate.__doc__ or "")
            yield _fields(Gate)
        if section is PrepareSpec:
            yield "### Leaks"
            yield _prose(Leaks.__doc__ or "")
            yield _fields(Leaks)
    for group, union in UNIONS.items():
        yield f"### {group.capitalize()}"
        for member in members(union):
            yield f"#### {group.removesuffix('s')} {kind_of(member)}"
            yield _prose(member.__doc__)
            yield _fields(member)
            if member is Documents:
                yield "##### labels"
                yield _prose(Labels.__doc__ or "")
                yield _fields(Labels)
    yield "### Metrics"
    yield _table(
        ["metric", "task", "better", "meaning"],
        ([f"`{m.name}`", m.task, "higher" if m.higher_is_better else "lower", m.meaning] for m in METRICS.values()),
    )
    yield ("A metric that has no value, such as ROC AUC where the test rows have one class, is `null` with a reason.\nA gate on it fails.")
    yield "### Changing settings: --set"
    yield (
        "`--set a.b=c` puts a value into the file before it is checked; the value is read as YAML.\n"
        "Numbers in the path are places in lists, from 0: `--set evaluate.gates.0.at_least=0.9`.\n"
        "A changed setting changes the ids of the stages that it decides, as if it stood in the file."
    )
    yield "### Variables: ${env:NAME}"
    yield (
        "`${env:NAME}` in a text is replaced by the environment variable; one that is not set is a fault.\n"
        "The `path` and the `url` of a source keep it until they are used: the manifest then names the variable and not its value."
    )


def _fields(settings: Any) -> str:
    schema = settings.model_json_schema()
    rows: list[tuple[str, str, str, str]] = []
    for name, field in settings.model_fields.items():
        if name == "kind":
            rows.insert(0, ("`kind`", f"`{field.default}`", "required", ""))
            continue
        default = "required" if field.is_required() else _default(field.default)
        rows.append((f"`{name}`", _type(schema["properties"][name], schema), default, field.description or _meaning(settings, name)))
    return _table(["setting", "type", "default", "meaning"], rows)


def _meaning(settings: Any, name: str) -> str:
    keys = [*(f"{c.__name__}.{name}" for c in settings.__mro__), name]
    return next((MEANINGS[key] for key in keys if key in MEANINGS), "")


def _default(value: Any) -> str:
    """A default as the file would have it: a kind by its name, a whole section by nothing."""
    if isinstance(value, tuple) and value and isinstance(value[0], Settings):
        return f"`[{{kind: {kind_of(type(value[0]))}}}]`"
    if isinstance(value, Settings):
        return f"`{{kind: {kind_of(type(value))}}}`" if hasattr(value, "kind") else "its defaults"
    return f"`{json.dumps(value)}`"


def _type(node: dict[str, Any], root: dict[str, Any]) -> str:
    """A JSON schema in words."""
    if mapping := node.get("discriminator", {}).get("mapping"):
        return _group(tuple(mapping))
    if "$ref" in node:
        return _named(node["$ref"].rsplit("/", 1)[1])
    if "anyOf" in node:
        return " or ".join(dict.fromkeys(_type(option, root) for option in node["anyOf"]))
    if "const" in node:
        return f"`{json.dumps(node['const']) if node['const'] is True else node['const']}`"
    if "enum" in node:
        return ", ".join(f"`{choice}`" for choice in node["enum"])
    kind = node.get("type")
    if kind == "array":
        first, *others = node.get("prefixItems") or [node["items"]]
        return f"list of {_type(first, root)}" + (f", {1 + len(others)} of them" if others else "")
    if kind == "object":
        values = node.get("additionalProperties")
        return f"map from name to {_type(values, root)}" if isinstance(values, dict) else "map"
    named = {"string": "text", "integer": "whole number", "number": "number", "boolean": "`true`, `false`", "null": "`null`"}
    return " ".join([named.get(str(kind), "anything"), *_bounds(node)])


def _bounds(node: dict[str, Any]) -> Iterator[str]:
    words = {"minimum": "from", "exclusiveMinimum": "above", "maximum": "to", "exclusiveMaximum": "below"}
    for key, word in words.items():
        if key in node:
            yield f"{word} {node[key]:,}"


def _group(kinds: tuple[str, ...]) -> str:
    group = next(group for group, union in UNIONS.items() if {kind_of(c) for c in members(union)} == set(kinds))
    return f"[{group.removesuffix('s')}](#{group})"


def _named(class_name: str) -> str:
    if class_name == Gate.__name__:
        return "[gate](#gates)"
    if class_name == Labels.__name__:
        return "[labels](#labels)"
    if class_name == Leaks.__name__:
        return "[leaks](#leaks)"
    for name, section in SECTIONS.items():
        if section.__name__ == class_name:
            return f"[section](#{_anchor(f'Section {name}')})"
    group = next(group for group, union in UNIONS.items() if class_name in {c.__name__ for c in members(union)})
    return f"[{group.removesuffix('s')}](#{group})"


# ---- what is written


def _run_folder() -> Iterator[str]:
    yield "## The run folder"
    yield (
        "Each stage has a folder in `runs/NAME/`.\n"
        "Beside its artifacts it has `manifest.json`, which lists them with their digests, and `run.json`: "
        "time, host, versions and memory of that one execution, which decide nothing.\n"
        "A stage asks an earlier one for an artifact by its role, never by a file name."
    )
    rows = [(stage, f"`{file}`", role, meaning) for stage, files in FILES.items() for file, role, meaning in files]
    yield _table(["stage", "file or folder", "role", "what it is"], rows)
    yield (
        "Splits without rows have no folder in `encoded/`.\n`runs/NAME/.checkpoints/` holds an interrupted training until it is done.\n"
        "`runs/NAME/.snapshots/` holds what the last prepare fetched from a URL or a database, or read out of documents;\n"
        "`runs/NAME/.documents/` what came of each document, by its content."
    )


def _graph() -> Iterator[str]:
    yield "## The exported graph"
    yield (
        "`model.onnx` has one input for each feature column, of that name and shape `[batch, 1]`.\n"
        "Numbers are `double` with NaN for a missing value; times are `double` too, seconds since 1970-01-01T00:00:00; "
        'categories and texts are `string` with `""` for a missing value; a cell that `missing` or `replace` names may go in as it '
        "stands.\n"
        "A column of the feature `tokens` is `int64 [batch, max_length]`: token ids, 0 behind the end and where the text is missing. "
        "The folder `tokeniser` beside `model.onnx` (and in prepare's result) holds the tokenizer.json that makes them, "
        "`card.md` the code, and `mlpipe predict` does both."
    )
    outputs = {"label": "string [batch]", "probability": "float [batch, classes]", "prediction": "double [batch]"}
    rows = [(task, f"`{name}`", outputs[name]) for task, names in RESERVED.items() for name in names]
    yield _table(["task", "output", "type and shape"], rows)
    yield "Codes of categories inside:"
    codes = [(str(MISSING), "missing"), (str(UNKNOWN), "unknown, or rare in the train rows"), (f"{FIRST_KNOWN} and up", "the known values")]
    yield _table(["code", "value"], codes)


if __name__ == "__main__":
    sys.stdout.write(reference())
