"""Stage `prepare`: source -> typed rows by split -> features fitted on train rows -> encoder graph -> encoded tensors.

Two passes, neither of which holds the rows: the first writes typed rows into one Parquet file a split; the second
encodes those with the graph. Fitting reads one column of train at a time. A split that needs to know all rows first
(stratified, by time, in order) looks at its columns before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mlpipe.base import SPLITS, Split, write_json
from mlpipe.columns import arrow_type
from mlpipe.console import console
from mlpipe.digest import TableDigest
from mlpipe.errors import DataError, listed
from mlpipe.features import AnyFitted
from mlpipe.features.category import FittedCategory
from mlpipe.features.graph import TENSORS, GraphBuilder, Part
from mlpipe.features.subwords import FittedTokens
from mlpipe.features.text import FittedText
from mlpipe.manifest import Artifact, Identity, Input, Manifest
from mlpipe.schema import Schema, Tensors
from mlpipe.sources.base import Source
from mlpipe.spec import Pipeline
from mlpipe.splits.base import TEST, Assigner
from mlpipe.stages.ahead import ahead, mapped
from mlpipe.stages.base import Context, Stage, Work, task_and_seed
from mlpipe.stages.encoding import encode_splits
from mlpipe.stages.hosting import steps_for, steps_of, write_tokenisers
from mlpipe.stages.inputs import feature_inputs, remove_old_copies, source_inputs, sources_of
from mlpipe.stages.leaking import Leaks
from mlpipe.stages.profile import add_held_out, profile_column
from mlpipe.stages.rows import Spool, Typed, typed_rows
from mlpipe.stages.shares import check_splits
from mlpipe.stages.watch import Watch, judge_fresh
from mlpipe.tasks import AnyFittedTask
from mlpipe.tasks.regression import Regression

if TYPE_CHECKING:
    import pyarrow as pa

SHOWN_LINES = 10


class Prepare(Stage):
    """Raw data to encoded tensors."""

    name = "prepare"
    version = 2

    def config(self, pipeline: Pipeline) -> dict[str, Any]:
        """Section `prepare`; the reasons under `ignore` decide nothing."""
        readers = {role: found for role, rows in sources_of(pipeline) if (found := rows.readers())}
        section = pipeline.spec.prepare.model_dump(mode="json", exclude={"ignore"})
        return {**section, **({"readers": readers} if readers else {}), **task_and_seed(pipeline)}

    def inputs(self, context: Context, parents: Mapping[str, Manifest]) -> list[Input]:
        """The bytes of every source file, or the content of a database's answer; the files that features name."""
        return [*source_inputs(context), *feature_inputs(context)]

    def work(self, context: Context, identity: Identity, parents: Mapping[str, Manifest], out: Path) -> Work:
        """Reads, splits, fits, encodes."""
        return _Preparation(context, out).work()

    def tidy(self, context: Context, identity: Identity) -> None:
        """Removes copies of sources that this result was not made from."""
        remove_old_copies(context)

    def attend(self, context: Context, manifest: Manifest) -> None:
        """Judges how old the newest rows are, against the clock, although nothing ran."""
        judge_fresh(context.pipeline.spec.prepare.checks, manifest)


