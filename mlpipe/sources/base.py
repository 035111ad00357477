"""What every source kind is: rows in files, cells as they stand, that can say where they lie, or something that becomes such files."""

from __future__ import annotations

import glob
import os
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, PrivateAttr, model_validator

from mlpipe.base import NumberFormat, Settings, expand
from mlpipe.columns import NUMBER, Chunk
from mlpipe.errors import DataError, IntegrityError, did_you_mean, listed
from mlpipe.sources import remote
from mlpipe.sources.families import family, is_text

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

CHUNK_ROWS = 65_536

KIND_OF_ENDING = {
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".txt": "csv",
    ".data": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".xlsx": "excel",
    ".xlsm": "excel",
    ".ods": "ods",
    ".feather": "arrow",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".ipc": "arrow",
}

Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class RawRows(Settings):
    """Where rows come from. Only what is listed as missing counts as missing; blanks are kept unless `strip` is set."""

    missing: tuple[str, ...] = ("",)
    missing_by_column: dict[str, tuple[str, ...]] = {}
    strip: bool = False
    replace: dict[str, dict[str, str]] = {}

    _notes: dict[str, None] = PrivateAttr(default_factory=dict)

    @property
    def notes(self) -> list[str]:
        """What was noticed while the rows were read, for people; nothing that stops the work."""
        return list(self._notes)

    def note(self, text: str) -> None:
        """Keeps a remark, once."""
        self._notes[text] = None

    def forget(self) -> None:
        """Drops what was noticed while the rows were read."""
        self._notes = {}

    @property
    def numbers(self) -> NumberFormat:
        """How numbers are written in this source's text."""
        return NumberFormat()

    @abstractmethod
    def listing(self, base: Path) -> list[tuple[str, Path | None]]:
        """What is read, as (its name for people and manifests; where it lies on this machine, or None before it was fetched).

        Asks neither a network nor a database.
        """

    @abstractmethod
    def local(self, base: Path, folder: Path) -> Source:
        """The same rows in files of this machine: what lies elsewhere is fetched into `folder`, where older copies may lie.

        The one step that asks a network or a database. Raises DataError when that does not give the rows, MachineError when a
        package for it is missing, IntegrityError when they are not those that `sha256` names.
        """

    @abstractmethod
    def digest(self, written: str, file: Path, hashed: Callable[[Path], str]) -> dict[str, str]:
        """What decides a file's rows: the digest of its bytes by `hashed`, or of a database's answer by content.

        Raises IntegrityError when the pipeline file demands another.
        """

    def queries(self, base: Path) -> list[tuple[str, Path]]:
        """Files beside the pipeline file that say what is read, as (the path as written; where it lies)."""
        return []

    def readers(self) -> dict[str, str]:
        """Packages whose version decides what is read, by name; for kinds whose reading changes from version to version."""
        return {}

    def report(self) -> dict[str, Any]:
        """What came of reading, for the results of prepare."""
        return {}

    def reader(self) -> dict[str, Any]:
        """The settings with which rows of this kind in a file are read, without where they lie."""
        return self.model_dump(mode="json", exclude={"path", "sha256"})

    def check_names(self, written: str, names: Sequence[str], columns: Sequence[str]) -> None:
        """Raises DataError when a name stands twice, or a wanted column is not among the names of what is called `written`."""
        doubled = [name for name, count in Counter(names).items() if count > 1]
        twice = {name: [i + 1 for i, other in enumerate(names) if other == name] for name in doubled}
        if twice:
            faults = [f"{name!r} stands in columns {' and '.join(map(str, at))}" for name, at in twice.items()]
            raise DataError(f"{written} names a column twice", faults=faults, hint="rename one of them")
        known = set(names)
        absent = [name for name in dict.fromkeys((*columns, *self.missing_by_column, *self.replace)) if name not in known]
        if absent:
            what = f"column {absent[0]!r} is" if len(absent) == 1 else f"columns {', '.join(map(repr, absent))} are"
            mark = next((mark for mark in ";\t|," if len(names) == 1 and mark in names[0]), None)
            other = (
                f"its header is one name with {mark!r} in it: set `delimiter` (predict and drift: --reader delimiter='{mark}')"
                if mark
                else None
            )
            raise DataError(
                f"{what} not in {written} (it has: {listed(names)})",
                hint=other or did_you_mean(absent[0], names) or "is it the right file?",
            )

    def aliases(self, column: str) -> dict[str, str]:
        """Raw texts of a column that are read as another text, or as missing (""), by `replace` and `missing`.

        A text that others are replaced by is left out: it would be taken for raw, and read on.
        """
        meant = set(self.replace.get(column, {}).values())
        missing = {*self.missing, *self.missing_by_column.get(column, ())}
        found = dict.fromkeys(missing, "") | {raw: "" if to in missing else to for raw, to in self.replace.get(column, {}).items()}
        return {raw: found[raw] for raw in sorted(found) if raw and found[raw] != raw and (raw not in meant or raw in missing)}


