"""`mlpipe drift`: do new rows look like those that the model was trained on? Read in chunks, compared with `profile.json`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mlpipe.base import read_json
from mlpipe.columns import Column, text_counts
from mlpipe.console import console
from mlpipe.errors import DataError, IntegrityError, NotReadyError, SpecError
from mlpipe.metrics.shift import chi_square, kolmogorov_smirnov, psi
from mlpipe.sources.base import Source
from mlpipe.stages.ahead import ahead
from mlpipe.stages.predict import contract_of, source_of
from mlpipe.stages.prose import Prose
from mlpipe.stages.rows import typed_rows

if TYPE_CHECKING:
    import pyarrow as pa

Verdict = Literal["drift", "steady", "few values", "moves on"]


@dataclass(frozen=True)
class Limits:
    """Beyond one of them a column has drifted. Shares are of rows; below `min_rows` nothing is judged."""

    psi: float = 0.2
    missing: float = 0.05
    unseen: float = 0.05
    min_rows: int = 100


@dataclass(frozen=True)
class ColumnDrift:
    """One column then and now.

    `unseen`: of text the share of values without a code of their own, of numbers that beyond the range of the train rows.
    `p` belongs to `test` and decides nothing.
    """

    column: str
    role: Literal["feature", "target"]
    kind: str
    rows: int
    missing_then: float
    missing_now: float
    psi: float | None
    test: str | None
    statistic: float | None
    p: float | None
    unseen_then: float | None
    unseen_now: float | None
    verdict: Verdict
    reasons: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Drift:
    """What drift found, the worst column first."""

    rows: int
    train_rows: int
    limits: Limits
    columns: list[ColumnDrift]

    @property
    def judged(self) -> bool:
        """Whether there were enough rows."""
        return self.rows >= self.limits.min_rows

    @property
    def drifted(self) -> list[ColumnDrift]:
        """The columns beyond a limit."""
        return [column for column in self.columns if column.verdict == "drift"] if self.judged else []

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {**asdict(self), "judged": self.judged, "drifted": [column.column for column in self.drifted]}


def drift(export: Path, rows: Path, *, limits: Limits = Limits(), reader: Mapping[str, Any] | None = None) -> Drift:
    """Compares every feature of `rows`, and the target where it is there, with the profile in an export folder.

    `reader` changes how the file is read. Raises NotReadyError for a folder that is no export, IntegrityError for one that
    was changed, DataError for rows that cannot be read or lack a column.
    """
    for name, limit in asdict(limits).items():
        if not math.isfinite(limit) or limit < 0:
            raise SpecError(f"--{name.replace('_', '-')} {limit} is no limit", hint="a number from 0 on")
    contract = contract_of(export)
    profile = _profile(export)
    columns = {entry["name"]: Column.model_validate(entry["column"]) for entry in contract["inputs"]}
    with TemporaryDirectory(prefix="mlpipe-drift-") as aside:
        source = source_of(contract, rows, dict(reader or {})).local(rows.parent.resolve(), Path(aside) / "rows")
        return _compared(export, contract, profile, columns, source, rows, limits)


def _compared(
    export: Path,
    contract: Mapping[str, Any],
    profile: Mapping[str, Any],
    columns: dict[str, Column],
    source: Source,
    rows: Path,
    limits: Limits,
) -> Drift:
    """Reads and compares."""
    base = rows.parent.resolve()
    target = contract["target"]
    if all(target in source.names(file) for _, file in source.files(base)):
        columns[target] = Column(name=target, type="text" if contract["classes"] else "number")
        source = _with_target(source, contract["reader"], target)
    known = {entry["name"]: frozenset(entry["values"]) for entry in contract["inputs"] if "values" in entry}
    if contract["classes"]:
        known[target] = frozenset(contract["classes"])
    try:
        tallies = {name: _tally(profile[name], column.type, known.get(name)) for name, column in columns.items()}
    except (KeyError, TypeError, ValueError) as fault:
        raise IntegrityError(f"{export / 'profile.json'} is no profile of this model: {fault!r}", hint="export the model again") from None
    count = 0
    with console.progress("comparing") as bar:
        for chunk in ahead(typed_rows(source, base, list(columns.values()))):
            for name, tally in tallies.items():
                tally.look(chunk.rows.column(name))
            count += chunk.rows.num_rows
            bar.advance(chunk.rows.num_rows, f"rows {count:,}")
    if not count:
        raise DataError(f"{rows.name} has no rows", hint="is it the right file?")
    found = [_judged(name, "target" if name == target else "feature", tally, count, limits) for name, tally in tallies.items()]
    train_rows = max((entry["rows"] for entry in profile.values()), default=0)
    return Drift(count, train_rows, limits, sorted(found, key=_worst))


def _worst(found: ColumnDrift) -> tuple[Any, ...]:
    return (
        found.verdict != "drift",
        found.verdict == "moves on",
        -(found.psi or 0.0),
        -abs(found.missing_now - found.missing_then),
        found.column,
    )


def _profile(export: Path) -> dict[str, Any]:
    """The columns of profile.json."""
    path = export / "profile.json"
    try:
        found = read_json(path)["columns"]
        return dict(found)
    except FileNotFoundError:
        raise NotReadyError(f"there is no {path}", hint="an older mlpipe made this export; run mlpipe export again") from None
    except (OSError, ValueError, KeyError, TypeError) as fault:
        raise IntegrityError(f"{path} cannot be read: {fault}", hint="export the model again, or put the file back") from None


def _with_target(source: Source, recorded: Mapping[str, Any], target: str) -> Source:
    """The reader with what the pipeline says of the target's cells, which rows to be scored need not have."""
    changes: dict[str, Any] = {}
    if target in recorded["replace"]:
        changes["replace"] = {**source.replace, target: recorded["replace"][target]}
    if target in recorded["missing_by_column"]:
        changes["missing_by_column"] = {**source.missing_by_column, target: tuple(recorded["missing_by_column"][target])}
    return source.model_copy(update=changes) if changes else source


