"""The search for leaks in prepare: duplicates, groups and times across the splits, features that give the target away.

What is looked for, and how, is in `mlpipe/leaks`; here rows are shown to it as they pass, and what it finds is told.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mlpipe.base import SPLITS
from mlpipe.columns import Column, row_hash
from mlpipe.console import console
from mlpipe.errors import DataError
from mlpipe.leaks.duplicates import Duplicates, conflicts
from mlpipe.leaks.groups import Crossing, GroupEvidence, group_columns, names_entity
from mlpipe.schema import Schema
from mlpipe.spec import PipelineSpec
from mlpipe.splits.random import RandomSplit
from mlpipe.splits.time import TimeSplit
from mlpipe.stages.rows import Typed
from mlpipe.stages.watch import Watch, places
from mlpipe.tasks.classification import FittedClassification

if TYPE_CHECKING:
    import pyarrow as pa

TRAIN_SAMPLE, HELD_SAMPLE = 50_000, 25_000
FEW = 0.01  # of the test rows: fewer twins are a note, for whoever did not ask for `fail`


@dataclass
class Found:
    """What one search found: `faults` count at its level, `notes` never do."""

    faults: list[str] = field(default_factory=list)
    first: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)


class Leaks:
    """One search over one run of prepare: `assigned` in the pass that splits, `look` in the pass that encodes, `settle` at the end."""

    def __init__(self, spec: PipelineSpec, base: Path, watch: Watch) -> None:
        self.spec, self.base, self.watch = spec, base, watch
        self.levels = spec.prepare.leaks
        self.own_test = spec.prepare.test is not None
        self.evidence: list[GroupEvidence] | None = None
        self.crossings: dict[str, Crossing] = {}
        self.hashed = list(dict.fromkeys([*spec.feature_columns(), spec.task.target]))
        split = spec.prepare.split
        whole = isinstance(split, RandomSplit) and not split.key  # such a split keeps equal rows together by itself
        self.duplicates = Duplicates() if self.levels.duplicates != "off" and (self.own_test or not whole) else None
        self.samples: dict[str, list[pa.RecordBatch]] = {}
        self.passed: dict[str, int] = dict.fromkeys(SPLITS, 0)
        self.every: dict[str, int] = {}

    # ---- as rows pass

    def assigned(self, chunk: Typed, rows: pa.RecordBatch, codes: np.ndarray, own_test: bool, hashes: np.ndarray | None) -> None:
        """Shows the kept rows of a chunk, columns read along included, their splits, and their hashes where the split made them."""
        kept = None
        if rows.num_rows < chunk.rows.num_rows:
            kept = np.flatnonzero(chunk.rows.column(self.spec.task.target).is_valid().to_numpy(zero_copy_only=False))
        self.watch.ledger.add(own_test, chunk.file, chunk.first, kept, codes)
        if self.duplicates is not None:
            self.duplicates.add(row_hash(rows, self.hashed, self.spec.seed) if own_test or hashes is None else hashes, codes)
        if self.levels.groups == "off":
            return
        if self.evidence is None:
            self.evidence = group_columns([rows], ignore=[self.spec.task.target])
            named = [column.name for column in self.watch.columns(False) if column.type != "timestamp"]
            shown = {e.column for e in self.evidence}
            wanted = [n for n in named if n != self.spec.task.target and (names_entity(n) == "certain" or n in shown)]
            self.crossings = {name: Crossing() for name in wanted}
        for name, crossing in self.crossings.items():
            if name in rows.schema.names:
                array = rows.column(name)
                there = slice(None) if not array.null_count else array.is_valid().to_numpy(zero_copy_only=False)
                crossing.add(row_hash(rows, [name], 0)[there], codes[there])

    def look(self, split: str, batch: pa.RecordBatch, schema: Schema, rows: int) -> None:
        """Shows rows of a split as the encoder gets them; `rows` is how many the split has."""
        if (self.levels.giveaway, self.levels.duplicates) != ("off", "off") and (split != "test" or "valid" not in self.samples):
            import pyarrow as pa

            most = TRAIN_SAMPLE if split == "train" else HELD_SAMPLE
            every = max(1, -(-rows // most))
            start = -self.passed[split] % every
            taken = batch if every == 1 else batch.take(pa.array(np.arange(start, batch.num_rows, every)))
            self.samples.setdefault(split, []).append(taken)
            self.every[split] = every
        self.passed[split] += batch.num_rows

    # ---- what is told

    def settle(self, schema: Schema, out: Path, notes: list[str]) -> dict[str, Any]:
        """Every finding, for the manifest; told with its level. Raises DataError for those whose level is `fail`, all together."""
        searches = {"duplicates": self._duplicates, "groups": self._groups, "time": self._time, "giveaway": self._giveaway}
        results: dict[str, Any] = {}
        failed: list[str] = []
        for name, search in searches.items():
            level = getattr(self.levels, name)
            if level == "off":
                results[name] = {"level": level}
                continue
            found = search(schema, out)
            results[name] = {"level": level, "found": found.faults, "first": found.first, **found.figures}
            notes += found.notes
            for fault in found.faults:
                if level == "fail":
                    failed += [f"{name}: {fault}"]
                else:
                    notes.append(f"leak? {fault}")
                    console.warn(f"leak? {fault}")
            if level == "fail" and found.faults:
                failed += [f"  {place}" for place in found.first]
            elif found.faults:
                for place in found.first:
                    console.say(f"  {place}")
        if failed:
            raise DataError(
                "the test would look better than the model is", faults=failed, hint="see prepare.leaks: each may be fail, warn or off"
            )
        return results

    def _placed(self, at: list[tuple[str, int]]) -> list[str]:
        """`file, line N` of rows given as (split, number in it)."""
        rows = [self.watch.ledger.place(SPLITS.index(split), number) for split, number in at]
        told: dict[tuple[bool, str, int], str] = {}
        for own_test, source in self.watch.sources.items():
            found = places(source, self.base, [(file, row) for own, file, row in rows if own is own_test])
            told |= {(own_test, file, row): text for (file, row), text in found.items()}
        return [told[row] for row in rows]

    def _duplicates(self, schema: Schema, out: Path) -> Found:
        found = Found()
        advice = (
            "take them out of one of the files"
            if self.own_test
            else "drop the repeats, or use split: {kind: random}: it keeps equal rows together"
        )
        for twin in self.duplicates.twins() if self.duplicates is not None else ():
            found.figures[f"{twin.later}_rows_in_{twin.earlier}"] = twin.rows
            if not twin.rows:
                continue
            said = (
                f"{twin.rows:,} of {twin.of:,} {twin.later} rows ({twin.rows / twin.of:.1%}) equal a {twin.earlier} row "
                "in every feature and the target"
            )
            if twin.rows >= FEW * twin.of or self.levels.duplicates == "fail":
                found.faults.append(f"{said}; {advice}")
            else:
                found.notes.append(said)
                continue
            if len(found.first) < 3:
                pairs = [((twin.later, a), (twin.earlier, b)) for a, b in twin.first[:3]]
                where = self._placed([end for pair in pairs for end in pair])
                found.first += [f"{where[2 * i]} ({twin.later}) equals {where[2 * i + 1]} ({twin.earlier})" for i in range(len(pairs))]
        if isinstance(schema.task, FittedClassification) and "train" in self.samples:
            count, pair = conflicts(self.samples["train"], [column.name for column in schema.columns], schema.task.target)
            if pair is not None:
                every, looked = self.every["train"], sum(batch.num_rows for batch in self.samples["train"])
                such = ""
                if every == 1:  # in a large file finding two lines would take longer than all the rest
                    one, two = self._placed([("train", pair[0]), ("train", pair[1])])
                    such = f", such as {one} and {two}"
                found.figures["conflicting_train_rows"] = {"rows": count, "of": looked}
                found.notes.append(
                    f"{count:,} of {looked:,} train rows{' (a sample)' if every > 1 else ''} have the same features as a row of "
                    f"another class{such}: no model tells these apart"
                )
        return found

    def _groups(self, schema: Schema, out: Path) -> Found:
        found = Found()
        evidence = {e.column: e for e in self.evidence or ()}
        for name, crossing in self.crossings.items():
            if not crossing.crosses():
                continue
            told = crossing.found()
            found.figures[name] = told
            about = " (about)" if crossing.scale > 1 else ""
            held = "test" if crossing.counts[:, 2].any() else "valid"
            said = (
                f"rows of the same {name} are in train and {held}{about}: "
                f"{told['test_rows_of_them']:,} of {told['test_rows']:,} {held} rows, "
                f"{told['groups_on_both_sides']:,} of {told['groups']:,} groups"
            )
            if name in evidence and evidence[name].determines:
                said += f"; {name} determines {', '.join(evidence[name].determines[:4])}"
            advice = f"use split: {{kind: group, by: [{_quoted(name)}]}}"
            split = self.spec.prepare.split
            if isinstance(split, TimeSplit):
                continue  # the future of the same customer is what such a split asks for
            if self.own_test or split.kind == "column" or (name in evidence and not evidence[name].named):
                found.notes.append(f"{said}; if {name} names a person or a thing, {advice}")
            else:
                found.faults.append(f"{said}; {advice}")
        return found

    def _time(self, schema: Schema, out: Path) -> Found:
        found = Found()
        split = self.spec.prepare.split
        times = [column for column in self.watch.own if column.type == "timestamp"]
        if isinstance(split, TimeSplit):
            times = [column for column in times if column.name == split.by]
        for column in times:
            if not self.own_test and isinstance(split, RandomSplit):
                found.notes.append(
                    f"{column.name}: the split is random, so train rows are later than test rows; "
                    f"it says nothing about the future (split: {{kind: time, by: {_quoted(column.name)}}} does)"
                )
                continue
            if not self.own_test and split.kind == "group":
                continue
            newest, earlier, of, first = _overlap(out, column)
            found.figures[column.name] = {"newest_train": newest, "test_rows": of, "test_rows_before_it": earlier}
            if earlier:
                where = self._placed([("test", number) for number in first])
                found.faults.append(
                    f"{earlier:,} of {of:,} test rows are earlier in {column.name!r} than the newest train row ({newest}): "
                    "the test does not show what the model does on the future"
                )
                found.first += where
        return found

    def _giveaway(self, schema: Schema, out: Path) -> Found:
        import pyarrow as pa

        from mlpipe.leaks.giveaway import formulas, giveaways

        found = Found()
        held = next((name for name in ("valid", "test") if name in self.samples), None)
        if held is None or "train" not in self.samples:
            return found
        train, others = (pa.Table.from_batches(self.samples[name]).unify_dictionaries() for name in ("train", held))
        self.samples.clear()
        features = [column.name for column in schema.columns]
        task: Literal["classification", "regression"] = "classification" if isinstance(schema.task, FittedClassification) else "regression"
        target = schema.task.target
        for one in giveaways(train, others, features, target, task):
            found.figures[one.column] = {"measure": one.measure, "score": one.score, "baseline": one.baseline, "rows": one.rows}
            found.faults.append(f"{one.column} alone {one.said}; leave it out unless it is known before {target} is")
        if task == "regression":
            made = formulas(train, features, target)
            found.figures |= {f"{f.left} {f.operation} {f.right}": {"share": f.share, "rows": f.rows} for f in made}
            found.faults += [f"{target} = {f.said}; leave them out unless both are known before {target} is" for f in made]
        return found


def _overlap(out: Path, column: Column) -> tuple[str | None, int, int, list[int]]:
    """The newest train time, how many test rows are earlier, how many there are, and the first of them by number."""
    import pyarrow as pa
    from pyarrow import parquet as pq

    def micros(split: str) -> Any:
        for batch in pq.ParquetFile(out / f"{split}.parquet").iter_batches(columns=[column.name]):
            yield batch.column(0).cast(pa.int64())

    newest = max((int(part.max()) for array in micros("train") if len(part := array.drop_null().to_numpy())), default=None)
    earlier, of = 0, 0
    first: list[int] = []
    for array in micros("test"):
        late = array.fill_null(np.iinfo(np.int64).max).to_numpy(zero_copy_only=False)
        where = np.flatnonzero(late < newest) if newest is not None else np.array([], dtype=np.int64)
        first += (where[: 3 - len(first)] + of).tolist() if len(first) < 3 else []
        earlier, of = earlier + len(where), of + len(array)
    told = None if newest is None else str(np.datetime64(newest, "us").astype("datetime64[s]"))
    return told, earlier, of, first


def _quoted(name: str) -> str:
    """A column's name as it stands in YAML."""
    plain = name.replace("_", "").replace("#", "").isalnum() and name[0].isalpha()
    return name if plain else json.dumps(name, ensure_ascii=False)
