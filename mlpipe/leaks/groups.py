"""Columns that name a person or a thing with several rows: rows of one of them should not train and test.

`group_columns` looks at a table (or a sample of it) and knows nothing of pipelines; `init` and `prepare` both ask it.
`Crossing` counts, chunk by chunk, which groups have rows on both sides of a split.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

PERSONS = frozenset({
    "subject", "patient", "person", "participant", "respondent", "user", "customer", "client", "buyer", "shopper", "visitor",
    "member", "donor", "student", "pupil", "employee", "worker", "driver", "rider", "player", "speaker", "author", "candidate",
    "applicant", "borrower", "cardholder",
})  # fmt: skip
THINGS = frozenset({
    "household", "account", "session", "visit", "encounter", "admission", "device", "machine", "engine", "sensor", "meter",
    "turbine", "battery", "specimen", "animal", "document", "doc", "conversation", "dialog", "dialogue", "thread", "episode",
    "recording",
})  # fmt: skip
MARKS = frozenset({"id", "ids", "no", "nr", "num", "number", "uuid", "guid", "hash", "idx"})
MARKS_OF_PERSONS = MARKS | {"name", "code", "key", "index", "ref"}  # the code of an engine is its kind
LEAST_GROUPS = 5
LEAST_MEAN = 2.0
SAMPLE = 100_000
KEPT_GROUPS = 1 << 19
DATES = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T].*)?")


@dataclass(frozen=True)
class GroupEvidence:
    """Why a column looks like the name of something with several rows each.

    `groups` distinct values in `rows` rows that have one; `named`: its name says so; `determines`: other columns that
    have one value within each group (age and sex of a patient).
    """

    column: str
    rows: int
    groups: int
    named: bool
    determines: tuple[str, ...]

    @property
    def said(self) -> str:
        """The evidence in words."""
        also = f"; it determines {', '.join(self.determines[:4])}" if self.determines else ""
        return f"{self.groups:,} values in {self.rows:,} rows{also}"


def names_entity(column: str) -> Literal["certain", "perhaps"] | None:
    """Whether a column's name alone speaks of one person or thing.

    `certain`: it says that it is an id (`subject#`, `patient_id`, `CustomerID`, `id`). `perhaps`: the bare word (`user`,
    `session`), which may as well be a kind or a count.
    """
    words = [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", column)]
    if words in (["id"], ["uid"], ["uuid"], ["guid"]):
        return "certain"
    if len(words) == 1 and words[0].endswith("id") and words[0][:-2] in PERSONS | THINGS:  # customerid
        return "certain"
    for entities, marks in ((PERSONS, MARKS_OF_PERSONS), (THINGS, MARKS)):
        rest = [word for word in words if word not in marks]
        if len(rest) == 1 and rest[0] in entities:
            return "certain" if len(words) > 1 or "#" in column else "perhaps"
    return None


def group_columns(table: pa.Table | Sequence[pa.RecordBatch], *, ignore: Sequence[str] = ()) -> list[GroupEvidence]:
    """Columns that look like names of groups, those with a telling name first. At most `SAMPLE` rows are looked at.

    In:  a table or its batches; text, dictionary-encoded text, numbers or times. `ignore` names columns to leave out as
         groups and as evidence (the target, say).
    A column with a telling name counts when most of its rows share their value with another row: a row number does not.
    If its name is the bare word (`user`, `household`), it must determine another column too: a count does not.
    Without such a name it takes more: at least 20 groups of 5 rows and more on average, and two other columns that are
    constant within every group and tell fewer groups apart than it does (a code and its label do not).
    """
    import pyarrow as pa

    whole = table if isinstance(table, pa.Table) else pa.Table.from_batches(list(table)) if table else pa.table({})
    whole = whole.slice(0, SAMPLE)
    codes = {name: _codes(whole.column(name)) for name in whole.column_names if name not in ignore}
    found = []
    for name, mine in codes.items():
        kind = whole.schema.field(name).type
        if pa.types.is_timestamp(kind) or pa.types.is_date(kind) or _dates(whole.column(name)):
            continue
        named = names_entity(name)
        if not named and (pa.types.is_floating(kind) and not _whole_numbers(whole.column(name))):
            continue
        evidence = _evidence(name, mine, codes, named)
        if evidence is not None:
            found.append(evidence)
    return sorted(found, key=lambda e: (not e.named, -len(e.determines), e.column))


def _evidence(name: str, mine: np.ndarray, codes: dict[str, np.ndarray], named: str | None) -> GroupEvidence | None:
    import numpy as np

    present = mine >= 0
    rows = int(present.sum())
    sizes = np.bincount(mine[present]) if rows else np.array([], dtype=np.int64)
    groups = int((sizes > 0).sum())
    if groups < LEAST_GROUPS or rows < LEAST_MEAN * groups or sizes[sizes > 1].sum() < rows / 2:
        return None
    if not named and (groups < 20 or rows < 5 * groups):
        return None
    determines = tuple(other for other, theirs in codes.items() if other != name and _determines(mine, theirs, groups))
    if len(determines) < {"certain": 0, "perhaps": 1}.get(named or "", 2):
        return None
    return GroupEvidence(name, rows, groups, named is not None, determines)


def _determines(mine: np.ndarray, theirs: np.ndarray, groups: int) -> bool:
    """Whether a column has one value within each group, and fewer than there are groups, yet not one alone."""
    import numpy as np

    few = mine[:4096].astype(np.int64) * (int(theirs.max()) + 2) + theirs[:4096]  # most columns fall here already
    if not len(few) or len(np.unique(few[(mine[:4096] >= 0) & (theirs[:4096] >= 0)])) > len(np.unique(mine[:4096])):
        return False
    both = (mine >= 0) & (theirs >= 0)
    if not both.any():
        return False
    values = np.unique(theirs[both])
    if len(values) < 2 or len(values) > 0.7 * groups:
        return False
    counts = np.bincount(theirs[both])
    if counts.max() > 0.98 * both.sum():  # a column that is nearly constant is determined by anything
        return False
    pairs = np.unique(mine[both].astype(np.int64) * (int(theirs.max()) + 1) + theirs[both])
    return len(pairs) == len(np.unique(mine[both]))


def _codes(column: Any) -> np.ndarray:
    """int32 [rows]: a number for each distinct value, -1 where it is missing."""
    import numpy as np
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_floating(column.type):
        column = column.cast(pa.float64())
    try:
        encoded = column.combine_chunks().dictionary_encode()
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):  # lists and structs name nothing
        return np.full(len(column), -1, dtype=np.int32)
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks() if encoded.num_chunks != 1 else encoded.chunk(0)
    found: np.ndarray = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32)
    return found


def _whole_numbers(column: Any) -> bool:
    import numpy as np

    values = column.drop_null().to_numpy()
    return bool(np.all(values == np.floor(values)))


def _dates(column: Any) -> bool:
    """Whether a text column's first value is a date: days repeat and determine months, yet name nobody."""
    import pyarrow as pa

    if not (pa.types.is_dictionary(column.type) or pa.types.is_string(column.type)) or len(column) == column.null_count:
        return False
    first = next(value.as_py() for value in column if value.is_valid)
    return isinstance(first, str) and DATES.fullmatch(first.strip()) is not None