# ---- counts, column by column


class _Text:
    """Rows by common value, of new rows; `known` are the values with a code of their own, None when all are alike."""

    kind, test = "text", "chi-square"

    def __init__(self, profile: Mapping[str, Any], known: frozenset[str] | None) -> None:
        self.profile, self.known = profile, known
        self.at = {value: i for i, (value, _) in enumerate(profile["top"])}
        self.then = np.array([*(count for _, count in profile["top"]), profile["other"]], dtype=np.int64)
        self.now = np.zeros(len(self.then), dtype=np.int64)
        self.missing_then = _share(profile)
        self.missing = self.unseen = 0

    def look(self, array: pa.Array) -> None:
        """Counts the values of a chunk."""
        import pyarrow as pa

        self.missing += array.null_count
        for value, count in text_counts(pa.chunked_array([array])).items():
            self.now[self.at.get(value, -1)] += count
            if self.known is not None and value not in self.known:
                self.unseen += count

    def shift(self) -> tuple[float | None, tuple[float, float] | None]:
        """PSI and test."""
        return psi(self.then, self.now), chi_square(self.then, self.now)

    def strange(self, present: int) -> tuple[float | None, float | None]:
        """Shares of values without a code, then and now."""
        if self.known is None:
            return None, None
        before = int(self.then.sum())
        then = self.profile.get("rare", 0) / before if before else 0.0
        held = self.profile.get("held_out", {"rows": 0})  # rows that did not choose the codes: what new ones are like
        if held["rows"]:
            then = max(then, held["without_code"] / held["rows"])
        return then, (self.unseen / present if present else 0.0)


