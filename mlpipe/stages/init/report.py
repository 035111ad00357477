"""`init`: from data files to a commented pipeline file, and a summary of what was seen."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from mlpipe.base import replace_file
from mlpipe.errors import DataError, SpecError, did_you_mean, listed
from mlpipe.sources.csv import Csv
from mlpipe.spec import RESERVED, load_pipeline
from mlpipe.stages.init.dialect import Dialect, dialect
from mlpipe.stages.init.guess import Guess, judge, short
from mlpipe.stages.init.survey import PLAIN, Cells, Look, cells, convention, survey
from mlpipe.stages.init.target import Goal, giveaways, goal
from mlpipe.stages.init.writer import Findings, pipeline_text

FEWEST_ROWS = 3


@dataclass(frozen=True)
class InitReport:
    """The pipeline file: where it is, its text, and lines for a person about what was seen."""

    pipeline: Path
    text: str
    summary: list[str]


def init(
    data: list[Path], target: str, *, task: str | None = None, name: str | None = None, output: Path, force: bool = False
) -> InitReport:
    """Writes the pipeline file `output` for the table in `data`.

    Raises SpecError when the file is there already (unless `force`) or an argument is not valid, DataError when the data
    cannot be read or learned from.
    """
    if output.exists() and not force:
        raise SpecError(f"{output} is there already", hint="choose another name with -o, or overwrite it with --force")
    if not output.parent.is_dir():
        raise SpecError(f"the folder {output.parent} for {output.name} is not there", hint=f"mkdir -p {output.parent}")
    name = name or _run_name(data)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", name):
        raise SpecError(f"{name!r} is no name for a run", hint="letters, digits, _ . and -, at most 100")
    base = output.parent.resolve()
    seen = dialect(data, target, base)
    findings = look(seen, target, task, base, name)
    text = pipeline_text(findings, output.name)
    trial = output.with_name(f".{output.name}.trial")
    try:
        replace_file(trial, text.encode())
        load_pipeline(trial)  # what is written is valid, or this is a bug and shows itself here
    finally:
        trial.unlink(missing_ok=True)
    replace_file(output, text.encode())
    return InitReport(output, text, summary(findings, output))


def _run_name(data: list[Path]) -> str:
    """A run's name from the first file's: letters, digits, _ and -."""
    stem = data[0].name.split(".")[0] if data else ""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", stem).strip("_-")[:100] or "pipeline"


def look(seen: Dialect, target: str, task: str | None, base: Path, name: str) -> Findings:
    """Everything that the file and the summary say."""
    looks, rows = survey(seen.source, base)
    settings, notes = seen.settings, seen.notes
    raw = looks
    strip = any(found.blanks for found in looks.values())
    if strip:
        padded = [found for found in looks.values() if found.blanks]
        example = next(text for text in padded[0].counts if text != text.strip())
        cells_padded = sum(found.blanks for found in padded)
        settings["strip"] = True
        notes["strip"] = [f"{cells_padded:,} cells in {len(padded)} columns have blanks round them, such as {short(example)}"]
        looks = _stripped_names({found.name: found.stripped() for found in looks.values()})
    _refuse_absent(target, looks, seen, strip=strip)
    if rows < FEWEST_ROWS:
        raise DataError(
            f"{seen.settings['path']} has {rows} row{'s' * (rows > 1)}; train, valid and test need {FEWEST_ROWS} at least",
            hint="is it the right file?",
        )
    sorted_out = {column: cells(found, rows) for column, found in looks.items()}
    delimiter = seen.source.delimiter if isinstance(seen.source, Csv) else None
    numbers = convention({column: found for column, found in sorted_out.items() if column not in seen.quoted}, delimiter)
    if numbers.form != PLAIN:
        for field in ("decimal", "thousands"):
            if (mark := getattr(numbers.form, field)) != getattr(PLAIN, field):
                settings[field], notes[field] = mark, [numbers.evidence or ""]
    spelt = next(found for found in raw.values() if found.name == target or (strip and found.name.strip() == target))
    aim = goal(spelt, sorted_out[target], numbers, task, strip=strip)
    place = (seen.source, base)
    guesses = [
        _usable(judge(looks[column], sorted_out[column], numbers, quoted=column in seen.quoted, place=place), RESERVED[aim.task])
        for column in looks
        if column != target
    ]
    _missing(settings, notes, guesses, aim, sorted_out, target, rows)
    learned = [guess.name for guess in guesses if guess.kind in ("numeric", "category", "datetime")]
    if not learned:
        faults = [f"{guess.name}: {guess.reason or guess.remark}" for guess in guesses]
        raise DataError(
            f"no column is left to learn {target!r} from", faults=faults, hint="add columns that say something about the target"
        )
    if aim.replace:
        settings["replace"] = {target: dict(aim.replace)}
        notes["replace"] = ["spellings of the target that differ in blanks alone"]
    source = seen.source if not strip else seen.source.model_copy(update={"strip": True})
    words = {guess.name for guess in guesses if guess.kind == "category"}
    leaks = giveaways(source, base, target, learned, words, rows, strip=strip)
    return Findings(name, target, rows, settings, notes, guesses, aim, leaks)


def _stripped_names(looks: dict[str, Look]) -> dict[str, Look]:
    """Names lose the blanks round them too, as `strip` does it. Raises DataError when two become one."""
    fresh: dict[str, Look] = {}
    for look_ in looks.values():
        look_.name = look_.name.strip()
        if look_.name in fresh:
            raise DataError(f"two columns are called {look_.name!r} but for blanks", hint="rename one of them in the file")
        fresh[look_.name] = look_
    return fresh


def _refuse_absent(target: str, looks: dict[str, Look], seen: Dialect, *, strip: bool) -> None:
    if target in looks:
        return
    path = seen.settings["path"]
    if seen.headless:
        raise DataError(
            f"there is no column {target!r}: the first line of {path} looks like data, not names",
            hint=f"its columns are called {next(iter(looks))} to {list(looks)[-1]}; for the last say --target {list(looks)[-1]}",
        )
    padded = next((column for column in looks if column.strip() == target.strip()), None)
    known = did_you_mean(target, looks)
    if padded is not None and not strip:
        known = f"did you mean {padded!r}, with the blanks?"
    raise DataError(f"column {target!r} is not in {path} (it has: {listed(looks)})", hint=known or "name a column that is there")


def _usable(guess: Guess, reserved: tuple[str, ...]) -> Guess:
    """A column whose name the exported graph cannot take is left out."""
    if guess.kind not in ("numeric", "category", "datetime") or (guess.name and guess.name not in reserved):
        return guess
    why = f"{guess.name!r} is a name of an output of the exported graph" if guess.name else "it has no name"
    return Guess(guess.name, "ignore", guess.missing, guess.distinct, guess.shown, reason=f"{why}: name it otherwise in the file to use it")


def _missing(
    settings: dict[str, object],
    notes: dict[str, list[str]],
    guesses: list[Guess],
    aim: Goal,
    columns: dict[str, Cells],
    target: str,
    rows: int,
) -> None:
    """`missing` and `missing_by_column`: "?" everywhere, other tokens in columns of numbers and dates alone."""
    marks = {column: found.tokens.get("?", 0) for column, found in columns.items() if found.tokens.get("?", 0)}
    if marks:
        settings["missing"] = ["", "?"]
        counted = ", ".join(f"{count:,} in {column}" for column, count in list(marks.items())[:8]) + (", ..." if len(marks) > 8 else "")
        notes["missing"] = [f'{sum(marks.values()):,} cells are "?" ({rows:,} rows): {counted}']
    by_column: dict[str, list[str]] = {}
    said = []
    tokens = [(guess.name, guess.tokens) for guess in guesses if guess.kind in ("numeric", "datetime")]
    tokens += [(target, aim.tokens)]
    for column, found in tokens:
        if named := {t: count for t, count in found.items() if t != "?"}:
            by_column[column] = list(named)
            said.append(f"{column}: " + ", ".join(f"{count:,} of {rows:,} cells are {short(token)}" for token, count in named.items()))
    if by_column:
        settings["missing_by_column"] = by_column
        notes["missing_by_column"] = said
    for guess in guesses:
        if guess.kind == "category" and guess.tokens:
            how = f"if that means missing: missing_by_column: {{{guess.name}: [{', '.join(map(short, guess.tokens))}]}}"
            counts = ", ".join(f"{count:,} of {rows:,} cells are {short(token)}" for token, count in guess.tokens.items())
            notes.setdefault("missing_by_column", []).append(f"{guess.name}: {counts}, kept as a value; {how}")


def summary(findings: Findings, output: Path) -> list[str]:
    """What a person wants to see at once: the table, the target, what looks wrong, what to do next."""
    aim = findings.goal
    table = [("column", "becomes", "missing", "distinct", "values", "remark")]
    for guess in findings.guesses:
        kind = {"ignore": "left out"}.get(guess.kind, guess.kind)
        remark = guess.reason or "; ".join(filter(None, [findings.leaks.get(guess.name), guess.remark]))
        table.append(
            (
                guess.name,
                kind,
                f"{guess.missing:,}",
                f"{guess.distinct:,}",
                guess.shown if len(guess.shown) <= 40 else guess.shown[:37] + "...",
                remark,
            )
        )
    widths = [min(40, max(len(line[i]) for line in table)) for i in range(5)]
    lines = [f"{findings.rows:,} rows, {len(findings.guesses) + 1} columns"]
    for line in table:
        lines.append("  ".join([*(cell.ljust(width) for cell, width in zip(line[:5], widths, strict=True)), line[5]]).rstrip())
    lines.append(f"target {findings.target}: {aim.task} ({aim.why})")
    present = sum(aim.classes.values())
    for text, count in list(aim.classes.items())[:10]:
        lines.append(f"  {short(text)}: {count:,} row{'s' * (count > 1)}, {count / present:.1%}")
    if len(aim.classes) > 10:
        lines.append(f"  and {len(aim.classes) - 10} classes more")
    if aim.shown:
        lines.append(f"  {aim.shown}")
    if wrong := findings.warnings():
        lines.append("what looks wrong:")
        lines += [f"  {what}" for what in wrong]
    lines.append(f"written: {output}")
    lines.append(f"next: look through it, then mlpipe check {output} && mlpipe run {output}")
    return lines
