"""What every source kind is: files that yield chunks of raw rows, cells as they stand, and that can say where a row lies."""

from __future__ import annotations

import glob
import os
import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from mlpipe.base import NumberFormat, Settings, expand
from mlpipe.columns import NUMBER, Chunk
from mlpipe.errors import DataError, did_you_mean, listed

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
}


class Source(Settings):
    """Where rows come from. Only what is listed as missing counts as missing; blanks are kept unless `strip` is set."""

    path: str | Annotated[tuple[str, ...], Field(min_length=1)]
    missing: tuple[str, ...] = ("",)
    missing_by_column: dict[str, tuple[str, ...]] = {}
    strip: bool = False
    replace: dict[str, dict[str, str]] = {}

    @classmethod
    def locations(cls) -> frozenset[str]:
        """The path keeps `${env:NAME}`."""
        return frozenset({"path"})

    @property
    def numbers(self) -> NumberFormat:
        """How numbers are written in this source's text."""
        return NumberFormat()

    def files(self, base: Path) -> list[tuple[str, Path]]:
        """The files as (the path as written, relative to `base`; where it lies), globs in sorted order.

        Raises DataError when a path or glob matches nothing.
        """
        found: list[tuple[str, Path]] = []
        for written in [self.path] if isinstance(self.path, str) else self.path:
            pattern = expand(written)
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
        seen: set[Path] = set()
        for name, file in found:
            if file.resolve() in seen:
                raise DataError(f"{name} is read twice", hint="two entries of `path` match it; its rows would count double")
            seen.add(file.resolve())
        return found

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
        """All files' rows in order, stripped, replaced, and with the missing cells null."""
        for written, file in self.files(base):
            first = 0
            self.check_header(written, file, columns)
            for batch in self.cells(file, columns):
                if batch.num_rows:
                    yield Chunk(self.cleaned(batch), written, first)
                    first += batch.num_rows

    def aliases(self, column: str) -> dict[str, str]:
        """Raw texts of a column that are read as another text, or as missing (""), by `replace` and `missing`.

        A text that others are replaced by is left out: it would be taken for raw, and read on.
        """
        meant = set(self.replace.get(column, {}).values())
        missing = {*self.missing, *self.missing_by_column.get(column, ())}
        found = dict.fromkeys(missing, "") | {raw: "" if to in missing else to for raw, to in self.replace.get(column, {}).items()}
        return {raw: found[raw] for raw in sorted(found) if raw and found[raw] != raw and (raw not in meant or raw in missing)}

    def check_header(self, written: str, file: Path, columns: Sequence[str]) -> list[str]:
        """The file's column names, each once, the wanted ones among them. Raises DataError otherwise."""
        names = self.names(file)
        twice = {name: [i + 1 for i, other in enumerate(names) if other == name] for name in names if names.count(name) > 1}
        if twice:
            faults = [f"{name!r} stands in columns {' and '.join(map(str, at))}" for name, at in twice.items()]
            raise DataError(f"{written} names a column twice", faults=faults, hint="rename one of them in the file")
        absent = [name for name in dict.fromkeys((*columns, *self.missing_by_column, *self.replace)) if name not in names]
        if absent:
            what = f"column {absent[0]!r} is" if len(absent) == 1 else f"columns {', '.join(map(repr, absent))} are"
            raise DataError(
                f"{what} not in {written} (it has: {listed(names)})", hint=did_you_mean(absent[0], names) or "is it the right file?"
            )
        return names

    def cleaned(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Strip, replace and missing tokens, once for each distinct text of a column; missing numbers in a typed column."""
        import pyarrow as pa

        arrays = []
        for name, array in zip(batch.schema.names, batch.columns, strict=True):
            kind = array.type
            if pa.types.is_string_view(kind):
                array = array.cast(pa.string())
            if _is_text(array.type):
                array = array.dictionary_encode()
            if pa.types.is_dictionary(array.type) and _is_text(array.type.value_type):
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


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _neighbour(path: Path) -> str:
    """A hint for a file that is not there."""
    folder = path.parent
    if not folder.is_dir():
        return f"the folder {folder.name!r} is not there either; paths are relative to the pipeline file"
    names = sorted(p.name for p in folder.iterdir() if p.is_file())
    return did_you_mean(path.name, names) or (f"the folder holds: {listed(names)}" if names else "the folder is empty")
