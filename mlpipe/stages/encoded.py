"""Encoded tensors on disk: one .npy file a tensor, written row by row, read as a memory map. No pickles."""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING

import numpy as np

from mlpipe.digest import TensorDigest
from mlpipe.errors import DataError, IntegrityError

if TYPE_CHECKING:
    from mlpipe.schema import Schema


class TensorWriter:
    """Writes the tensors of one split into a folder, in pieces, and digests them on the way (`tensors-v1`).

    Plain writes instead of a memory map: mapped pages would count as this process's memory.
    """

    def __init__(self, folder: Path, rows: int) -> None:
        self.folder, self.rows = folder, rows
        self.digest = TensorDigest()
        self._files: dict[str, IO[bytes]] = {}
        self._written: dict[str, int] = {}
        folder.mkdir(parents=True)

    def __enter__(self) -> TensorWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None) -> None:
        for file in self._files.values():
            file.close()
        if kind is None:
            wrong = {name: n for name, n in self._written.items() if n != self.rows}
            assert not wrong, f"wrote {wrong} of {self.rows} rows"

    def write(self, name: str, piece: np.ndarray) -> None:
        """Appends rows to the tensor `name`."""
        piece = np.ascontiguousarray(piece)
        if name not in self._files:
            self._files[name] = (self.folder / f"{name}.npy").open("wb")
            header = {"descr": np.lib.format.dtype_to_descr(piece.dtype), "fortran_order": False, "shape": (self.rows, *piece.shape[1:])}
            np.lib.format.write_array_header_1_0(self._files[name], header)
        self._files[name].write(piece.data)
        self._written[name] = self._written.get(name, 0) + len(piece)
        self.digest.update(name, piece)


def read_tensors(folder: Path) -> dict[str, np.ndarray]:
    """The tensors of a split as read-only memory maps. Raises IntegrityError when one cannot be read."""
    found: dict[str, np.ndarray] = {}
    for file in sorted(folder.glob("*.npy")):
        try:
            array = np.load(file, mmap_mode="r", allow_pickle=False)
        except ValueError as fault:
            if "empty" in str(fault) or "mmap" in str(fault):  # a tensor without rows cannot be mapped
                array = np.load(file, allow_pickle=False)
            else:
                raise IntegrityError(f"{file} is no tensor: {fault}", hint="run prepare again with --force") from None
        found[file.stem] = array
    return found


def release(arrays: Mapping[str, np.ndarray]) -> None:
    """Lets go of the pages of mapped tensors: they count as this process's memory, and stay in the system's cache of the file.

    Arrays that are no memory maps are left alone, as is everything on a system that has no such call.
    """
    for array in arrays.values():
        pages = getattr(array, "_mmap", None)
        if isinstance(pages, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            pages.madvise(mmap.MADV_DONTNEED)


def check_finite(name: str, tensor: np.ndarray, schema: Schema) -> None:
    """No number that is not finite may reach training."""
    if tensor.dtype.kind == "f" and not np.isfinite(tensor).all():
        column = getattr(schema.tensors, name)[int(np.flatnonzero(~np.isfinite(tensor).all(axis=0))[0])]
        raise DataError(
            f"column {column!r} becomes infinite when it is encoded", hint="set `scale: standard` or `quantile`, or correct its values"
        )