class Crossing:
    """Rows by group and split of one column, in bounded memory.

    In: uint64 hashes of groups [rows] and split codes [rows] (0 train, 1 valid, 2 test), chunk by chunk. Beyond
    `KEPT_GROUPS` groups only those are kept whose hash has its lowest bits clear, more of them each time: a fair sample
    of whole groups. `scale` says how many groups one of the sample stands for.
    """

    def __init__(self, most: int = KEPT_GROUPS) -> None:
        import numpy as np

        self.most, self.scale = most, 1
        self.keys: np.ndarray = np.array([], dtype=np.uint64)
        self.counts: np.ndarray = np.zeros((0, 3), dtype=np.int64)

    def add(self, hashes: np.ndarray, codes: np.ndarray) -> None:
        """Counts rows."""
        import numpy as np

        if self.scale > 1:
            chosen = hashes & np.uint64(self.scale - 1) == 0
            hashes, codes = hashes[chosen], codes[chosen]
        keys, where = np.unique(hashes, return_inverse=True)
        counts = np.bincount(where * 3 + codes, minlength=3 * len(keys)).reshape(-1, 3)
        merged, at = np.unique(np.concatenate([self.keys, keys]), return_inverse=True)
        total = np.zeros((len(merged), 3), dtype=np.int64)
        total[at[: len(self.keys)]] = self.counts
        total[at[len(self.keys) :]] += counts
        self.keys, self.counts = merged, total
        while len(self.keys) > self.most:
            self.scale *= 2
            chosen = self.keys & np.uint64(self.scale - 1) == 0
            self.keys, self.counts = self.keys[chosen], self.counts[chosen]

    def found(self) -> dict[str, int]:
        """Groups, rows, groups in train and in test (or valid, where no row tests), and the test rows of such groups."""
        held = 2 if self.counts[:, 2].any() else 1
        both = (self.counts[:, 0] > 0) & (self.counts[:, held] > 0)
        return {
            "groups": len(self.keys) * self.scale,
            "rows": int(self.counts.sum()) * self.scale,
            "groups_on_both_sides": int(both.sum()) * self.scale,
            "test_rows": int(self.counts[:, held].sum()) * self.scale,
            "test_rows_of_them": int(self.counts[both, held].sum()) * self.scale,
        }

    def crosses(self) -> bool:
        """Whether a tenth or more of the test rows belong to groups that train too, of groups that mostly repeat."""
        told = self.found()
        sizes = self.counts.sum(axis=1)
        repeats = len(sizes) >= LEAST_GROUPS and sizes.sum() >= LEAST_MEAN * len(sizes) and sizes[sizes > 1].sum() >= sizes.sum() / 2
        return bool(repeats) and told["test_rows_of_them"] >= 0.1 * max(told["test_rows"], 1) and told["groups_on_both_sides"] > 0
