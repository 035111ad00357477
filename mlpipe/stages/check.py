"""`mlpipe check`: what can be known of a pipeline without running it, beyond the file itself."""

from __future__ import annotations

from mlpipe.errors import DataError, listed
from mlpipe.sources.csv import Csv
from mlpipe.sources.fixed import Fixed
from mlpipe.sources.sql import Sql
from mlpipe.spec import Pipeline


def check_sources(pipeline: Pipeline) -> list[str]:
    """A line for each source file. Raises DataError for all that are missing or lack a column, SpecError for code that is not there.

    The header of a CSV file is read, and a database is asked for the columns of its answer; other files are only looked for, so
    that nothing heavy is imported, and what lies behind a URL is not fetched.
    """
    lines: list[str] = []
    faults: list[str] = []
    learned = list(pipeline.spec.raw_columns())
    checked = [name for check in pipeline.spec.prepare.checks for name in check.names()]
    wanted = {"source": list(dict.fromkeys([*learned, *checked])), "test": learned}
    for role, source in (("source", pipeline.spec.prepare.source), ("test", pipeline.spec.prepare.test)):
        columns = wanted[role]
        if source is None:
            continue
        try:
            for written, file in source.listing(pipeline.base):
                if isinstance(source, Sql):
                    found = source.columns(pipeline.base)
                    source.check_names(written, found, columns)
                    lines.append(f"{role}: {written} of the database, columns {listed(found, 30)}")
                elif file is None:
                    lines.append(f"{role}: {written}, fetched when it is prepared")
                else:
                    lines.append(f"{role}: {written}, {file.stat().st_size:,} bytes")
                    if isinstance(source, (Csv, Fixed)):
                        source.check_header(written, file, columns)
        except DataError as fault:
            faults.append(str(fault).replace("\n", " "))
    for shown, _ in pipeline.spec.train.model.code(pipeline.base):
        lines.append(f"code: {shown}")
    named = [*pipeline.spec.train.model.files(pipeline.base), *(e for f in pipeline.spec.prepare.features for e in f.files(pipeline.base))]
    lines += [f"pretrained: {shown}, {path.stat().st_size:,} bytes" for shown, path in dict.fromkeys(named)]
    if faults:
        raise DataError("the sources are not as the pipeline file says", faults=faults)
    return lines
