"""What watches the rows of prepare on their way: the checks of the pipeline file, and which row of which file became what.

Columns that only a check (or the search for groups) wants are read along and never written: they change neither the
prepared rows nor what follows prepare.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mlpipe.checks.base import At, Check, Finding, Setting, Tally, shown
from mlpipe.checks.fresh import Fresh
from mlpipe.columns import Column
from mlpipe.console import console
from mlpipe.errors import DataError
from mlpipe.leaks.groups import names_entity
from mlpipe.sources.base import Source
from mlpipe.spec import PipelineSpec
from mlpipe.stages.rows import Typed

if TYPE_CHECKING:
    from mlpipe.manifest import Manifest

FIRST_SHOWN = 5
ALONG = ("csv", "fixed", "parquet", "arrow")  # kinds of which a column more is read without a look at its cells


class Watch:
    """Checks and places for one run of prepare."""

    def __init__(self, spec: PipelineSpec, base: Path, columns: Sequence[Column], source: Source, test: Source | None) -> None:
        self.spec, self.base = spec, base
        self.own = list(columns)
        self.notes: list[str] = []
        self.ledger = Ledger()
        self.sources: dict[bool, Source] = {False: source} | ({True: test} if test is not None else {})
        self._extra: dict[bool, list[Column]] = {}
        self._tallies: dict[bool, list[tuple[Check, Tally]]] = {}

    # ---- what is read

    def columns(self, own_test: bool) -> list[Column]:
        """The pipeline's columns and those that are read along, of the source or of the test source."""
        if own_test not in self._extra:
            self._extra[own_test] = self._along(own_test)
        return [*self.own, *self._extra[own_test]]

    def _along(self, own_test: bool) -> list[Column]:
        used = {column.name for column in self.own}
        made = [check for check in self.spec.prepare.checks if check.for_test() or not own_test]
        checked = [name for check in made for name in check.names() if name not in used]
        source = self.sources[own_test]
        names = list(dict.fromkeys(checked))
        if own_test and names:  # a check whose columns the test source lacks is left out there, and said
            there = [set(source.names(file)) for _, file in source.files(self.base)]
            names = [name for name in names if all(name in file for file in there)]
        if self.spec.prepare.leaks.groups != "off":
            names += [name for name in _entities(source, self.base) if name not in used and name not in names]
        return [Column(name=name, type="text") for name in names]

    # ---- checks

    def look(self, chunk: Typed, own_test: bool) -> None:
        """Shows a chunk to the checks."""
        for _, tally in self._asked(own_test):
            tally.look(chunk.rows, chunk.file, chunk.first)

    def _asked(self, own_test: bool) -> list[tuple[Check, Tally]]:
        if own_test not in self._tallies:
            there = {column.name for column in self.columns(own_test)}
            setting = Setting(self.spec.task.target, self.sources[own_test].numbers)
            self._tallies[own_test] = []
            for check in self.spec.prepare.checks:
                if own_test and not check.for_test():
                    continue
                if lacking := [name for name in check.names() if name not in there]:
                    self.notes.append(f"{_name(check)} is not made on the test source, which has no {', '.join(map(repr, lacking))}")
                else:
                    self._tallies[own_test].append((check, check.tally(setting)))
        return self._tallies[own_test]

    def settle(self) -> list[dict[str, Any]]:
        """What every check found, for the manifest. Raises DataError that lists all failed ones, with counts and first rows."""
        entries, failed = [], []
        now = _now()
        for own_test in self.sources:
            for check, tally in self._asked(own_test):
                finding = tally.finding()
                first = self._first(self.sources[own_test], check, finding) if not finding.passed else []
                said = [finding.said] if not finding.passed else []
                clocked = isinstance(check, Fresh) and check.as_of is None
                lasting = list(said)  # what the manifest may hold: nothing that the clock decides
                if isinstance(check, Fresh):
                    said += _too_old(check, finding.observed, now)
                    lasting = lasting if clocked else said
                entry = {
                    "kind": getattr(check, "kind"),  # noqa: B009 (every member of the union has one)
                    "columns": list(check.names()),
                    "level": check.level,
                    "source": "test source" if own_test else "source",
                    **check.known_facts(),
                    "passed": (None if finding.passed else False) if clocked else not said,
                    "observed": finding.observed,
                    "first": first,
                }
                entries.append(entry)
                if not said:
                    continue
                text = f"{_name(check)}{' in the test source' if own_test else ''}: {'; '.join(said)}"
                if check.level == "fail":
                    failed += [text, *(f"  {place}" for place in first)]
                    continue
                console.warn(f"check {text}")
                for place in first:
                    console.say(f"  {place}")
                if lasting:
                    self.notes.append(f"check {_name(check)}{' in the test source' if own_test else ''}: {'; '.join(lasting)}")
        if failed:
            count = sum(not line.startswith("  ") for line in failed)
            raise DataError(
                f"{count} check{'s' * (count > 1)} of the data failed",
                faults=failed,
                hint="correct the data or prepare.checks; `level: warn` says it and goes on. Nothing was written",
            )
        return entries

    def _first(self, source: Source, check: Check, finding: Finding) -> list[str]:
        """`file, line N: value` of the first rows at fault."""
        rows = finding.rows[:FIRST_SHOWN]
        like = [at.like for at in rows if at.like is not None]
        where = places(source, self.base, [*((at.file, at.row) for at in rows), *like])
        values = _values(source, self.base, check.names(), [at for at in rows if at.like is not None])
        lines = []
        for at in rows:
            told = at.value if at.like is None else f"{values.get((at.file, at.row), '')} as in {where[at.like]}"
            lines.append(f"{where[at.file, at.row]}: {told}")
        return lines


