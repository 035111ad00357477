"""How data are written: their kind, and for text their encoding, delimiter and header, guessed once, for `init` and `inspect`.

Nothing is guessed from a part where the whole decides: the encoding must decode every byte. The delimiter and the header are
guessed from the first megabyte; the reader then holds every row to them and names the line that does not fit.
"""

from __future__ import annotations

import codecs
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from mlpipe.base import expand
from mlpipe.errors import DataError, SpecError, did_you_mean, listed
from mlpipe.sources import AnySource
from mlpipe.sources.base import KIND_OF_ENDING, RawRows, Source
from mlpipe.sources.remote import is_far, refuse_secrets
from mlpipe.sources.sql import Sql
from mlpipe.sources.streams import ENDINGS, open_bytes
from mlpipe.stages.look.encoding import encoding
from mlpipe.stages.look.fixed import fixed_width
from mlpipe.stages.look.folder import refused
from mlpipe.stages.look.layout import layout

if TYPE_CHECKING:
    from pydantic import TypeAdapter

SAMPLE = 1 << 20
MOSTLY = 0.95  # with fewer even lines than this a delimiter is none, if columns of fixed width are seen
SQLITE = b"SQLite format 3\0"
BINARY = {b"PAR1": "parquet", b"ARROW1": "arrow", SQLITE: "sql"}
# an address of a database: SQLAlchemy's own kinds, some well-known others, or any with its driver named behind a +
DATABASE = re.compile(
    r"(sqlite|postgres|postgresql|mysql|mariadb|mssql|oracle|duckdb|snowflake|redshift|bigquery|[a-z0-9]+\+[a-z0-9_]+)://"
)
OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
CLEANING = ("missing", "missing_by_column", "strip", "replace")


@dataclass
class Dialect:
    """A source on this machine that gives every cell as it stands, the settings that the pipeline file must state, and their evidence."""

    source: Source
    settings: dict[str, Any]
    notes: dict[str, list[str]] = field(default_factory=dict)
    quoted: frozenset[str] = frozenset()  # JSON names whose every value is a string: never retyped
    headless: bool = False
    folder: TemporaryDirectory[str] | None = None  # what was fetched lies here for as long as it is looked at

    @property
    def title(self) -> str:
        """What is read, for people."""
        if self.settings["kind"] == "sql":
            return str(self.settings.get("table") or "the query")
        path = self.settings["path"]
        return path if isinstance(path, str) else ", ".join(path)


def dialect(
    data: Sequence[str | Path], target: str | None, base: Path, reader: Mapping[str, Any] | None = None, *, table: str | None = None
) -> Dialect:
    """Looks at what makes up one table; paths are written relative to `base`.

    `data` are files, URLs, or one database (an SQLite file, or an address as SQLAlchemy writes it); `table` is a table of the
    database or a sheet of a workbook; `reader` are settings of the source that are given and not guessed. Raises DataError
    when the data cannot be read, SpecError for settings that their kind does not have.
    """
    names = [str(one) for one in data]
    given = dict(reader or {})
    if not names:
        raise DataError("no data file was named", hint="mlpipe init DATA --target COLUMN")
    for name in names:
        try:
            refuse_secrets(name)
        except ValueError as fault:
            raise SpecError(f"the address of the data cannot be taken: {fault}", hint="mlpipe inspect '${env:NAME}'") from None
    for setting in ("path", "url"):
        if setting in given:
            raise SpecError(f"--reader {setting}: what is read is named on the command line, not here")
    if address := _database(names, base):
        return _answer(address, base, given, table)
    written = [name if _far(name) else _relative(name, base) for name in names]
    kinds = {given["kind"] if "kind" in given else _kind(Path(name)) for name in names if not _far(name)}
    kinds |= {given.get("kind") or KIND_OF_ENDING.get(_ending(name.partition("?")[0]), "csv") for name in names if _far(name)}
    if len(kinds) > 1:
        raise DataError(f"the files are of different kinds: {listed(sorted(kinds))}", hint="one table has files of one kind")
    settings: dict[str, Any] = {"kind": kinds.pop(), "path": written[0] if len(written) == 1 else written}
    if table is not None:
        if settings["kind"] not in ("excel", "ods"):
            raise SpecError(f"--table {table}: {names[0]} is neither a database nor a workbook", hint="leave --table out")
        given.setdefault("sheet", int(table) if table.isdigit() else table)
    if settings["kind"] != "csv":
        found = Dialect(*_local({**settings, **given}, base), notes={})
        if settings["kind"] in ("jsonl", "json"):
            found.quoted = _quoted([file for _, file in found.source.files(base)], settings["kind"], given.get("records"))
        return found
    return _delimited(settings, target, base, given)


