"""Whether each split has rows, and about the share that was asked for; where not, why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mlpipe.base import SPLITS, Split
from mlpipe.columns import row_hash
from mlpipe.errors import DataError
from mlpipe.spec import PrepareSpec
from mlpipe.splits.group import GroupSplit
from mlpipe.splits.random import RandomSplit

OFF, OFF_ALL = 0.2, 0.05  # of the share asked for, and of all rows: further away than both is told
LOOKED_AT = 2_000_000  # rows


def check_splits(spec: PrepareSpec, rows: Mapping[Split, int], files: str, used: Sequence[str], out: Path) -> str | None:
    """What to tell of splits whose shares are far from those asked for. `used` are the columns of features and target.

    Raises DataError when a split that is wanted has no rows.
    """
    wanted = {"train": True, "valid": spec.split.validates, "test": True}
    if empty := [name for name in SPLITS if wanted[name] and not rows[name]]:
        sizes = ", ".join(f"{name} {count:,}" for name, count in rows.items())
        cause = _cause(spec, rows, used, out)
        raise DataError(
            f"the split {empty[0]!r} is empty: {sum(rows.values()):,} rows of {files} became {sizes}",
            faults=[cause] if cause else (),
            hint="more rows, larger shares under prepare.split (valid: 0 does without), or a test source of its own",
        )
    parts: dict[Split, float] = {"valid": spec.split.valid, **({} if spec.test else {"test": spec.split.test})}
    total = sum(rows[name] for name in SPLITS if name != "test" or not spec.test)
    gaps = [(abs(rows[name] - share * total), share * total) for name, share in parts.items()]
    if not any(gap > OFF * asked and gap > OFF_ALL * total for gap, asked in gaps):
        return None
    cause = _cause(spec, rows, used, out)
    told = ", ".join(f"{name} {rows[name] / total:.0%} of the rows ({share:.0%} asked for)" for name, share in parts.items())
    return f"{cause}: {told}" if cause else None


def _cause(spec: PrepareSpec, rows: Mapping[Split, int], used: Sequence[str], out: Path) -> str | None:
    """Few different rows, or few groups: they are not cut in two."""
    if isinstance(spec.split, GroupSplit):
        columns, what = list(spec.split.by), "groups"
    elif isinstance(spec.split, RandomSplit):
        columns = list(spec.split.key) if spec.split.key else list(used)
        what = "keys" if spec.split.key else "different rows in the columns of features and target"
    else:
        return None
    own = [name for name in SPLITS if rows[name] and not (name == "test" and spec.test)]
    found = _distinct(own, columns, out)
    total = sum(rows[name] for name in own)
    if found is None or found > total / 2:
        return None
    more = "" if what != "different rows in the columns of features and target" else " (split.key: [...] tells rows apart by other columns)"
    return f"{total:,} rows have only {found:,} {what}, and equal ones stay together{more}"


def _distinct(splits: Sequence[Split], columns: list[str], out: Path) -> int | None:
    """How many different rows there are; None where there are too many to look at."""
    from pyarrow import parquet as pq

    hashes: list[np.ndarray] = []
    count = 0
    for name in splits:
        for batch in pq.ParquetFile(out / f"{name}.parquet").iter_batches(columns=columns):
            count += batch.num_rows
            if count > LOOKED_AT:
                return None
            coded = batch.from_arrays([_coded(column) for column in batch.columns], names=batch.schema.names)
            hashes.append(row_hash(coded, columns, 0))
    return len(np.unique(np.concatenate(hashes))) if hashes else 0


def _coded(column: Any) -> Any:
    """Text as `row_hash` takes it."""
    import pyarrow as pa

    return column.dictionary_encode() if pa.types.is_string(column.type) else column