def judge_fresh(checks: Iterable[Check], manifest: Manifest) -> None:
    """Compares the newest times that a finished prepare recorded with the clock. Raises DataError when one is too old."""
    wanted = [check for check in checks if isinstance(check, Fresh) and check.as_of is None]
    entries = [entry for entry in manifest.results.get("checks", []) if entry["kind"] == "fresh" and entry["passed"] is None]
    failed = []
    now = _now()
    for entry in entries:
        check = next(
            c for c in wanted if list(c.columns) == entry["columns"] and c.max_age == entry["max_age"] and c.level == entry["level"]
        )
        for text in _too_old(check, entry["observed"], now):
            told = f"{_name(check)}{' in the test source' if entry['source'] != 'source' else ''}: {text}"
            if check.level == "fail":
                failed.append(told)
            else:
                console.warn(f"check {told}")
    if failed:
        raise DataError("the data are too old", faults=failed, hint="nothing changed since the last run: see whether rows still arrive")


def _too_old(check: Fresh, observed: dict[str, Any], now: str) -> list[str]:
    return [text for name in check.columns if (text := check.too_old(name, observed[name]["newest"], now))]


def _now() -> str:
    from datetime import UTC, datetime

    return datetime.now(UTC).isoformat(timespec="seconds")


def _name(check: Check) -> str:
    names = ", ".join(check.names())
    return f"{getattr(check, 'kind')}{f' ({names})' if names else ''}"  # noqa: B009 (every member of the union has one)


def _entities(source: Source, base: Path) -> list[str]:
    """Columns that are called like an id, and that can be read along without a failure that nobody asked for.

    Kinds of source that look at the cells of a column as a whole have none. Other files than the first are opened only
    when it has such a column.
    """
    files = [file for _, file in source.files(base)]
    if not files or getattr(source, "kind", "") not in ALONG:
        return []
    names = source.names(files[0])
    good = [name for name in names if names_entity(name) and names.count(name) == 1 and _plain(source, files[0], name)]
    types = source.types(files[0]) if good else {}
    for file in files[1:] if good else ():
        there, kinds = set(source.names(file)), source.types(file)
        good = [name for name in good if name in there and kinds.get(name) == types.get(name)]
    return good


def _plain(source: Source, file: Path, name: str) -> bool:
    """Whether a column has cells that can name something: no lists, no bytes. It is not worth a failure, since nobody asked for it."""
    import pyarrow as pa

    try:
        batch = next(iter(source.cells(file, [name])), None)
    except DataError:
        return False
    kind = None if batch is None else batch.schema.field(name).type
    kind = kind.value_type if kind is not None and pa.types.is_dictionary(kind) else kind
    return kind is not None and (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_integer(kind))


def places(source: Source, base: Path, rows: Iterable[tuple[str, int]]) -> dict[tuple[str, int], str]:
    """`file, line N` of rows (file as written, number from 0); each file is read once."""
    wanted: dict[str, list[int]] = {}
    for file, row in dict.fromkeys(rows):
        wanted.setdefault(file, []).append(row)
    paths = dict(source.files(base)) if wanted else {}
    found: dict[tuple[str, int], str] = {}
    for file, numbers in wanted.items():
        there = source.places(paths[file], numbers) if file in paths else {}
        found |= {(file, row): f"{file}, {there.get(row, f'row {row + 1}')}" for row in numbers}
    return found


def _values(source: Source, base: Path, columns: Sequence[str], rows: Sequence[At]) -> dict[tuple[str, int], str]:
    """The cells of some rows, read again: hashes alone cannot say what they stand for."""
    left = {(at.file, at.row) for at in rows}
    found: dict[tuple[str, int], str] = {}
    if not left:
        return found
    for chunk in source.chunks(base, list(columns)):
        here = [(file, row) for file, row in left if file == chunk.file and chunk.first <= row < chunk.first + chunk.rows.num_rows]
        for file, row in here:
            cells = [f"{name} = {shown(chunk.rows.column(name)[row - chunk.first])}" for name in columns]
            found[file, row] = ", ".join(cells)
            left.discard((file, row))
        if not left:
            break
    return found


class Ledger:
    """Which row of which file went to which split: one byte a row."""

    def __init__(self) -> None:
        self._chunks: list[tuple[bool, str, int, np.ndarray | None, np.ndarray]] = []

    def add(self, own_test: bool, file: str, first: int, kept: np.ndarray | None, codes: np.ndarray) -> None:
        """The rows of a chunk that were kept (None: all), and their split codes."""
        self._chunks.append((own_test, file, first, None if kept is None else kept.astype(np.int32), codes))

    def place(self, code: int, number: int) -> tuple[bool, str, int]:
        """Row `number` of a split: whether it is of the test source, its file, its number there."""
        for own_test, file, first, kept, codes in self._chunks:
            size = int(np.count_nonzero(codes == code))
            if number < size:
                row = int(np.flatnonzero(codes == code)[number])
                return own_test, file, first + (row if kept is None else int(kept[row]))
            number -= size
        raise AssertionError("a row beyond the last one")
