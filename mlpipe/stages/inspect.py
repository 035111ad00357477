"""`mlpipe inspect`: how data are written and what they hold, without a target and without a pipeline file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlpipe.console import console
from mlpipe.errors import DataError, SpecError
from mlpipe.stages.look.dialect import Dialect, dialect
from mlpipe.stages.look.folder import contents, lines
from mlpipe.stages.look.guess import Guess, holds, short
from mlpipe.stages.look.picture import sparkline
from mlpipe.stages.look.study import Study, missing_settings, study
from mlpipe.stages.output import RowsWriter

MOST_COLUMNS = 200  # shown to a person
TOP = 5


@dataclass(frozen=True)
class Inspection:
    """What was seen: for machines, and as lines for a person."""

    found: dict[str, Any]
    lines: list[str]


def inspect(
    data: Sequence[str | Path], *, reader: Mapping[str, Any] | None = None, to: Path | None = None, table: str | None = None
) -> Inspection:
    """Looks at what makes up one table (see `dialect`); `reader` are settings of the source that are not to be guessed.

    With `to`, the rows are written as they are read: every cell of a text file as it stands. Raises DataError for what
    cannot be read, with its place.
    """
    base = Path.cwd()
    if len(data) == 1 and to is None and Path(data[0]).is_dir():
        inside = contents(Path(data[0]))
        return Inspection({"folder": inside}, lines(Path(data[0]), inside))
    if to is not None and any(to.exists() and Path(file).exists() and to.samefile(file) for file in data):
        raise SpecError(f"{to} is the file that is read; it would be lost", hint="choose another name for the output")
    seen = dialect(data, None, base, reader, table=table)
    found = study(seen, base)
    guesses, odd = _guesses(found)
    missing_settings(found, guesses, {})
    written = _write(seen, base, to) if to is not None else None
    odd += [*seen.source.notes, *_odd(found, guesses)]
    report = {
        "rows": found.rows,
        "source": {name: _plain(value) for name, value in seen.settings.items()},
        "evidence": {name: list(notes) for name, notes in seen.notes.items()},
        "columns": [_column(found, guess) for guess in guesses],
        "oddities": odd,
        **({"to": str(to), "rows_written": written} if to is not None else {}),
    }
    return Inspection(report, _lines(found, guesses, odd, to))


def _guesses(found: Study) -> tuple[list[Guess], list[str]]:
    """The verdict on each column; dates that contradict each other make a column unclear, with the reason."""
    guesses, odd = [], []
    for name in found.looks:
        try:
            guesses.append(found.judged(name))
        except DataError as fault:
            odd.append("; ".join([fault.message, *fault.faults]))
            column = found.columns[name]
            missing = column.empty + sum(column.tokens.values())
            guesses.append(Guess(name, "ignore", missing, len(column.values), reason=fault.message, doubt=True))
    return guesses, odd


def _odd(found: Study, guesses: list[Guess]) -> list[str]:
    """What a person should look at."""
    told = ("encoding", "header", "skip_lines", "quote", "short_rows")
    said = [f"{name}: {note}" for name in told for note in found.seen.notes.get(name, []) if "mark" not in note]
    said += found.seen.notes.get("strip", [])
    said += [f"{guess.name}: {guess.reason}" for guess in guesses if guess.doubt or guess.holds in ("constant", "nothing")]
    said += [f"{guess.name}: {guess.warning}" for guess in guesses if guess.warning]
    for guess in guesses:
        if guess.kind == "category" and guess.tokens:
            counts = ", ".join(f"{count:,} cells are {short(token)}" for token, count in guess.tokens.items())
            said.append(f"{guess.name}: {counts}, kept as a value")
    return said


def _column(found: Study, guess: Guess) -> dict[str, Any]:
    column = found.columns[guess.name]
    often = sorted(column.values.items(), key=lambda item: (-item[1], item[0]))[:TOP]
    return {
        "name": guess.name,
        "holds": holds(guess),
        "missing": guess.missing,
        "distinct": guess.distinct,
        "values": guess.shown,
        "top": [[text, count] for text, count in often],
        "histogram": found.histogram(guess.name),
        "tokens": dict(column.tokens),
        **({"format": guess.format} if guess.format else {}),
        **({"type": typed} if (typed := found.looks[guess.name].typed) else {}),
        "evidence": "; ".join(filter(None, [guess.remark, guess.reason])),
    }


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _write(seen: Dialect, base: Path, to: Path) -> int:
    """The rows as read, to a file; how many there are."""
    import pyarrow as pa

    written, first = seen.source.files(base)[0]
    names = seen.source.check_header(written, first, [])
    count = 0
    with RowsWriter(to) as writer, console.progress("writing rows") as bar:
        for chunk in seen.source.chunks(base, names):
            columns = {
                name: array.cast(array.type.value_type) if pa.types.is_dictionary(array.type) else array
                for name, array in zip(names, chunk.rows.columns, strict=True)
            }
            writer.write(columns)
            count += chunk.rows.num_rows
            bar.advance(chunk.rows.num_rows, f"rows {count:,}")
    return count


def _lines(found: Study, guesses: list[Guess], odd: list[str], to: Path | None) -> list[str]:
    settings = found.seen.settings
    how = ", ".join(f"{name} {_said(value)}" for name, value in settings.items() if name not in ("kind", "path", "table"))
    lines = [f"{found.seen.title}: {settings['kind']}{', ' + how if how else ''}"]
    lines.append(f"{found.rows:,} row{'s' * (found.rows != 1)}, {len(guesses)} column{'s' * (len(guesses) != 1)}")
    table = [("column", "holds", "missing", "distinct", "shape", "values", "evidence")]
    for guess in guesses[:MOST_COLUMNS]:
        remark = "; ".join(filter(None, [guess.remark, guess.reason]))
        shape = sparkline(found.histogram(guess.name))
        shown = guess.shown if len(guess.shown) <= 40 else guess.shown[:37] + "..."
        table.append((_visible(guess.name), holds(guess), f"{guess.missing:,}", f"{guess.distinct:,}", shape, shown, remark))
    widths = [min(40, max(len(line[i]) for line in table)) for i in range(6)]
    for line in table:
        lines.append("  ".join([*(cell.ljust(width) for cell, width in zip(line[:6], widths, strict=True)), line[6]]).rstrip())
    if len(guesses) > MOST_COLUMNS:
        lines.append(f"and {len(guesses) - MOST_COLUMNS:,} columns more (--json shows all)")
    if odd:
        lines += ["what looks odd:", *(f"  {what}" for what in odd[:MOST_COLUMNS])]
    if to is not None:
        lines.append(f"rows as read: {to}")
    return lines


def _visible(name: str) -> str:
    return name if name.isprintable() and name.strip() == name and name else short(name)


def _said(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_said(item)}" for name, item in value.items())
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_said, value[:8]))}{', ...' if len(value) > 8 else ''}]"
    return short(value) if isinstance(value, str) and not value.isalnum() and "-" not in value else str(value)