# ---- what kind it is


def _far(name: str) -> bool:
    return is_far(name) or name.startswith("${env:")


def _relative(name: str, base: Path) -> str:
    path = Path(name)
    if not path.exists():
        raise DataError(f"there is no file {path}", hint="check the path; it is relative to the current folder")
    if path.is_dir():
        raise refused(path)
    return Path(os.path.relpath(os.path.abspath(path), base)).as_posix()  # noqa: PTH100 (links stay as they are)


def _database(names: list[str], base: Path) -> str | None:
    """The address of a database, as it goes into the pipeline file; None when the data are files."""
    first = names[0]
    scheme = DATABASE.match(expand(first) if first.startswith("${env:") else first)
    if scheme and first.startswith("sqlite:///"):
        address = f"sqlite:///{_relative(first.removeprefix('sqlite:///'), base)}"
    elif scheme:
        address = first
    elif Path(first).is_file() and _begins_with(Path(first), SQLITE):
        address = f"sqlite:///{_relative(first, base)}"
    else:
        return None
    if len(names) > 1:
        raise DataError("a database is looked at alone", hint="name one table of it with --table, or join tables in a query")
    return address


def _begins_with(file: Path, magic: bytes) -> bool:
    with file.open("rb") as raw:
        return raw.read(len(magic)) == magic


def _ending(name: str) -> str:
    """The ending that says the kind: that of data.csv.gz is .csv."""
    path = Path(name)
    return (Path(path.stem) if path.suffix.lower() in ENDINGS else path).suffix.lower()


def _kind(file: Path) -> str:
    """The source kind of a file: by its first bytes where they tell, else by its ending."""
    if not file.exists() or file.is_dir():
        _relative(str(file), Path())
    ending = _ending(file.name)
    if ending in (".xlsx", ".xlsm", ".ods"):
        return KIND_OF_ENDING[ending]
    with open_bytes(file) as raw:
        head = raw.read(512)
    for magic, kind in BINARY.items():
        if head.startswith(magic):
            return kind
    if head.startswith(OLD_OFFICE):
        raise DataError(f"{file.name} is an older Excel workbook (.xls)", hint="save it as .xlsx, .ods or CSV")
    if ending in (".feather", ".arrow", ".arrows", ".ipc"):
        return "arrow"
    if ending == ".json":
        return "json" if head.lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"[") or not _is_lines(file) else "jsonl"
    return KIND_OF_ENDING.get(ending, "csv")


def _is_lines(file: Path) -> bool:
    """Whether the first line of a file is a whole JSON object, and a row rather than a document with the rows inside."""
    with open_bytes(file) as raw:
        try:
            first = json.loads(raw.readline())
        except ValueError:
            return False
        nested = isinstance(first, dict) and any(isinstance(value, (list, dict)) for value in first.values())
        return isinstance(first, dict) and not (nested and not raw.readline().strip())


def _quoted(files: list[Path], kind: str, records: str | None) -> frozenset[str]:
    """The JSON names that never hold a number or a boolean."""
    seen: set[str] = set()
    other: set[str] = set()

    def look(record: Any) -> None:
        if isinstance(record, dict):
            seen.update(name for name, value in record.items() if isinstance(value, str))
            other.update(name for name, value in record.items() if value is not None and not isinstance(value, str))

    for file in files:
        with open_bytes(file) as raw:
            try:
                if kind == "json":
                    document = json.load(raw)
                    for step in records.split(".") if records else ():
                        document = document[step]
                    for record in document:
                        look(record)
                else:
                    for line in raw:
                        look(json.loads(line) if line.strip() else None)
            except (ValueError, KeyError, TypeError, RecursionError):
                continue  # the source says what is wrong with it, and where
    return frozenset(seen - other)


# ---- the source


def _adapter() -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter[Any](AnySource)


