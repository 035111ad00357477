"""How `init` parts the rows: at random, or the past from the future where each row is a later moment than the one before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mlpipe.columns import Column, convert
from mlpipe.leaks.groups import GroupEvidence
from mlpipe.stages.look.guess import Guess
from mlpipe.stages.look.study import Study

if TYPE_CHECKING:
    import numpy as np

PARTS = (("year", "yr"), ("month", "mon", "mnth", "mo"), ("day", "dd"), ("hour", "hr"), ("minute", "min"))  # of a moment, in order


@dataclass(frozen=True)
class InTime:
    """Columns whose values never fall from row to row; `later` where every row is a later moment than the one before."""

    columns: tuple[str, ...]
    format: str | None  # of the one column that holds whole moments; None for parts of one
    later: bool

    @property
    def said(self) -> str:
        """The columns, for people."""
        return ", ".join(self.columns)


def in_time(found: Study, guesses: Sequence[Guess]) -> InTime | None:
    """The columns by which the rows stand in the order of time, looked for in one more pass over them."""
    dates = [guess for guess in guesses if guess.kind == "datetime" and not guess.missing]
    named = {guess.name.casefold(): guess.name for guess in guesses if guess.kind == "numeric" and not guess.missing}
    parts = []
    for names in PARTS:
        part = next((named[name] for name in names if name in named), None)
        if part is None:
            break
        parts.append(part)
    candidates: dict[tuple[str, ...], _Rising] = {
        (guess.name,): _Rising([Column(name=guess.name, type="timestamp", format=guess.format)]) for guess in dates
    }
    if len(parts) > 1:
        candidates[tuple(parts)] = _Rising([Column(name=name, type="number") for name in parts])
    if not candidates or found.rows < 2:
        return None
    columns = list(dict.fromkeys(name for names in candidates for name in names))
    for chunk in found.seen.source.chunks(found.base, columns):
        for rising in candidates.values():
            rising.look(chunk.rows, found)
        if not any(rising.holds for rising in candidates.values()):
            return None
    formats = {guess.name: guess.format for guess in dates}
    standing = [
        InTime(names, formats[names[0]] if len(names) == 1 else None, rising.later)
        for names, rising in candidates.items()
        if rising.holds and rising.moves
    ]
    return max(standing, key=lambda order: order.later, default=None)


class _Rising:
    """Whether rows rise by some columns, the first of which counts most."""

    def __init__(self, columns: list[Column]) -> None:
        self.columns = columns
        self.holds, self.later, self.moves = True, True, False
        self._last: tuple[float, ...] | None = None

    def look(self, rows: Any, found: Study) -> None:
        """Compares each row with the one before, that of the chunk before too."""
        import numpy as np
        import pyarrow as pa

        if not self.holds:
            return
        parts = []
        for column in self.columns:
            array, faults = convert(rows.column(column.name), column, found.form)
            if faults or array.null_count:
                self.holds = False
                return
            parts.append(array.cast(pa.int64() if column.type == "timestamp" else pa.float64()).to_numpy(zero_copy_only=False))
        stacked = np.stack([part.astype(np.float64) for part in parts])
        if self._last is not None:
            stacked = np.concatenate([np.array(self._last)[:, None], stacked], axis=1)
        falls, stays = _steps(stacked)
        self.holds = not falls
        self.later = self.later and not stays
        self.moves = self.moves or (stacked.shape[1] > 1 and bool((stacked[:, 1:] != stacked[:, :-1]).any()))
        self._last = tuple(stacked[:, -1].tolist())


def _steps(stacked: np.ndarray) -> tuple[bool, bool]:
    """Whether any column of [parts, rows] is less than, and whether any equals, the one before it, read from the top."""
    import numpy as np

    change = np.sign(np.diff(stacked, axis=1))
    first = np.zeros(change.shape[1])
    for part in change:
        first = np.where(first == 0, part, first)
    return bool((first < 0).any()), bool((first == 0).any())


def split_lines(order: InTime | None, entities: Sequence[GroupEvidence], *, stratify: bool) -> tuple[list[str], list[str]]:
    """The lines of `split:` with their comments, and what a person should be told."""
    plain = f"split: {{kind: random, valid: 0.1, test: 0.2{', stratify: true' if stratify else ''}}}"
    if entities and (order is None or not order.later):
        first = entities[0]
        told = f"rows of the same {first.column} are alike ({first.said}): a random split tests on whom it has trained on"
        split = f"{{kind: group, by: [{_scalar(first.column)}], valid: 0.1, test: 0.2}}"
        how = f"to know how the model does on others, split by group instead: {split}"
        return [f"# WARNING: {told}", f"# {how}", plain], [f"{told}; {how}"]
    if order is None:
        return [plain], []
    if not order.later:
        told = f"the rows stand in the order of time ({order.said}): a random split tests on days that it has trained on"
        how = "where the future is to be predicted, split by order instead: {kind: order, valid: 0.1, test: 0.2}"
        return [f"# {told}", f"# {how}", plain], [f"{told}; {how}"]
    why = f"# each row is a later moment than the one before ({order.said}): the past trains, the future tests"
    if order.format is None:
        return [why, "split: {kind: order, valid: 0.1, test: 0.2}"], []
    form = f", format: {_scalar(order.format)}" if order.format != "iso" else ""
    return [why, f"split: {{kind: time, by: {_scalar(order.columns[0])}{form}, valid: 0.1, test: 0.2}}"], []


def _scalar(value: str) -> str:
    from mlpipe.stages.init.writer import scalar

    return scalar(value)