class _Preparation:
    """One run of prepare."""

    def __init__(self, context: Context, out: Path) -> None:
        self.spec, self.base, self.out = context.pipeline.spec, context.pipeline.base, out
        self.source = context.local("source", self.spec.prepare.source)
        self.test = context.local("test-source", self.spec.prepare.test) if self.spec.prepare.test else None
        self.columns = list(self.spec.raw_columns().values())
        self.target = self.spec.task.target
        self.notes: list[str] = []
        self.read = 0
        self.dropped: dict[str, int] = {}
        self.untargeted: list[tuple[str, int]] = []
        self.spool: Spool | None = None
        self.watch = Watch(self.spec, self.base, self.columns, self.source, self.test)
        self.leaks = Leaks(self.spec, self.base, self.watch)

    def work(self) -> Work:
        self._report_ignored()
        digests, checks = self._split_rows()
        self.notes += [note for source in (self.source, self.test) if source for note in source.notes]
        task, features, profile = self._fit()
        schema = self._schema(task, features)
        encoder = self._encoder(features)
        (self.out / "encoder.onnx").write_bytes(encoder)
        write_json(self.out / "schema.json", schema.as_dict())
        files = [entry for feature in self.spec.prepare.features for entry in feature.files(self.base)]
        copied = write_tokenisers([state for state in features if isinstance(state, FittedTokens)], files, self.out)
        steps, rows = steps_for(schema, self.out), {name: digests[name].rows for name in SPLITS}
        encoded, unseen = encode_splits(self.out, encoder, schema, steps, rows, self.leaks, self.notes)
        add_held_out(profile, digests["valid"].rows, unseen.get("valid", {}))
        write_json(self.out / "profile.json", profile)
        self.notes += self.watch.notes
        told = list(self.notes)  # what a leak says at its level is a warning, not said twice
        leaks = self.leaks.settle(schema, self.out, self.notes)
        for note in told:
            console.say(f"  {note}")
        artifacts = [
            Artifact("encoder.onnx", "encoder"),
            Artifact("schema.json", "schema"),
            Artifact("profile.json", "profile"),
            *(Artifact(f"{name}.parquet", f"{name}-rows", {"table-v1": digests[name].hexdigest()}) for name in SPLITS),
            *(Artifact(f"encoded/{name}", f"encoded-{name}", {"tensors-v1": encoded[name]}) for name in SPLITS if digests[name].rows),
            *copied,
        ]
        kept = sum(digest.rows for digest in digests.values())
        results = {
            "rows": {"read": self.read, "kept": kept, "dropped": self.dropped},
            "splits": {name: {"rows": digests[name].rows, "table-v1": digests[name].hexdigest()} for name in SPLITS},
            "target": task.summary(),
            "encoded_width": sum(map(schema.tensors.width, schema.tensors.present)),
            "unseen": unseen,
            "checks": checks,
            "leaks": leaks,
            "notes": self.notes,
            **self.source.report(),
            **({"test_source": found} if self.test and (found := self.test.report()) else {}),
        }
        sizes = ", ".join(f"{name} {digests[name].rows:,}" for name in SPLITS)
        lost = "".join(f", {count:,} dropped: {reason}" for reason, count in self.dropped.items())
        console.say(f"  rows: {self.read:,} read = {kept:,} kept ({sizes}){lost or ', 0 dropped'}")
        return Work(artifacts, results)

    # ---- columns that the pipeline does not use

    def _report_ignored(self) -> None:
        """Names the source's columns that the pipeline leaves out, with the reason where the file gives one."""
        used = {column.name for column in self.columns}
        for written, file in self.source.files(self.base)[:1]:
            names = self.source.check_header(written, file, [column.name for column in self.columns])
            for name, reason in self.spec.prepare.ignore.items():
                if name in names and name not in used:
                    self.notes.append(f"{name}: left out ({reason})")
            learned = {*self.spec.feature_columns(), self.target}
            for key in self.spec.prepare.keys:
                if key not in learned:
                    self.notes.append(f"{key}: a key: carried along, not learned from")
            rest = [name for name in names if name not in used and name not in self.spec.prepare.ignore]
            if rest:
                self.notes.append(f"columns that the pipeline does not use: {listed(rest, 30)}")
        if self.test:
            for written, file in self.test.files(self.base):
                test_names = self.test.names(file)
                extra = [name for name in test_names if name not in used and name not in names]
                if extra:
                    self.notes.append(f"columns ignored in {written}, which train lacks: {listed(extra, 30)}")

    # ---- first pass: typed rows by split

    def _shown(self, chunks: Iterable[Typed]) -> Iterator[Typed]:
        """The chunks, made ahead, with a progress bar."""
        with console.progress("reading rows") as bar:
            for chunk in ahead(chunks):
                bar.advance(chunk.rows.num_rows, f"rows {chunk.first + chunk.rows.num_rows:,}")
                yield chunk

    def _assigner(self) -> Assigner:
        """The split's assigner, shown all rows first where it needs that."""
        hashed = tuple(dict.fromkeys([*self.spec.feature_columns(), self.target]))
        split = self.spec.prepare.split
        assigner = split.assigner(hashed=hashed, target=self.target, seed=self.spec.seed, own_test=self.spec.prepare.test is not None)
        if assigner.looks:
            self.spool = Spool(self.out / ".rows.arrow")
            for chunk in self._shown(self.spool.keeping(typed_rows(self.source, self.base, self.watch.columns(False)))):
                assigner.look(self._with_target(chunk, count=False))
            assigner.settle()
        return assigner

    def _split_rows(self) -> tuple[dict[Split, TableDigest], list[dict[str, Any]]]:
        """Writes `train|valid|test.parquet`; returns their digests, which count rows, and what the checks found."""
        import pyarrow as pa
        from pyarrow import parquet as pq

        schema = pa.schema([pa.field(column.name, arrow_type(column.type)) for column in self.columns])
        digests = {name: TableDigest([(column.name, column.type) for column in self.columns]) for name in SPLITS}
        assigner = self._assigner()
        # dictionaries are written as they are; without Arrow's own schema in the file every reader sees plain text
        texts = [column.name for column in self.columns if column.type == "text"]
        settings: dict[str, Any] = {"compression": "zstd", "store_schema": False, "use_dictionary": texts, "write_statistics": False}
        writers = {name: pq.ParquetWriter(self.out / f"{name}.parquet", schema, **settings) for name in SPLITS}
        # one thread reads and types the next chunk, this one splits, one digests and writes
        aside = ThreadPoolExecutor(1, "mlpipe-write")
        under_way: deque[Future[None]] = deque()

        def store(rows: pa.RecordBatch, codes: np.ndarray) -> None:
            for code, name in enumerate(SPLITS):
                where = np.flatnonzero(codes == code)
                if len(where):
                    mine = rows if len(where) == rows.num_rows else rows.take(pa.array(where))
                    digests[name].update(mine)
                    writers[name].write_batch(mine)

        try:
            sources = [(self.source, False)] + ([(self.test, True)] if self.test else [])
            for source, own in sources:
                self.untargeted.clear()
                fresh = typed_rows(source, self.base, self.watch.columns(own))
                for chunk in self._shown(fresh if own or self.spool is None else self.spool.chunks()):
                    self.read += chunk.rows.num_rows
                    self.watch.look(chunk, own)
                    rows = self._with_target(chunk, count=True)
                    codes = np.full(rows.num_rows, TEST, dtype=np.uint8) if own else assigner.assign(rows)
                    self.leaks.assigned(chunk, rows, codes, own, assigner.hashes)
                    under_way.append(aside.submit(store, rows.select(schema.names), codes))
                    if len(under_way) > 2:
                        under_way.popleft().result()
                self._check_targets(source)
            for waiting in under_way:
                waiting.result()
        finally:
            aside.shutdown(cancel_futures=True)
            for writer in writers.values():
                writer.close()
        checks = self.watch.settle()
        self._check_splits(digests)
        return digests, checks

    def _with_target(self, chunk: Typed, *, count: bool) -> pa.RecordBatch:
        """Rows that have a target; the others are noted with their places."""
        import pyarrow as pa
        import pyarrow.compute as pc

        target = chunk.rows.column(self.target)
        gone = pc.is_null(target)
        if isinstance(self.spec.task, Regression) and count:
            self._refuse_targets(chunk, target)
        if not target.null_count:
            return chunk.rows
        if count:
            self.dropped["no target"] = self.dropped.get("no target", 0) + target.null_count
            missing = pc.indices_nonzero(gone)[:SHOWN_LINES].to_pylist()
            self.untargeted += [(chunk.file, chunk.first + row) for row in missing]
        return chunk.rows.filter(pc.invert(gone)) if target.null_count else pa.RecordBatch(chunk.rows)

    def _refuse_targets(self, chunk: Typed, target: Any) -> None:
        """Raises DataError for the first target that the transform does not admit."""
        assert isinstance(self.spec.task, Regression)
        values = target.to_numpy(zero_copy_only=False)
        lowest = {"log": 0.0, "log1p": -1.0, "none": -np.inf}[self.spec.task.transform]
        bad = np.flatnonzero(values <= lowest)
        if len(bad):
            value = float(values[bad[0]])
            place = self._places(self.source, [(chunk.file, chunk.first + int(bad[0]))])[0]
            raise DataError(f"{place}, column {self.target!r}: {value!r} ({self.spec.task.refused(value)})", hint="set task.transform")

    def _places(self, source: Source, rows: list[tuple[str, int]]) -> list[str]:
        """`file, line N` for rows of a source."""
        found = []
        for candidate in [source, *([self.test] if self.test else [])]:
            paths = dict(candidate.files(self.base))
            for file in dict.fromkeys(file for file, _ in rows if file in paths):
                places = candidate.places(paths[file], [row for other, row in rows if other == file])
                found += [f"{file}, {place}" for place in places.values()]
            if found:
                break
        return found

    def _check_targets(self, source: Source) -> None:
        """Rows without a target end prepare, unless the task says that they are dropped."""
        missing = self.dropped.get("no target", 0)
        if not self.untargeted or self.spec.task.missing_target == "drop":
            return
        places = self._places(source, self.untargeted[:SHOWN_LINES])
        more = [f"... and {missing - len(places):,} more"] if missing > len(places) else []
        raise DataError(
            f"{missing:,} rows have no value in the target {self.target!r}",
            faults=places + more,
            hint="fill them in, or set task.missing_target: drop to leave them out, counted",
        )

    def _check_splits(self, digests: Mapping[Split, TableDigest]) -> None:
        """Raises DataError when there is nothing to train, validate or test on."""
        rows = {name: digests[name].rows for name in SPLITS}
        files = listed([written for written, _ in self.source.files(self.base)], 3)
        if not self.read:
            raise DataError(f"{files} has a header and no rows" if self.read == 0 else files, hint="is it the right file?")
        used = [*self.spec.feature_columns(), self.target]
        if told := check_splits(self.spec.prepare, rows, files, used, self.out):
            self.notes.append(told)

    # ---- fitting, on train rows only

    def _fit(self) -> tuple[AnyFittedTask, list[AnyFitted], dict[str, Any]]:
        """The fitted target and features, two columns of train in memory at a time, and the profile of each column."""
        import pyarrow as pa
        from pyarrow import parquet as pq

        texts = [column.name for column in self.columns if column.type == "text"]
        train = pq.ParquetFile(self.out / "train.parquet", read_dictionary=texts)
        target = train.read([self.target]).column(0)
        task = self.spec.task.fit(target)
        profile: dict[str, Any] = {"rows": train.metadata.num_rows, "columns": {self.target: profile_column(target)}}

        def fit(feature: Any, column: str) -> tuple[AnyFitted, dict[str, Any]]:
            values = pq.ParquetFile(self.out / "train.parquet", read_dictionary=texts).read([column]).column(0)
            found = feature.fit(column, values), profile_column(values, feature.kind in ("text", "tokens"))
            del values
            pa.default_memory_pool().release_unused()  # a column is the largest thing held whole: its memory goes back at once
            return found

        found_by = [feature.resolved_against(self.base) for feature in self.spec.prepare.features]
        wanted = [(feature, column) for feature in found_by for column in feature.columns]
        fitted: list[AnyFitted] = []
        for (_, column), (state, shape) in zip(wanted, mapped(lambda pair: fit(*pair), wanted), strict=True):
            if isinstance(state, FittedCategory | FittedText):
                state = state.model_copy(update={"aliases": self.spec.prepare.source.aliases(column)})
            if isinstance(state, FittedCategory):
                shape["rare"] = state.rare
            fitted.append(state)
            self.notes += state.remarks()
            profile["columns"][column] = shape
        return task, fitted, profile

    def _schema(self, task: AnyFittedTask, features: list[AnyFitted]) -> Schema:
        named = {column.name: column for column in self.columns}
        columns = tuple(named[feature.column] for feature in features)
        parts = self._parts(GraphBuilder(), features)
        tensors: dict[str, Any] = {name: tuple(n for part in parts if part.tensor == name for n in part.names) for name in TENSORS}
        tensors["text"] = tuple(part.sequence for part in parts if part.sequence)
        return Schema(
            columns=columns,
            keys=self.spec.prepare.keys,
            features=tuple(features),
            tensors=Tensors(**tensors, cardinalities=tuple(p.cardinality for p in parts if p.tensor == "category")),
            task=task,
            host_steps=steps_of(columns, features),
        )

    def _parts(self, graph: GraphBuilder, features: list[AnyFitted]) -> list[Part]:
        return [part for feature in features for part in feature.emit(graph)]

    def _encoder(self, features: list[AnyFitted]) -> bytes:
        """The bytes of `encoder.onnx`."""
        graph = GraphBuilder()
        parts = self._parts(graph, features)
        present = [(name, [part for part in parts if part.tensor == name]) for name in TENSORS]
        model = graph.model([(name, mine) for name, mine in present if mine])
        return bytes(model.SerializeToString(deterministic=True))
