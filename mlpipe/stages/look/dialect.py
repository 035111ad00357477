"""How a data file is written: its kind, encoding, delimiter and header, guessed once, for `mlpipe init`.

Nothing is guessed from a part where the whole decides: the encoding must decode every byte. The delimiter and the header are
guessed from the first megabyte; the reader then holds every row to them and names the line that does not fit.
"""

from __future__ import annotations

import codecs
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mlpipe.errors import DataError, SpecError, did_you_mean, listed
from mlpipe.sources import AnySource
from mlpipe.sources.base import KIND_OF_ENDING
from mlpipe.sources.csv import Csv
from mlpipe.sources.jsonl import Jsonl
from mlpipe.sources.parquet import Parquet
from mlpipe.sources.streams import ENDINGS, open_bytes
from mlpipe.stages.look.encoding import encoding
from mlpipe.stages.look.layout import layout

SAMPLE = 1 << 20


@dataclass
class Dialect:
    """A source that gives every cell as it stands, the settings the pipeline file must state, and the evidence for each."""

    source: AnySource
    settings: dict[str, Any]
    notes: dict[str, list[str]] = field(default_factory=dict)
    quoted: frozenset[str] = frozenset()  # JSON names whose every value is a string: never retyped
    headless: bool = False


def dialect(files: list[Path], target: str | None, base: Path, reader: Mapping[str, Any] | None = None) -> Dialect:
    """Looks at files that make up one table; paths are written relative to `base`. Raises DataError when they cannot be read."""
    if not files:
        raise DataError("no data file was named", hint="mlpipe init DATA --target COLUMN")
    for file in files:
        if not file.exists():
            raise DataError(f"there is no file {file}", hint="check the path; it is relative to the current folder")
        if file.is_dir():
            raise DataError(f"{file} is a folder, not a file", hint=f"name its files, such as {file}/*.csv")
    written = [Path(os.path.relpath(os.path.abspath(file), base)).as_posix() for file in files]  # noqa: PTH100 (links stay as they are)
    path: Any = written[0] if len(written) == 1 else written
    kinds = {_kind(file) for file in files}
    if len(kinds) > 1:
        raise DataError(f"the files are of different kinds: {listed(sorted(kinds))}", hint="one table has files of one kind")
    kind = kinds.pop()
    settings: dict[str, Any] = {"kind": kind, "path": path}
    if kind == "parquet":
        return Dialect(Parquet(path=path, missing=()), settings)
    if kind == "jsonl":
        return Dialect(Jsonl(path=path, missing=()), settings, quoted=_quoted(files))
    return _delimited(files, target, settings, reader or {})


def _kind(file: Path) -> str:
    """The source kind by ending, else by the first bytes."""
    stem = Path(file.stem) if file.suffix.lower() in ENDINGS else file
    ending = stem.suffix.lower()
    with open_bytes(file) as raw:
        head = raw.read(512)
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"PK\x03\x04") and ending not in (".xlsx", ".ods"):
        raise DataError(f"{file.name} is a zip archive", hint="unpack it first; gz, bz2, xz and zst are read as they are")
    if ending in (".xlsx", ".xls", ".ods"):
        raise DataError(f"{file.name} is a spreadsheet, which no source kind reads yet", hint="save the sheet as CSV in UTF-8")
    if ending == ".json":
        if head.lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"{"):
            return "jsonl"
        raise DataError(f"{file.name} is not JSON Lines", hint="write one JSON object a line, for example: jq -c '.[]'")
    return KIND_OF_ENDING.get(ending, "csv")


def _quoted(files: list[Path]) -> frozenset[str]:
    """The JSON names that never hold a number or a boolean."""
    seen: set[str] = set()
    other: set[str] = set()
    for file in files:
        with open_bytes(file) as raw:
            for line in raw:
                try:
                    record = json.loads(line)
                except ValueError:
                    continue  # the source says what is wrong with it, and where
                if isinstance(record, dict):
                    seen.update(name for name, value in record.items() if isinstance(value, str))
                    other.update(name for name, value in record.items() if value is not None and not isinstance(value, str))
    return frozenset(seen - other)


def _delimited(files: list[Path], target: str | None, settings: dict[str, Any], reader: Mapping[str, Any]) -> Dialect:
    notes: dict[str, list[str]] = {}
    if "encoding" not in reader:
        encodings = {file.name: encoding(file) for file in files}
        if len({name for name, _ in encodings.values()}) > 1:
            said = [f"{file}: {name}" for file, (name, _) in encodings.items()]
            raise DataError("the files are in different encodings", faults=said, hint="convert them all to UTF-8")
        name, why = encodings[files[0].name]
        if name != "utf-8":
            settings["encoding"], notes["encoding"] = name, [why]
    sample, whole = _sample(files[0], {**settings, **reader}.get("encoding", "utf-8"))
    found = layout(sample, target, whole=whole, fixed=dict(reader))
    settings |= found.settings
    notes |= found.notes
    settings |= reader
    return Dialect(as_read(settings), settings, notes, headless=found.headless)


def as_read(settings: Mapping[str, Any]) -> AnySource:
    """A source that gives every cell as it stands. Raises SpecError for settings that its kind does not have."""
    from pydantic import TypeAdapter, ValidationError

    asked = {name: value for name, value in settings.items() if name not in ("missing", "missing_by_column", "strip", "replace")}
    try:
        source: AnySource = TypeAdapter[Any](AnySource).validate_python({**asked, "missing": ()})
    except ValidationError as fault:
        first = fault.errors()[0]
        name = ".".join(map(str, first["loc"][1:]))
        known = sorted(set(type(Csv(path="x")).model_fields)) if settings["kind"] == "csv" else []
        raise SpecError(f"--reader {name}: {first['msg'].lower()}", hint=did_you_mean(name, known)) from None
    return source


def _sample(file: Path, name: str) -> tuple[str, bool]:
    """The first megabyte as text, and whether that is all of the file."""
    with open_bytes(file) as raw:
        data = raw.read(SAMPLE)
        whole = not raw.read(1)
    text = codecs.getincrementaldecoder(name)("strict").decode(data, final=False)
    return text.lstrip("\ufeff"), whole
