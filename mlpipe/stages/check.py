"""`mlpipe check`: what can be known of a pipeline without running it, beyond the file itself."""

from __future__ import annotations

from mlpipe.errors import DataError
from mlpipe.sources.csv import Csv
from mlpipe.spec import Pipeline


def check_sources(pipeline: Pipeline) -> list[str]:
    """A line for each source file. Raises DataError for all that are missing or lack a column, SpecError for code that is not there.

    The header of a CSV file is read; other kinds are only looked for, so that nothing heavy is imported.
    """
    lines: list[str] = []
    faults: list[str] = []
    columns = list(pipeline.spec.raw_columns())
    for role, source in (("source", pipeline.spec.prepare.source), ("test", pipeline.spec.prepare.test)):
        if source is None:
            continue
        try:
            for written, file in source.files(pipeline.base):
                lines.append(f"{role}: {written}, {file.stat().st_size:,} bytes")
                if isinstance(source, Csv):
                    source.check_header(written, file, columns)
        except DataError as fault:
            faults.append(str(fault).replace("\n", " "))
    for shown, _ in pipeline.spec.train.model.code(pipeline.base):
        lines.append(f"code: {shown}")
    if faults:
        raise DataError("the sources are not as the pipeline file says", faults=faults)
    return lines
