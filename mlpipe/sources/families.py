"""Arrow types that go together in one column."""

from __future__ import annotations

from typing import Any


def family(kind: Any) -> str:
    """Types whose values go together in one column without loss; a column of nothing but nulls goes with all."""
    import pyarrow as pa

    if isinstance(kind, str):
        return kind
    if pa.types.is_dictionary(kind):
        return family(kind.value_type)
    if pa.types.is_null(kind):
        return "none"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    if is_text(kind) or pa.types.is_string_view(kind):
        return "text"
    if pa.types.is_timestamp(kind):
        return "time with a zone" if kind.tz else "time"
    return "time" if pa.types.is_date(kind) else str(kind)


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is text (views of text are cast before)."""
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
