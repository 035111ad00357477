"""Digests, in three layers that know nothing of each other's business.

Bytes to a digest (`sha256_*`); content to a digest, whatever wrote it (`TableDigest`, `TensorDigest`, `canonical`);
a folder to a digest that binds its names (`dir_hash`).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

LARGEST_EXACT = 2**53


def sha256_bytes(data: bytes) -> str:
    """The hex sha256 of `data`."""
    return hashlib.sha256(data).hexdigest()


def sha256_file(path: Path) -> str:
    """The hex sha256 of a file, read in blocks. Raises OSError when it cannot be read."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def short(digest: str) -> str:
    """`sha256:81bf9fa8`: a digest as messages print it."""
    return f"sha256:{digest.removeprefix('sha256:')[:8]}"


def canonical(value: Any) -> bytes:
    """JSON with one spelling: sorted keys, no white space, UTF-8, no floats (`portable` turns them into text).

    The output equals RFC 8785's for the values admitted here. Raises ValueError for a float or an integer beyond 2^53.
    """
    _check(value)
    return json.dumps(_ordered(value), separators=(",", ":"), ensure_ascii=False).encode()


def portable(value: Any) -> Any:
    """`value` with every float as its shortest `repr` text, so that canonical JSON has no float to spell.

    Raises ValueError for a float that is not finite.
    """
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value!r} is not a finite number")
        return repr(value)
    if isinstance(value, Mapping):
        return {key: portable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [portable(item) for item in value]
    return value


def _ordered(value: Any) -> Any:
    """Objects with their keys in the order of UTF-16 code units, as RFC 8785 has it."""
    if isinstance(value, Mapping):
        return {key: _ordered(value[key]) for key in sorted(value, key=lambda name: name.encode("utf-16-be"))}
    return [_ordered(item) for item in value] if isinstance(value, (list, tuple)) else value


def _check(value: Any) -> None:
    if isinstance(value, float):
        raise ValueError(f"a float ({value!r}) has no canonical spelling here: use portable()")
    if isinstance(value, int) and abs(value) > LARGEST_EXACT:
        raise ValueError(f"the integer {value} is beyond 2^53 and has no canonical spelling")
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                raise ValueError(f"the key {key!r} is not text")
            _check(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _check(item)


def dir_hash(files: Mapping[str, str]) -> str:
    """in-toto's dirHash of `{relative POSIX path: hex sha256}`: equal folders have equal hashes, and a rename shows."""
    lines = [f"{digest}  {path}\n".encode() for path, digest in sorted(files.items(), key=lambda item: item[0].encode())]
    return sha256_bytes(b"".join(lines))


def folder_files(folder: Path) -> list[Path]:
    """Every file below `folder`, sorted by its relative POSIX path."""
    return sorted((p for p in folder.rglob("*") if p.is_file()), key=lambda p: p.relative_to(folder).as_posix().encode())


def sha256_path(path: Path) -> dict[str, str]:
    """`{"sha256": ...}` of a file or `{"dirHash": ...}` of a folder."""
    if path.is_dir():
        return {"dirHash": dir_hash({f.relative_to(path).as_posix(): sha256_file(f) for f in folder_files(path)})}
    return {"sha256": sha256_file(path)}


def size_of(path: Path) -> int:
    """Bytes in a file, or in all files below a folder."""
    return sum(f.stat().st_size for f in folder_files(path)) if path.is_dir() else path.stat().st_size


class TensorDigest:
    """`tensors-v1`: a digest of named arrays by dtype, shape and little-endian bytes, fed in pieces.

    The digest is that of canonical JSON `[[name, dtype, shape, sha256 of the bytes], ...]`, sorted by name.
    """

    def __init__(self) -> None:
        self._tensors: dict[str, tuple[str, list[int], Any]] = {}

    def update(self, name: str, piece: np.ndarray) -> None:
        """Adds rows to the tensor `name`; pieces of one tensor are joined along the first axis."""
        import numpy as np

        piece = np.ascontiguousarray(piece)
        little = piece.astype(piece.dtype.newbyteorder("<"), copy=False)
        if name not in self._tensors:
            self._tensors[name] = (little.dtype.name, [0, *piece.shape[1:]] if piece.ndim else [], hashlib.sha256())
        _, shape, digest = self._tensors[name]
        if shape:
            shape[0] += piece.shape[0]
        if little.size:
            digest.update(_raw(little.reshape(-1)))

    def hexdigest(self) -> str:
        """The digest of what was fed so far."""
        parts = [[name, dtype, shape, d.hexdigest()] for name, (dtype, shape, d) in sorted(self._tensors.items())]
        return sha256_bytes(canonical(parts))


def tensors_digest(tensors: Mapping[str, np.ndarray]) -> str:
    """`tensors-v1` of whole arrays."""
    digest = TensorDigest()
    for name, tensor in tensors.items():
        digest.update(name, tensor)
    return digest.hexdigest()


class TableDigest:
    """`table-v1`: a digest of a table by content, independent of chunks, of the file format and of its writer.

    Columns are ordered and have a logical type (`number` float64, `text` UTF-8, `timestamp` microseconds as int64,
    `integer` int64). Each column gives validity (one byte a row) and values (little-endian; text as int64 lengths and
    the UTF-8 bytes; a missing value as zero or empty; NaN as one bit pattern). The digest is that of canonical JSON
    `[rows, [name, type, sha256 of validity, sha256 of values (, sha256 of lengths)], ...]`.
    """

    def __init__(self, columns: Sequence[tuple[str, str]]) -> None:
        self._columns = [(name, kind, [hashlib.sha256() for _ in range(3 if kind == "text" else 2)]) for name, kind in columns]
        self.rows = 0

    def update(self, batch: pa.RecordBatch) -> None:
        """Adds the rows of a batch that has these columns."""
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        self.rows += batch.num_rows
        for name, kind, digests in self._columns:
            array = batch.column(name)
            valid = pc.is_valid(array).cast(pa.uint8()).to_numpy(zero_copy_only=False)
            digests[0].update(_raw(valid))
            if kind == "text":
                lengths, data = _text_bytes(array)
                digests[1].update(data)
                digests[2].update(lengths)
                continue
            if kind == "number":
                values = array.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
                values = np.where(np.isnan(values), np.nan, values).astype("<f8")
            else:
                values = array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False).astype("<i8", copy=False)
            digests[1].update(_raw(values))

    def hexdigest(self) -> str:
        """The digest of what was fed so far."""
        columns = [[name, kind, *(d.hexdigest() for d in digests)] for name, kind, digests in self._columns]
        return sha256_bytes(canonical([self.rows, *columns]))


def _text_bytes(array: pa.Array) -> tuple[Any, Any]:
    """Lengths (int64) and the joined UTF-8 bytes of a text column, missing as empty."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    array = array.cast(pa.large_string()).fill_null("")
    lengths = pc.binary_length(array).cast(pa.int64()).to_numpy(zero_copy_only=False).astype("<i8", copy=False)
    _, offsets, data = array.buffers()
    if data is None or len(array) == 0:
        return _raw(lengths), b""
    ends = np.frombuffer(offsets, dtype=np.int64)[array.offset : array.offset + len(array) + 1]
    return _raw(lengths), memoryview(data)[int(ends[0]) : int(ends[-1])]


def _raw(array: np.ndarray) -> Any:
    """The bytes of an array, without a copy where it is contiguous."""
    import numpy as np

    return np.ascontiguousarray(array).view(np.uint8)