def as_read(settings: Mapping[str, Any]) -> RawRows:
    """A source that gives every cell as it stands. Raises SpecError for settings that its kind does not have."""
    from pydantic import ValidationError

    asked = {name: value for name, value in settings.items() if name not in CLEANING}
    try:
        source: RawRows = _adapter().validate_python({**asked, "missing": ()})
    except ValidationError as fault:
        first = fault.errors()[0]
        name, what = ".".join(map(str, first["loc"][1:])), first["msg"].removeprefix("Value error, ")
        kind = str(settings["kind"])
        known = sorted(_adapter().json_schema()["$defs"].get(kind.capitalize(), {}).get("properties", {}))
        if first["type"] == "extra_forbidden":
            what = f"{kind} has no setting {name!r}"
            raise SpecError(f"--reader: {what}", hint=did_you_mean(name, known) or f"it has: {listed(known, 30)}") from None
        raise SpecError(f"--reader {name + ': ' if name else ''}{what[0].lower()}{what[1:]}") from None
    return source


def _local(settings: dict[str, Any], base: Path) -> tuple[Source, dict[str, Any]]:
    """The source with everything on this machine, and the settings."""
    source = as_read(settings)
    folder = TemporaryDirectory(prefix="mlpipe-")
    local = source.local(base, Path(folder.name))
    _FOLDERS.append(folder)  # removed when the process ends, or by itself
    return local, settings


_FOLDERS: list[TemporaryDirectory[str]] = []


def _answer(address: str, base: Path, given: dict[str, Any], table: str | None) -> Dialect:
    """A table of a database, or the answer to a query."""
    settings: dict[str, Any] = {"kind": "sql", "url": address, **given}
    if table is not None:
        settings["table"] = table
    if not {"table", "query", "query_file"} & settings.keys():
        tables = Sql(url=address, query="SELECT 1").tables(base)
        if len({name.rpartition(".")[2] for name in tables}) == 1:
            settings["table"] = tables[0]
    if not {"table", "query", "query_file"} & settings.keys():
        if not tables:
            raise DataError(
                f"{Path(address).name if address.startswith('sqlite') else 'the database'} has no tables", hint="is it the right one?"
            )
        raise DataError(
            f"{Path(address).name if address.startswith('sqlite') else 'the database'} has several tables",
            faults=tables,
            hint="choose one with --table NAME",
        )
    found = Dialect(*_local(settings, base))
    if notes := found.source.notes:
        found.notes["url"] = list(notes)
    return found


def _delimited(settings: dict[str, Any], target: str | None, base: Path, given: dict[str, Any]) -> Dialect:
    notes: dict[str, list[str]] = {}
    as_read({**settings, **given})  # what is given is checked before it is used
    first_look, _ = _local({**settings, **{name: value for name, value in given.items() if name in ("compression", "sha256")}}, base)
    files = [file for _, file in first_look.files(base)]
    shown = dict(zip(files, [written for written, _ in first_look.files(base)], strict=True))
    if "encoding" not in given:
        encodings = {file: encoding(file) for file in files}
        if len({name for name, _ in encodings.values()}) > 1:
            said = [f"{shown[file]}: {name}" for file, (name, _) in encodings.items()]
            raise DataError("the files are in different encodings", faults=said, hint="convert them all to UTF-8")
        name, why = encodings[files[0]]
        if name != "utf-8":
            settings["encoding"], notes["encoding"] = name, [why]
    sample, whole = _sample(files[0], {**settings, **given}.get("encoding", "utf-8"))
    found = layout(sample, target, whole=whole, fixed=given)
    if found.even < MOSTLY and not {"delimiter", "header", "kind"} & given.keys() and (cut := fixed_width(sample, target, whole=whole)):
        more, seen, headless = cut
        settings |= {"kind": "fixed", **more, **given}
        return Dialect(*_local(settings, base), {**notes, **seen}, headless=headless)
    settings |= found.settings | given
    notes |= found.notes
    return Dialect(*_local(settings, base), notes, headless=found.headless)


def _sample(file: Path, name: str) -> tuple[str, bool]:
    """The first megabyte as text, and whether that is all of the file."""
    with open_bytes(file) as raw:
        data = raw.read(SAMPLE)
        whole = not raw.read(1)
    text = codecs.getincrementaldecoder(name)("strict").decode(data, final=False)
    return text.lstrip("\ufeff"), whole
