"""Bytes of a file, unpacked on the way: gz, bz2, xz and zst, by ending or by setting."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Literal, cast

from mlpipe.errors import DataError

Compression = Literal["auto", "none", "gz", "bz2", "xz", "zst"]
ENDINGS: dict[str, Compression] = {".gz": "gz", ".bz2": "bz2", ".xz": "xz", ".zst": "zst"}


@contextmanager
def open_bytes(file: Path, compression: Compression = "auto") -> Iterator[IO[bytes]]:
    """The unpacked bytes of a file. Raises DataError when it cannot be read, is damaged or is cut off."""
    import lzma
    import zlib

    import zstandard

    kind = ENDINGS.get(file.suffix.lower(), "none") if compression == "auto" else compression
    try:
        with _opened(file, kind) as stream:
            yield stream
    except (EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError) as fault:
        raise DataError(f"{file.name} is damaged or cut off: {str(fault).lower()}", hint=f"it was read as {kind}; fetch it again") from None
    except IsADirectoryError:
        raise DataError(f"{file.name} is a folder, not a file") from None
    except OSError as fault:
        if fault.errno is None:  # gzip and bz2 say "not a gzipped file" this way
            raise DataError(f"{file.name} is no {kind} file: {fault}", hint="set `compression` to what it is") from None
        raise DataError(f"{file.name} cannot be read: {(fault.strerror or str(fault)).lower()}") from None


def _opened(file: Path, kind: Compression) -> IO[bytes]:
    if kind == "gz":
        import gzip

        return cast("IO[bytes]", gzip.open(file, "rb"))
    if kind == "bz2":
        import bz2

        return cast("IO[bytes]", bz2.open(file, "rb"))
    if kind == "xz":
        import lzma

        return cast("IO[bytes]", lzma.open(file, "rb"))
    if kind == "zst":
        return _whole_zstd(file)
    return file.open("rb")


def _whole_zstd(file: Path) -> IO[bytes]:
    """Zstandard reads a cut-off file as if it ended there; a reader that minds is made of its decompression object."""
    import io

    import zstandard

    class Reader(io.RawIOBase):
        def __init__(self) -> None:
            self._file = file.open("rb")
            self._unpack = zstandard.ZstdDecompressor().decompressobj()
            self._ready = b""
            self._started = False

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: object) -> int:
            view = memoryview(buffer)  # type: ignore[arg-type]
            while not self._ready:
                packed = self._file.read(1 << 18)
                if not packed:
                    if self._started and not self._unpack.eof:
                        raise EOFError("the zstd stream ends before its end mark")
                    return 0
                while packed:
                    if self._unpack.eof:
                        self._unpack = zstandard.ZstdDecompressor().decompressobj()
                    self._started = True
                    self._ready += self._unpack.decompress(packed)
                    packed = self._unpack.unused_data if self._unpack.eof else b""
            count = min(len(view), len(self._ready))
            view[:count] = self._ready[:count]
            self._ready = self._ready[count:]
            return count

        def close(self) -> None:
            self._file.close()
            super().close()

    return cast("IO[bytes]", io.BufferedReader(Reader(), 1 << 18))
