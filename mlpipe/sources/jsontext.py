"""What `json` and `jsonl` share: a decoder that keeps the digits of numbers, and cells as text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mlpipe.errors import DataError


class Digits(str):
    """A number as the file writes it, told from a text."""

    __slots__ = ()


def decoder() -> json.JSONDecoder:
    """A strict decoder: numbers become `Digits`, the text that they are, a name that stands twice and NaN are refused (ValueError)."""
    return json.JSONDecoder(object_pairs_hook=_object, parse_float=Digits, parse_int=Digits, parse_constant=_constant)


def cell(value: Any, name: str, place: str, file: Path) -> str | None:
    """A decoded value as the text of a cell. Raises DataError for one that is no single value."""
    if value is None:
        return None
    if isinstance(value, str):
        if not value.isascii() and any("\ud800" <= sign <= "\udfff" for sign in value):
            raise DataError(f"{file.name}, {place}: {name!r} holds half a character ({value!r})", hint="mend the escape in the file")
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    raise DataError(f"{file.name}, {place}: {name!r} holds {json.dumps(value)[:60]}, which is no single value", hint="flatten it first")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the name {next(n for n in names if names.count(n) > 1)!r} stands twice")
    return record


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