class _Number:
    """Rows by range and by knot, of new rows."""

    test = "KS"

    def __init__(self, profile: Mapping[str, Any]) -> None:
        self.kind = str(profile["kind"])
        empty = "ranges" not in profile  # a column without any value in training
        self.edges = np.array([] if empty else profile["ranges"]["edges"], dtype=np.float64)
        self.then = np.array([0] if empty else profile["ranges"]["counts"], dtype=np.int64)
        self.now = np.zeros_like(self.then)
        known = {"at": [], "below": [], "upto": []} if empty else profile["distribution"]
        self.knots = np.array(known["at"], dtype=np.float64)
        self.knots_then = np.array([known["below"], known["upto"]], dtype=np.int64)
        self.knots_now = np.zeros_like(self.knots_then)
        if len(self.then) != len(self.edges) + 1 or self.knots_then.shape[1] != len(self.knots):
            raise ValueError("its counts do not fit together")
        self.missing_then = _share(profile)
        self.missing = self.beyond = 0

    def look(self, array: Any) -> None:
        """Counts the values of a chunk."""
        import pyarrow as pa

        self.missing += array.null_count
        values = array.drop_null()
        if pa.types.is_timestamp(values.type):
            numbers = values.cast(pa.int64()).to_numpy(zero_copy_only=False) / 1e6
        else:
            numbers = values.to_numpy(zero_copy_only=False)
        ordered = np.sort(numbers)
        upto = np.searchsorted(ordered, self.edges, side="right")
        self.now += np.diff(np.concatenate([[0], upto, [len(ordered)]]))
        if len(self.knots):
            self.knots_now[0] += np.searchsorted(ordered, self.knots, side="left")
            self.knots_now[1] += np.searchsorted(ordered, self.knots, side="right")
            self.beyond += int(np.searchsorted(ordered, self.knots[0], side="left"))
            self.beyond += len(ordered) - int(np.searchsorted(ordered, self.knots[-1], side="right"))

    def shift(self) -> tuple[float | None, tuple[float, float] | None]:
        """PSI and test."""
        rows = (int(self.then.sum()), int(self.now.sum()))
        return psi(self.then, self.now), kolmogorov_smirnov(self.knots_then, self.knots_now, rows) if len(self.knots) else None

    def strange(self, present: int) -> tuple[float | None, float | None]:
        """The share beyond the range of the train rows: none of those was."""
        return 0.0, (self.beyond / present if present else 0.0)


def _tally(profile: Mapping[str, Any], kind: str, known: frozenset[str] | None) -> _Text | _Number | Prose:
    if profile["kind"] != kind:
        raise ValueError(f"{profile['kind']} where the model takes {kind}")
    if "prose" in profile:
        return Prose(profile)
    return _Text(profile, known) if kind == "text" else _Number(profile)


def _share(profile: Mapping[str, Any]) -> float:
    """Of the train rows, those without a value."""
    return float(profile["missing"] / profile["rows"]) if profile["rows"] else 0.0


def _judged(name: str, role: Literal["feature", "target"], tally: _Text | _Number | Prose, rows: int, limits: Limits) -> ColumnDrift:
    """The figures of a column and what they mean."""
    present = rows - tally.missing
    index, tested = tally.shift()
    before, after = tally.strange(present)
    gone_then, gone_now = tally.missing_then, tally.missing / rows
    reasons = []
    if role == "feature" and abs(gone_now - gone_then) > limits.missing:  # answers often come later than rows
        reasons.append(f"missing {gone_then:.1%} -> {gone_now:.1%}, more than {limits.missing:.3g} apart")
    enough = present >= limits.min_rows
    if tally.kind != "timestamp" and enough:
        if index is not None and index > limits.psi:
            reasons.append(f"PSI {index:.3f}, above {limits.psi:.3g}")
        if before is not None and after is not None and after - before > limits.unseen:
            what = (
                "beyond the range of the train rows"
                if tally.kind == "number"
                else "values without a code of their own (never seen, or seldom)"
            )
            reasons.append(f"{after:.1%} {what} (then {before:.1%}), more than {limits.unseen:.3g} apart")
    verdict: Verdict = "drift" if reasons else "moves on" if tally.kind == "timestamp" else "steady" if enough else "few values"
    if role == "target" and not present and not reasons:
        verdict = "steady"
    return ColumnDrift(
        name, role, tally.kind, rows, gone_then, gone_now, index, tally.test if tested else None,
        tested[0] if tested else None, tested[1] if tested else None, before, after, verdict, reasons,
    )  # fmt: skip


def lines(found: Drift) -> Sequence[Sequence[str]]:
    """The rows of a table for people."""

    def share(value: float | None) -> str:
        return "" if value is None else f"{value:.1%}"

    head = ("column", "kind", "rows", "missing then", "now", "PSI", "test", "p", "unseen", "verdict")
    return [
        head,
        *(
            (
                f"{c.column} (target)" if c.role == "target" else c.column,
                c.kind,
                f"{c.rows:,}",
                share(c.missing_then),
                share(c.missing_now),
                "" if c.psi is None else f"{c.psi:.3f}",
                "" if c.test is None else f"{c.test} {c.statistic:.3g}",
                "" if c.p is None else f"{c.p:.2g}",
                share(c.unseen_now),
                c.verdict + (f": {'; '.join(c.reasons)}" if c.reasons else ""),
            )
            for c in found.columns
        ),
    ]
