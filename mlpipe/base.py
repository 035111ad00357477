"""What every settings class and every writer of files shares."""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, model_validator

from mlpipe.errors import MachineError, SpecError

ENV = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}")

Split = Literal["train", "valid", "test"]
SPLITS: tuple[Split, ...] = ("train", "valid", "test")


def expand(value: Any) -> Any:
    """`${env:NAME}` replaced in every text below `value`. Raises SpecError when a variable is not set."""
    if isinstance(value, str):
        return ENV.sub(_variable, value)
    if isinstance(value, dict):
        return {key: expand(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [expand(item) for item in value]
    return value


def _variable(match: re.Match[str]) -> str:
    name = match.group(1)
    if name not in os.environ:
        raise SpecError(f"the environment variable {name} is not set", hint=f"export {name}=... before the command")
    return os.environ[name]


class Settings(BaseModel):
    """Frozen settings that refuse unknown names. Their defaults are written once, in the class.

    `${env:NAME}` is expanded when the file is read, except in the fields named by `locations`: those keep it until they
    are used, so that no path or password of one machine enters a manifest.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, validate_default=True, defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _expand(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        if not _mentions(data):
            return data
        kept = cls.locations()
        try:
            return {key: value if key in kept else _expanded(value, cls._is_table(key)) for key, value in data.items()}
        except SpecError as fault:
            raise ValueError(fault.message) from None

    @classmethod
    def _is_table(cls, name: str) -> bool:
        """Whether a field is a plain map; other maps are settings, which expand their own fields."""
        field = cls.model_fields.get(name)
        kinds = (field.annotation, *get_args(field.annotation)) if field else ()
        return any((get_origin(kind) or kind) is dict for kind in kinds)

    @classmethod
    def locations(cls) -> frozenset[str]:
        """The fields that say where something lies; they keep `${env:NAME}` as it is."""
        return frozenset()


def _expanded(value: Any, table: bool) -> Any:
    """`value` expanded, but for settings in it, which know their own locations."""
    if isinstance(value, dict) and not table:
        return value
    if isinstance(value, (list, tuple)):
        return [_expanded(item, table) for item in value]
    return expand(value)


def _mentions(data: dict[str, Any]) -> bool:
    return "${env:" in str(data)


class NumberFormat(Settings):
    """How a text source writes numbers."""

    decimal: str = "."
    thousands: str | None = None


def read_json(path: Path) -> Any:
    """A strict JSON file: NaN and Infinity are refused. Raises ValueError or OSError."""

    def refuse(constant: str) -> Any:
        raise ValueError(f"{path.name} holds {constant}, which is not JSON")

    return json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)


def json_text(value: Any) -> str:
    """JSON as our files have it: indent 2, sorted keys, a final newline, never NaN."""
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def write_text(path: Path, text: str) -> None:
    """Writes a whole file of UTF-8 with line feeds as line ends."""
    path.write_bytes(text.encode())


def write_json(path: Path, value: Any) -> None:
    """Writes `value` as `json_text`."""
    write_text(path, json_text(value))


def replace_file(path: Path, data: bytes) -> None:
    """Writes `data` beside `path`, flushes it to the disk and renames it: the old file or the new one, never a part.

    Raises MachineError when the machine refuses (disk full, not writable).
    """
    aside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with machine_faults(path):
        try:
            with aside.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            aside.replace(path)
            sync_folder(path.parent)
        finally:
            aside.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Flushes a folder's own entries to the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


REFUSALS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EFBIG, errno.EIO, errno.ENAMETOOLONG,
            errno.ENOTDIR, errno.EEXIST}  # fmt: skip


@contextmanager
def machine_faults(path: Path) -> Iterator[None]:
    """Turns the machine's refusal to write `path` into a MachineError that names it."""
    try:
        yield
    except OSError as fault:
        if fault.errno not in REFUSALS:
            raise
        raise refusal(fault, path) from fault


def refusal(fault: OSError, path: Path) -> MachineError:
    """The MachineError for an OSError about `path`."""
    name = fault.filename or path
    hint = {
        errno.ENOSPC: "free some space or choose another disk with --runs; finished results are untouched",
        errno.EDQUOT: "the quota is used up; finished results are untouched",
    }.get(fault.errno or 0, "check who may write there, or choose another folder with --runs")
    reason = "no space left on the device" if fault.errno == errno.ENOSPC else (fault.strerror or str(fault)).lower()
    return MachineError(f"cannot write {name}: {reason}", hint=hint)
