"""What decides prepare's result beside its settings: the content of the sources, wherever they lie."""

from __future__ import annotations

import shutil

from mlpipe.documents.cache import KNOWN, forget_others
from mlpipe.errors import IntegrityError
from mlpipe.manifest import Input
from mlpipe.manifest import load as load_manifest
from mlpipe.sources.base import RawRows
from mlpipe.spec import Pipeline
from mlpipe.stages.base import Context


def sources_of(pipeline: Pipeline) -> list[tuple[str, RawRows]]:
    """The sources of a pipeline by their role."""
    prepare = pipeline.spec.prepare
    return [("source", prepare.source), *([("test-source", prepare.test)] if prepare.test else [])]


def source_inputs(context: Context) -> list[Input]:
    """The bytes of every source file, the content of a database's answer, the files that hold queries.

    What lies elsewhere is fetched first where a network or a database may be asked now; otherwise its digest is taken as the last
    run recorded it. Raises what `RawRows.local` does, and IntegrityError for a file that is not the one that `sha256` names.
    """
    base = context.pipeline.base
    found: list[Input] = []
    for role, rows in sources_of(context.pipeline):
        found += [Input(f"{role}-query", {"sha256": context.hashed(path)}, written) for written, path in rows.queries(base)]
        if context.asking:
            local = context.local(role, rows)
            found += [Input(role, local.digest(written, path, context.hashed), written) for written, path in local.identity(base)]
            continue
        for written, there in rows.listing(base):
            if there is None:
                found += _recorded(context, role, written)
            else:
                found.append(Input(role, rows.digest(written, there, context.hashed), written))
    return found


def _recorded(context: Context, role: str, written: str) -> list[Input]:
    """What the last run recorded of something that lies elsewhere and is not asked for now."""
    context.unasked.append(written)
    try:
        before = load_manifest(context.folder.stage("prepare"))
    except IntegrityError:
        return []
    entries = before.identity["inputs"] if before else []
    return [Input(role, entry["digest"], written) for entry in entries if (entry["role"], entry.get("path")) == (role, written)]


def feature_inputs(context: Context) -> list[Input]:
    """The files that features name. Raises DataError for one that is not there."""
    base = context.pipeline.base
    named = [entry for feature in context.pipeline.spec.prepare.features for entry in feature.files(base)]
    return [Input("tokeniser", {"sha256": context.hashed(path)}, written) for written, path in dict.fromkeys(named)]


def remove_old_copies(context: Context) -> None:
    """Removes the copies of sources in the run folder that the last result was not made from."""
    base = context.pipeline.base
    used = {path.parent.resolve() for role, rows in sources_of(context.pipeline) for _, path in context.local(role, rows).files(base)}
    for folder in context.folder.snapshots.glob("*"):
        if folder.resolve() not in used:
            shutil.rmtree(folder, ignore_errors=True)
    known = context.folder.root / KNOWN
    if known.is_dir():
        files = [path for role, rows in sources_of(context.pipeline) for _, path in context.local(role, rows).identity(base)]
        forget_others(known, [context.hashed(path) for path in files])