class Source(RawRows):
    """Rows in files."""

    path: str | Annotated[tuple[str, ...], Field(min_length=1)]
    sha256: Sha256 | dict[str, Sha256] | None = None

    _copies: dict[str, Path] = PrivateAttr(default_factory=dict)  # where fetched files lie, by the path as written
    _digests: dict[str, dict[str, str]] = PrivateAttr(default_factory=dict)  # by the path as written, where it is not the file's own

    @classmethod
    def locations(cls) -> frozenset[str]:
        """The path keeps `${env:NAME}`."""
        return frozenset({"path"})

    @model_validator(mode="after")
    def _pinned(self) -> Source:
        if isinstance(self.sha256, str) and not isinstance(self.path, str):
            raise ValueError("sha256 is one digest and path has several files; write sha256: {PATH: DIGEST, ...}")
        for written in self.paths:
            remote.refuse_secrets(written)
        if isinstance(self.sha256, dict) and (stray := [path for path in self.sha256 if path not in self.paths]):
            raise ValueError(f"sha256 names {stray[0]!r}, which is no entry of path")
        return self

    @property
    def paths(self) -> tuple[str, ...]:
        """The entries of `path`, as written."""
        return (self.path,) if isinstance(self.path, str) else self.path

    def pin(self, written: str) -> str | None:
        """The digest that the pipeline file demands of a file."""
        if isinstance(self.sha256, dict):
            return self.sha256.get(written)
        return self.sha256

    def local(self, base: Path, folder: Path) -> Source:
        """Fetches what lies behind a URL; files that are here stay where they are."""
        here = self.model_copy()
        here.forget()
        far = [written for written in dict.fromkeys(self.paths) if remote.is_far(expand(written))]
        here.place({written: remote.fetch(written, folder, self.pin(written)) for written in far})
        return here

    def place(self, copies: dict[str, Path]) -> None:
        """Says where the fetched files lie, by the path as written."""
        self._copies = copies

    def files(self, base: Path) -> list[tuple[str, Path]]:
        """The files as (the path as written, relative to `base`; where it lies), globs in sorted order.

        Raises DataError when a path or glob matches nothing, or what lies elsewhere was not fetched by `local`.
        """
        found = []
        for written, file in self.listing(base):
            if file is None:
                raise DataError(f"{written} is not on this machine", hint="fetch it first, and name the copy")
            found.append((written, file))
        return found

    def identity(self, base: Path) -> list[tuple[str, Path]]:
        """The files whose content decides the rows, as `files` gives them."""
        return self.files(base)

    def listing(self, base: Path) -> list[tuple[str, Path | None]]:
        """The files, globs in sorted order; None for one behind a URL that was not fetched. Raises DataError as `files` does."""
        found: list[tuple[str, Path | None]] = []
        for written in self.paths:
            pattern = expand(written)
            if written in self._copies or remote.is_far(pattern):
                found.append((written, self._copies.get(written)))
                continue
            whole = base / pattern
            if whole.exists() and whole.is_dir():
                raise DataError(f"{pattern} is a folder, not a file", hint=f"name its files, such as {pattern.rstrip('/')}/*.csv")
            if whole.exists():
                found.append((written, whole))
                continue
            matches = sorted(glob.glob(pattern, root_dir=base, recursive=True)) if glob.has_magic(pattern) else []
            matches = [match for match in matches if (base / match).is_file()]
            if not matches:
                kind = "no file matches" if glob.has_magic(pattern) else "there is no file"
                raise DataError(f"{kind} {pattern} (relative to the pipeline file's folder)", hint=_neighbour(whole))
            found += [(Path(os.path.relpath(base / match, base)).as_posix(), base / match) for match in matches]
        seen: set[Path | str] = set()
        for name, file in found:
            key = file.resolve() if file else name
            if key in seen:
                raise DataError(f"{name} is read twice", hint="two entries of `path` match it; its rows would count double")
            seen.add(key)
        return found

    def digest(self, written: str, file: Path, hashed: Callable[[Path], str]) -> dict[str, str]:
        """The file's sha256, compared with the one in the pipeline file."""
        if written in self._digests:
            return self._digests[written]
        found = hashed(file)
        if (pin := self.pin(written)) and pin != found:
            raise IntegrityError(
                f"{written} is not the file that the pipeline file names: its sha256 is {found}",
                faults=[f"sha256 in the pipeline file: {pin}"],
                hint="fetch the right file, or write the new digest under `sha256` if the change is meant",
            )
        return {"sha256": found}

    @abstractmethod
    def names(self, file: Path) -> list[str]:
        """The column names of one file. Raises DataError when it has none."""

    @abstractmethod
    def cells(self, file: Path, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Batches of one file's rows with these columns, cells as they stand (text columns dictionary-encoded)."""

    def places(self, file: Path, rows: Sequence[int]) -> dict[int, str]:
        """Where rows (numbers from 0) of a file lie, for messages; the file is read once."""
        return {row: f"row {row + 1}" for row in rows}

    def chunks(self, base: Path, columns: Sequence[str]) -> Iterator[Chunk]:
        """All files' rows in order, stripped, replaced, and with the missing cells null.

        Raises DataError before the first row when the files do not agree on the names or types of these columns.
        """
        files = self.files(base)
        self.check_agreement(files, columns)
        for written, file in files:
            first = 0
            for batch in self.cells(file, columns):
                if batch.num_rows:
                    yield Chunk(self.cleaned(batch), written, first)
                    first += batch.num_rows

    def types(self, file: Path) -> dict[str, Any]:
        """The Arrow types of one file's columns, for kinds that have types before the rows are read."""
        return {}

    def check_agreement(self, files: Sequence[tuple[str, Path]], columns: Sequence[str]) -> None:
        """Raises DataError when a file lacks a column, or a column's cells are of different kinds in two files."""
        headers = {written: self.check_header(written, file, columns) for written, file in files}
        if len(files) < 2:
            return
        first, *others = headers
        for written in others:
            if extra := [name for name in headers[written] if name not in headers[first]]:
                self.note(f"columns of {written} that {first} lacks, passed over: {listed(extra, 30)}")
            if absent := [name for name in headers[first] if name not in headers[written]]:
                self.note(f"columns of {first} that {written} lacks, passed over: {listed(absent, 30)}")
        seen: dict[str, tuple[str, Any]] = {}
        for written, file in files:
            for name, kind in self.types(file).items():
                if name in columns:
                    self.agree(seen, name, written, kind)

    def agree(self, seen: dict[str, tuple[str, Any]], name: str, written: str, kind: Any) -> None:
        """Compares a column's type in one file with that in the files before it. Raises DataError where they do not go together."""
        known = seen.setdefault(name, (written, kind))
        if str(known[1]) == str(kind) or (sort := family(kind)) == "none":
            return
        if family(known[1]) == "none":
            seen[name] = (written, kind)
        elif family(known[1]) != sort:
            raise DataError(
                f"column {name!r} holds {known[1]} in {known[0]} and {kind} in {written}",
                hint="write it the same way in all files; one that lost leading zeros or turned numbers into text reads as other values",
            )
        else:
            self.note(f"{name}: {known[1]} in {known[0]}, {kind} in {written}: no value is changed by reading both")

    def check_header(self, written: str, file: Path, columns: Sequence[str]) -> list[str]:
        """The file's column names, each once, the wanted ones among them. Raises DataError otherwise."""
        names = self.names(file)
        self.check_names(written, names, columns)
        return names

    def cleaned(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Strip, replace and missing tokens, once for each distinct text of a column; missing numbers in a typed column."""
        import pyarrow as pa

        arrays = []
        for name, array in zip(batch.schema.names, batch.columns, strict=True):
            kind = array.type
            if pa.types.is_string_view(kind):
                array = array.cast(pa.string())
            if is_text(array.type):
                array = array.dictionary_encode()
            if pa.types.is_dictionary(array.type) and is_text(array.type.value_type):
                array = self._cleaned_text(name, array)
            elif name in self.replace:
                raise DataError(f"column {name!r} holds {kind}, in which `replace` has nothing to do", hint="`replace` works on text")
            elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
                array = self._cleaned_numbers(name, array)
            arrays.append(array)
        return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)

    def _cleaned_numbers(self, name: str, array: Any) -> Any:
        """Null where a typed number equals a missing token that is a number, such as -999."""
        import pyarrow as pa
        import pyarrow.compute as pc

        tokens = [t for t in (*self.missing, *self.missing_by_column.get(name, ())) if re.search(NUMBER, t)]
        if not tokens:
            return array
        if pa.types.is_floating(array.type):
            missing = pc.is_in(array.cast(pa.float64()), value_set=pa.array([float(t) for t in tokens], pa.float64()))
        else:  # as whole numbers or decimals, digit for digit: a float64 would take neighbours of a long identifier for it
            missing = pa.array([value is not None and any(value == Decimal(t) for t in tokens) for value in array.to_pylist()], pa.bool_())
        return pc.if_else(missing, pa.scalar(None, array.type), array)

    def _cleaned_text(self, name: str, array: Any) -> Any:
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        texts = array.dictionary.cast(pa.string())
        if self.strip:
            texts = pc.utf8_trim_whitespace(texts)
        if replace := self.replace.get(name):
            texts = pa.array([replace.get(text, text) for text in texts.to_pylist()], pa.string())
        missing = pa.array([*self.missing, *self.missing_by_column.get(name, ())], pa.string())
        gone = pc.or_kleene(pc.is_null(texts), pc.is_in(texts, value_set=missing)).to_numpy(zero_copy_only=False)
        distinct = texts.dictionary_encode()  # stripping and replacing make some texts equal
        if not gone.any() and len(distinct.dictionary) == len(texts):
            return pa.DictionaryArray.from_arrays(array.indices.cast(pa.int32()), texts)
        fresh: np.ndarray = np.append(distinct.indices.fill_null(0).to_numpy(zero_copy_only=False), 0).astype(np.int32)
        lost = np.append(gone, True)
        old = array.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False)
        used, codes = np.unique(fresh[~lost], return_inverse=True)  # only texts that are not missing stay in the table
        fresh[~lost] = codes
        return pa.DictionaryArray.from_arrays(pa.array(fresh[old], pa.int32(), mask=lost[old]), distinct.dictionary.take(pa.array(used)))


def _neighbour(path: Path) -> str:
    """A hint for a file that is not there."""
    folder = path.parent
    if not folder.is_dir():
        return f"the folder {folder.name!r} is not there either; paths are relative to the pipeline file"
    names = sorted(p.name for p in folder.iterdir() if p.is_file())
    return did_you_mean(path.name, names) or (f"the folder holds: {listed(names)}" if names else "the folder is empty")
