"""Source `documents`: a folder of PDF, Word, HTML, Markdown, ... as rows with their text, by Docling."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, PrivateAttr, field_validator, model_validator

from mlpipe.base import Settings, expand
from mlpipe.documents import rows
from mlpipe.documents.cache import KNOWN, Cache, versions
from mlpipe.documents.gather import Gathered, Policy, gather
from mlpipe.documents.models import check_models
from mlpipe.documents.pool import Document, Limits
from mlpipe.documents.result import How
from mlpipe.errors import DataError, did_you_mean, listed
from mlpipe.sources import remote
from mlpipe.sources.base import Source
from mlpipe.sources.csv import Csv
from mlpipe.sources.parquet import Parquet

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = "documents.parquet"
JOB = ("path", "sha256", "labels", "workers")  # where rows lie and what is known of them; not how they are read


class Labels(Settings):
    """A CSV file that says something of each document: one column has the path, all others become columns of the rows."""

    path: str
    file: str = "file"
    delimiter: str = ","
    encoding: str = "utf-8"

    @classmethod
    def locations(cls) -> frozenset[str]:
        """The path keeps `${env:NAME}`."""
        return frozenset({"path"})


class Documents(Source):
    """Files of any kind that Docling reads, as rows; a folder is read with all its folders, hidden files passed over.

    Each file is tried, in worker processes, under a limit of time and memory; what came of it stands in the manifest. Results are
    kept in the run folder by content, so that a growing folder converts new files only. Nothing is fetched from a network.
    `unit: document` gives path, folder, title, text, pages, words, tables, pictures, encoding; `chunk` gives path, folder, title,
    chunk, headings, text, page, last_page; `table` gives path, folder, title, page, table, row and the columns of the tables.
    """

    kind: Literal["documents"] = "documents"
    unit: rows.Unit = "document"
    format: Literal["plain", "markdown"] = "plain"
    chunk_words: Annotated[int, Field(ge=10)] = 200
    labels: Labels | None = None
    pdf: Literal["native", "layout"] = "native"
    artifacts_path: str | None = None
    ocr: Literal["auto", "off", "force"] = "auto"
    encoding: str | None = None
    passwords: dict[str, str] = {}
    on_error: Literal["fail", "skip"] = "fail"
    max_failures: Annotated[float, Field(ge=0)] | None = None
    allow_partial: bool = False
    time_limit: Annotated[float, Field(gt=0)] = 300.0
    memory_limit: Annotated[int, Field(ge=256)] = 4096
    workers: Annotated[int, Field(ge=1, le=64)] = Field(default=2, exclude=True)

    _known: Path | None = PrivateAttr(default=None)  # the folder of what is known from before; None before `local`
    _snapshots: Path | None = PrivateAttr(default=None)
    _rows: Path | None = PrivateAttr(default=None)
    _gathered: Gathered | None = PrivateAttr(default=None)

    @classmethod
    def locations(cls) -> frozenset[str]:
        """Paths and passwords keep `${env:NAME}`."""
        return frozenset({"path", "artifacts_path", "passwords"})

    @field_validator("passwords")
    @classmethod
    def _no_secrets(cls, value: dict[str, str]) -> dict[str, str]:
        for name, password in value.items():
            if not (password.startswith("${env:") and password.endswith("}")):
                raise ValueError(f"the password of {name!r} stands in the file; write ${{env:NAME}} and set that variable")
        return value

    @model_validator(mode="after")
    def _consistent(self) -> Documents:
        if self.pdf == "layout" and self.artifacts_path is None:
            raise ValueError("pdf: layout needs artifacts_path, the folder of Docling's models (docling-tools models download -o FOLDER)")
        if self.max_failures is not None and self.on_error == "fail":
            raise ValueError("max_failures belongs to on_error: skip; with fail no failure passes")
        return self

    def readers(self) -> dict[str, str]:
        """The packages that decide what is read."""
        return versions()

    def reader(self) -> dict[str, Any]:
        """How documents are read, without where they lie."""
        return self.model_dump(mode="json", exclude=set(JOB))

    # ---- where they lie

    def listing(self, base: Path) -> list[tuple[str, Path | None]]:
        """Every document, folders and globs in sorted order; the file of labels is none of them."""
        found: dict[str, Path | None] = {}
        seen: set[Path] = {(base / expand(self.labels.path)).resolve()} if self.labels else set()
        for written in self.paths:
            pattern = expand(written)
            if written in self._copies or remote.is_far(pattern):
                found[written] = self._copies.get(written)
                continue
            files = _files(base, pattern)
            if not files:
                kind = "the folder" if (base / pattern).is_dir() else "no file matches"
                raise DataError(
                    f"{kind} {pattern} {'is empty' if kind == 'the folder' else ''}".strip() + " (relative to the pipeline file's folder)"
                )
            for file in files:
                if file.resolve() not in seen:
                    seen.add(file.resolve())
                    found[Path(os.path.relpath(file, base)).as_posix()] = file
        return list(found.items())

    def identity(self, base: Path) -> list[tuple[str, Path]]:
        """The documents: their bytes decide the rows."""
        return [(written, file) for written, file in self.listing(base) if file is not None]

    def queries(self, base: Path) -> list[tuple[str, Path]]:
        """The file of labels."""
        if self.labels is None:
            return []
        path = base / expand(self.labels.path)
        if not path.is_file():
            raise DataError(f"there is no file {self.labels.path} (relative to the pipeline file's folder)", hint="correct `labels.path`")
        return [(self.labels.path, path)]

    def local(self, base: Path, folder: Path) -> Documents:
        """The same documents, converted when the first row is asked for."""
        here = super().local(base, folder)
        assert isinstance(here, Documents)  # a copy of this one
        here._snapshots, here._known = folder, folder.parent / KNOWN  # noqa: SLF001 (its own class)
        return here

    def files(self, base: Path) -> list[tuple[str, Path]]:
        """The rows of all documents, in one Parquet file. Raises DataError for documents that fail, MachineError for missing packages."""
        if self._rows is None:
            if self._known is None or self._snapshots is None:
                raise DataError("documents are converted in a run folder only", hint="this is a fault of mlpipe; please report it")
            self._rows = self._convert(base, self._snapshots, self._known)
        return [(self._title, self._rows)]

    @property
    def _title(self) -> str:
        return listed(self.paths, 3)

    # ---- converting

    def _convert(self, base: Path, folder: Path, known: Path) -> Path:
        here = self.identity(base)
        root = _root(base, [expand(path) for path in self.paths])
        named = {_below(file, root) if root else written: file for written, file in here}
        documents = [Document(name, file, self._password(name)) for name, file in named.items()]
        if self.pdf == "layout" and self.artifacts_path is not None:
            check_models(base / expand(self.artifacts_path), self.artifacts_path, named)
        how = How(
            pdf=self.pdf,
            artifacts=str(base / expand(self.artifacts_path)) if self.artifacts_path and self.pdf == "layout" else "",
            ocr=self.ocr,
            encoding=self.encoding or "",
            passages=self.chunk_words if self.unit == "chunk" else 0,
        )
        labels = self._labels(base, named)  # first: a fault there costs no conversion
        policy = Policy(self.on_error == "skip", self.max_failures, self.allow_partial)
        limits = Limits(self.time_limit, self.memory_limit)
        self._gathered = gather(documents, how, Cache(known, how), self.workers, limits, policy)
        for note in self._gathered.notes():
            self.note(note)
        places = [list(named).index(document.name) for document, _ in self._gathered.good] if labels else []
        chosen = {name: [cells[i] for i in places] for name, cells in labels.items()}
        key = f"documents-{remote.key_of(repr((self.model_dump(mode='json'), sorted(named))))}"
        with remote.fresh_folder(folder, key) as aside:
            count = rows.write_rows(self._gathered.whole, self.unit, self.format == "markdown", chosen, aside / ROWS)
        if not count:
            what = {"document": "no document could be read", "chunk": "the documents hold no text", "table": "the documents hold no tables"}
            raise DataError(f"{self._title}: {what[self.unit]}", hint="see what was said of each above")
        return folder / key / ROWS

    def _password(self, name: str) -> str:
        for pattern, password in self.passwords.items():
            if fnmatch(name, pattern) or fnmatch(name.rpartition("/")[2], pattern):
                return str(expand(password))
        return ""

    def _labels(self, base: Path, named: dict[str, Path]) -> dict[str, list[str | None]]:
        """The columns of the file of labels, a cell a document; what does not match is told, with names."""
        if self.labels is None:
            return {}
        written, path = self.queries(base)[0]
        table = Csv(path=path.name, delimiter=self.labels.delimiter, encoding=self.labels.encoding)
        names = table.names(path)
        table.check_names(written, names, [])
        if self.labels.file not in names:
            raise DataError(
                f"{written} has no column {self.labels.file!r} with the paths of the documents (it has: {listed(names)})",
                hint=did_you_mean(self.labels.file, names) or "set labels.file",
            )
        others = [name for name in names if name != self.labels.file]
        at = {name: i for i, name in enumerate(named)}
        beside = {_below(file, path.parent): at[name] for name, file in named.items()}
        cells: dict[str, list[str | None]] = {name: [None] * len(named) for name in others}
        used: set[int] = set()
        strays: list[str] = []
        for batch in table.cells(path, names):
            for row in batch.to_pylist():
                label = (row[self.labels.file] or "").strip().removeprefix("./").replace("\\", "/")
                place = at.get(label, beside.get(label))
                if place is None:
                    strays.append(label)
                    continue
                if place in used:
                    raise DataError(f"{written} names {label} twice", hint="a document has one row there")
                used.add(place)
                for name in others:
                    cells[name][place] = row[name] or None
        if strays:
            self.note(f"{len(strays):,} rows of {written} name no document that is read: {listed(strays, 10)}")
        if bare := [name for name, i in at.items() if i not in used]:
            self.note(f"{len(bare):,} documents have no row in {written}: {listed(bare, 10)}")
        if not used:
            raise DataError(
                f"no row of {written} names a document: {listed(strays, 3)} there, {listed(named, 3)} here",
                hint="paths are relative to the folder of the documents, or to the file of labels",
            )
        return cells

    # ---- rows

    def report(self) -> dict[str, Any]:
        """What came of the documents, for the manifest."""
        return {"documents": self._gathered.account()} if self._gathered is not None else {}

    def names(self, file: Path) -> list[str]:
        """The columns of the rows."""
        return self._table.names(file)

    def types(self, file: Path) -> dict[str, Any]:
        """Text, and whole numbers for counts."""
        return self._table.types(file)

    def cells(self, file: Path, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows."""
        return self._table.cells(file, columns)

    @property
    def _table(self) -> Parquet:
        return Parquet(path=ROWS)

    def places(self, file: Path, rows: Sequence[int]) -> dict[int, str]:
        """The documents that rows came from."""
        found = super().places(file, rows)
        wanted, first = set(rows), 0
        for batch in self._table.cells(file, ["path"]):
            paths = batch.column(0)
            for row in sorted(wanted):
                if first <= row < first + batch.num_rows:
                    found[row] = f"document {paths[row - first].as_py()}"
            first += batch.num_rows
        return found


def _files(base: Path, pattern: str) -> list[Path]:
    """The files of a folder and all below it, of a glob, or one file; hidden ones are passed over."""
    whole = base / pattern
    if whole.is_dir():
        found = []
        for folder, folders, names in os.walk(whole):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            found += [Path(folder) / name for name in names if not name.startswith((".", "~$")) and (Path(folder) / name).is_file()]
        return sorted(found, key=lambda file: file.relative_to(whole).as_posix())
    if whole.is_file():
        return [whole]
    if glob.has_magic(pattern):
        return [base / match for match in sorted(glob.glob(pattern, root_dir=base, recursive=True)) if (base / match).is_file()]
    raise DataError(f"there is no file or folder {pattern} (relative to the pipeline file's folder)", hint="check the path")


def _root(base: Path, paths: Sequence[str]) -> Path | None:
    """The folder that names of documents are relative to, where the path is one folder."""
    return base / paths[0] if len(paths) == 1 and (base / paths[0]).is_dir() else None


def _below(file: Path, folder: Path) -> str:
    return Path(os.path.relpath(file, folder)).as_posix()
