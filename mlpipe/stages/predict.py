"""`mlpipe predict`: rows in, labels and scores out, by onnxruntime alone. Neither torch nor pandas is imported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from mlpipe.base import read_json
from mlpipe.columns import Column
from mlpipe.console import console
from mlpipe.errors import DataError, IntegrityError, NotReadyError, SpecError
from mlpipe.exporters.parity import in_batches
from mlpipe.features.encode import feed
from mlpipe.features.tokeniser import Tokeniser, tokenisers
from mlpipe.manifest import load as load_manifest
from mlpipe.run import broken_outputs
from mlpipe.sources import AnySource
from mlpipe.sources.base import KIND_OF_ENDING, Source
from mlpipe.sources.documents import Documents
from mlpipe.sources.streams import ENDINGS as PACKED_ENDINGS
from mlpipe.stages.ahead import ahead, mapped
from mlpipe.stages.evaluate import prediction_columns
from mlpipe.stages.output import RowsWriter
from mlpipe.stages.rows import Typed, typed_rows
from mlpipe.stages.scoring import load_exported
from mlpipe.stages.strangers import count_cut, count_strangers

if TYPE_CHECKING:
    import pyarrow as pa

CONTRACT = "mlpipe/export/v1"


@dataclass(frozen=True)
class Predicted:
    """What predict did."""

    rows: int
    output: Path
    ignored: tuple[str, ...]
    unseen: dict[str, dict[str, int]]  # by column: values without a code of their own, and how many rows have them
    cut: dict[str, tuple[int, int, str]]  # by column: texts that are longer than what is read of them; how much that is, and of what


def predict(
    export: Path,
    rows: Path,
    output: Path,
    *,
    carry: Sequence[str] = (),
    carry_all: bool = False,
    reader: Mapping[str, Any] | None = None,
) -> Predicted:
    """Scores every row of a file of any kind, or of a folder of documents, and writes `output`, whole or not at all.

    `carry` are columns of the input to carry along (key columns are carried by themselves); `reader` changes how the
    file is read. Raises NotReadyError for a folder that is no export, DataError for rows that cannot be read or lack a column.
    """
    if output.exists() and rows.exists() and output.samefile(rows):
        raise SpecError(f"{output} is the file that is read; it would be lost", hint="choose another name for the output")
    if export.resolve() in output.resolve().parents:
        raise SpecError(f"{output} lies inside the export folder, which holds only what its manifest lists", hint="write it elsewhere")
    contract = contract_of(export)
    with TemporaryDirectory(prefix="mlpipe-predict-") as aside:
        source = source_of(contract, rows, dict(reader or {})).local(rows.parent.resolve(), Path(aside) / "rows")
        return _scored(export, contract, source, rows, output, list(carry), carry_all)


def _scored(
    export: Path, contract: dict[str, Any], source: Source, rows: Path, output: Path, carry: Sequence[str], carry_all: bool
) -> Predicted:
    """Reads, scores, writes."""
    model = load_exported(export / contract["model"], threads=1)
    columns = [Column.model_validate(entry["column"]) for entry in contract["inputs"]]
    steps = tokenisers([{"column": e["name"], **e["host_step"]} for e in contract["inputs"] if "host_step" in e], export)
    base = rows.parent.resolve()
    names = [name for _, file in source.files(base) for name in source.names(file)]
    for note in source.notes:
        console.say(f"  {note}")
    known = {column.name for column in columns}
    own = PLACES if isinstance(source, Documents) else ()  # a row says which document it came from
    kept = [key for key in (*own, *contract["keys"]) if key in names]
    carried = list(dict.fromkeys([*kept, *(names if carry_all else carry)]))
    extra = [Column(name=name, type="text") for name in carried if name not in known]
    ignored = tuple(name for name in dict.fromkeys(names) if name not in known and name not in carried and name != contract["target"])
    classes = tuple(contract["classes"])
    taken = {"prediction", *(f"score_{name}" for name in classes)}
    if clash := [name for name in carried if name in taken]:
        raise SpecError(f"the column {clash[0]!r} cannot be carried: the output has one of that name", hint="rename it in the input")
    known_values = {entry["name"]: frozenset(entry["values"]) for entry in contract["inputs"] if "values" in entry}
    unseen: dict[str, dict[str, int]] = {}
    read = {entry["name"]: int(entry["text"]["characters_read"]) for entry in contract["inputs"] if "text" in entry}
    cut = dict.fromkeys(read, 0)
    count = 0
    with RowsWriter(output) as writer, console.progress("predicting") as bar:

        def score(chunk: pa.RecordBatch) -> tuple[pa.RecordBatch, dict[str, Any]]:
            scores, labels = in_batches(model, feed(chunk, columns, steps), SLICE)
            made = prediction_columns(labels if labels is not None else scores[:, 0], scores, classes)
            return chunk, {**{name: _plain(chunk.column(name)) for name in carried}, **made}

        for chunk, made in mapped(score, _sliced(ahead(typed_rows(source, base, [*columns, *extra])))):
            writer.write(made)
            for name, values in known_values.items():
                for value, found in count_strangers(chunk.column(name), values).items():
                    mine = unseen.setdefault(name, {})
                    mine[value] = mine.get(value, 0) + found
            for name, characters in read.items():
                cut[name] += count_cut(chunk.column(name), characters)
            count += chunk.num_rows
            bar.advance(chunk.num_rows, f"rows {count:,}")
        if not count:
            raise DataError(f"{rows.name} has no rows", hint="is it the right file?")
    return Predicted(count, output, ignored, unseen, _cut(cut, read, steps))


def _cut(cut: Mapping[str, int], read: Mapping[str, int], steps: Mapping[str, Tokeniser]) -> dict[str, tuple[int, int, str]]:
    """Texts that were not read to their end, by column."""
    found = {name: (rows, read[name], "characters") for name, rows in cut.items() if rows}
    return found | {name: (step.cut, step.length, "tokens") for name, step in steps.items() if step.cut}


TABLES = (".csv", ".tsv", ".tab", ".jsonl", ".ndjson", ".parquet", ".pq", ".feather", ".arrow")  # rows, also to a model of documents
PLACES = ("path", "chunk", "table", "row")
PREDICT_ROWS = 16_384
SLICE = 1024  # rows a run: what the graph makes on the way then stays in the processor's cache


def _sliced(chunks: Iterator[Typed]) -> Iterator[pa.RecordBatch]:
    """Chunks of a size that threads can share."""
    for chunk in chunks:
        for start in range(0, chunk.rows.num_rows, PREDICT_ROWS):
            yield chunk.rows.slice(start, PREDICT_ROWS)


def _plain(array: Any) -> pa.Array:
    """A column as it is written: text decoded."""
    import pyarrow as pa

    return array.cast(pa.string()) if pa.types.is_dictionary(array.type) else array


def contract_of(export: Path) -> dict[str, Any]:
    """schema.json of an export folder."""
    path = export / "schema.json"
    try:
        contract = read_json(path)
    except FileNotFoundError:
        nested = export / "export" / "schema.json"
        hint = f"try {export / 'export'}" if nested.is_file() else "name the folder that mlpipe export wrote: runs/NAME/export"
        raise NotReadyError(f"{export} is no export: there is no {path.name} in it", hint=hint) from None
    except (OSError, ValueError) as fault:
        raise IntegrityError(f"{path} cannot be read: {fault}") from None
    manifest = load_manifest(export)
    if manifest is not None and (faults := broken_outputs(manifest)):
        raise IntegrityError(f"{export} is not what its manifest says", faults=faults, hint="export it again, or put the files back")
    if not isinstance(contract, dict) or contract.get("schema") != CONTRACT:
        raise NotReadyError(f"{path} is not the schema of an export ({CONTRACT})", hint="name the folder runs/NAME/export")
    return contract


def source_of(contract: Mapping[str, Any], rows: Path, changes: dict[str, Any]) -> Source:
    """The recorded reader on this file; its kind is the file's own where the ending says so."""
    if not rows.exists():
        raise DataError(f"there is no file {rows}", hint="check the path; it is relative to the current folder")
    suffixes = [suffix for suffix in rows.suffixes if suffix.lower() not in PACKED_ENDINGS]
    recorded = dict(contract["reader"])
    kind = changes.pop("kind", None) or _kind(rows, recorded["kind"], suffixes[-1].lower() if suffixes else "")
    settings: dict[str, Any] = {name: recorded[name] for name in ("missing", "missing_by_column", "replace", "strip")}
    if kind == recorded["kind"]:
        settings = {**recorded}
    elif not settings["strip"]:
        del settings["strip"]  # not asked for: what is usual for this kind
    if "header" not in changes and isinstance(settings.get("header"), list) and kind == "csv":
        width = _width(recorded, rows)
        if width == len(settings["header"]) - 1 and contract["target"] in settings["header"]:
            settings["header"] = [name for name in settings["header"] if name != contract["target"]]  # rows without the target
    inputs = {entry["name"] for entry in contract["inputs"]}
    for name in ("missing_by_column", "replace"):  # of columns that the rows must have: not of the target, say
        settings[name] = {column: meant for column, meant in recorded[name].items() if column in inputs}
    if "path" in changes:
        raise SpecError("--reader path: the rows are named on the command line, not here")
    if "compression" in settings and "compression" not in changes:
        settings["compression"] = "auto"
    if kind == "sql":
        raise SpecError("predict reads rows from a file, not from a database", hint="write the answer to a file first")
    settings = {**settings, **changes, "kind": kind, "path": rows.name}
    try:
        source: Source = TypeAdapter[Any](AnySource).validate_python(settings)
    except ValidationError as fault:
        first = fault.errors()[0]
        raise SpecError(f"--reader {'.'.join(map(str, first['loc'][1:]))}: {first['msg']}") from None
    return source


def _kind(rows: Path, recorded: str, ending: str) -> str:
    """The kind of source for rows, by what they are and what the model was made from. Raises DataError for a folder of no documents."""
    if recorded == "documents" and ending not in TABLES:
        return recorded
    if rows.is_dir():
        raise DataError(f"{rows} is a folder, and this model was made from {recorded}", hint="name a file, or say --reader kind=documents")
    return KIND_OF_ENDING.get(ending, recorded)


def _width(recorded: Mapping[str, Any], rows: Path) -> int | None:
    """How many fields the first record of a file without a header line has."""
    source: Any = TypeAdapter[Any](AnySource).validate_python({**recorded, "path": rows.name, "header": True, "compression": "auto"})
    try:
        return len(source.names(rows))
    except DataError:
        return None
