"""Bytes of a file, unpacked on the way: gz, bz2, xz, zst and zip, by its first bytes or by setting."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Literal, cast

from mlpipe.errors import DataError, listed

Compression = Literal["auto", "none", "gz", "bz2", "xz", "zst", "zip"]
ENDINGS: dict[str, Compression] = {".gz": "gz", ".bz2": "bz2", ".xz": "xz", ".zst": "zst", ".zip": "zip"}

# how packed files begin; none of them can begin a text in any encoding that has letters
MAGIC: dict[bytes, Compression] = {
    b"\x1f\x8b\x08": "gz",
    b"BZh": "bz2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zst",
    b"PK\x03\x04": "zip",
    b"PK\x05\x06": "zip",
}


@contextmanager
def open_bytes(file: Path, compression: Compression = "auto") -> Iterator[IO[bytes]]:
    """The unpacked bytes of a file. Raises DataError when it cannot be read, is damaged or is cut off."""
    import lzma
    import zipfile
    import zlib

    import zstandard

    kind = compression
    try:
        if compression == "auto":
            kind = packing(file)
        with _opened(file, kind) as stream:
            yield stream
    except zipfile.BadZipFile as fault:
        raise DataError(f"{file.name} is no whole zip file: {str(fault).lower()}", hint="fetch it again") from None
    except (EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError) as fault:
        raise DataError(f"{file.name} is damaged or cut off: {str(fault).lower()}", hint=f"it was read as {kind}; fetch it again") from None
    except IsADirectoryError:
        raise DataError(f"{file.name} is a folder, not a file") from None
    except OSError as fault:
        if fault.errno is None:  # gzip and bz2 say "not a gzipped file" this way
            raise DataError(f"{file.name} is no {kind} file: {fault}", hint="set `compression` to what it is") from None
        raise DataError(f"{file.name} cannot be read: {(fault.strerror or str(fault)).lower()}") from None


def packing(file: Path) -> Compression:
    """How a file is packed: by its first bytes, else by its ending. Raises OSError when it cannot be read.

    `BZh` could begin a text: a bzip2 file goes on with a digit and the six bytes that each of its blocks begins with.
    """
    with file.open("rb") as opened:
        head = opened.read(10)
    for magic, kind in MAGIC.items():
        if head.startswith(magic) and (kind != "bz2" or head[4:10] in (b"1AY&SY", b"\x17rE8P\x90")):
            return kind
    return ENDINGS.get(file.suffix.lower(), "none")


def _in_zip(file: Path) -> IO[bytes]:
    """The one file in a zip; what packers add beside it (folders, `__MACOSX`) does not count. Raises DataError when there are more."""
    import zipfile

    archive = zipfile.ZipFile(file)
    try:
        inside = [entry for entry in archive.infolist() if not entry.is_dir() and not entry.filename.startswith("__MACOSX/")]
        names = {entry.filename for entry in inside}
        for mark, kind in (("[Content_Types].xml", "excel"), ("content.xml", "ods")):
            if mark in names:
                raise DataError(f"{file.name} is an office document, not a packed text", hint=f"kind: {kind} reads workbooks")
        if len(inside) != 1:
            what = f"holds {len(inside)} files: {listed([entry.filename for entry in inside])}" if inside else "holds no file"
            raise DataError(f"{file.name} {what}", hint="unpack it, and name the files that are meant")
        if inside[0].flag_bits & 1:
            raise DataError(f"{file.name} is protected by a password", hint="unpack it first")
        return archive.open(inside[0])
    except NotImplementedError as fault:
        raise DataError(f"{file.name} cannot be unpacked: {fault}", hint="unpack it first") from None
    finally:
        archive.close()  # the entry keeps the file open until it is closed itself


def _opened(file: Path, kind: Compression) -> IO[bytes]:
    if kind == "zip":
        return _in_zip(file)
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
