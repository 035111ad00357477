"""`init`: from data files to a commented pipeline file, and a summary of what was seen."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mlpipe.base import replace_file
from mlpipe.errors import DataError, SpecError, did_you_mean, listed
from mlpipe.spec import RESERVED, load_pipeline
from mlpipe.stages.init.documents import documents_text, is_of_documents
from mlpipe.stages.init.related import grouped, groups, sample, without_formulas
from mlpipe.stages.init.split import in_time, split_lines
from mlpipe.stages.init.target import giveaways, goal
from mlpipe.stages.init.writer import MANY_ROWS, Findings, pipeline_text
from mlpipe.stages.look.dialect import Dialect, dialect
from mlpipe.stages.look.guess import Guess, short
from mlpipe.stages.look.picture import sparkline
from mlpipe.stages.look.study import missing_settings, study
from mlpipe.stages.look.survey import Look

FEWEST_ROWS = 3
FEW_VALUES = 12  # of a column of numbers: a quantile map of so few steps is none


@dataclass(frozen=True)
class InitReport:
    """The pipeline file: where it is, its text, and lines for a person about what was seen."""

    pipeline: Path
    text: str
    summary: list[str]


def init(
    data: Sequence[str | Path],
    target: str,
    *,
    task: str | None = None,
    name: str | None = None,
    output: Path,
    force: bool = False,
    reader: Mapping[str, Any] | None = None,
    table: str | None = None,
) -> InitReport:
    """Writes the pipeline file `output` for the table in `data`; `reader` are settings of the source that are not guessed.

    Raises SpecError when the file is there already (unless `force`) or an argument is not valid, DataError when the data
    cannot be read or learned from.
    """
    if output.exists() and not force:
        raise SpecError(f"{output} is there already", hint="choose another name with -o, or overwrite it with --force")
    if not output.parent.is_dir():
        raise SpecError(f"the folder {output.parent} for {output.name} is not there", hint=f"mkdir -p {output.parent}")
    name = name or run_name(data, table)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", name):
        raise SpecError(f"{name!r} is no name for a run", hint="letters, digits, _ . and -, at most 100")
    base = output.parent.resolve()
    if is_of_documents(data):
        text, told = documents_text(Path(data[0]), target, base, name, output.name)
        told += [f"written: {output}", f"next: look through it, then mlpipe check {output} && mlpipe run {output}"]
    else:
        findings = look(dialect(data, target, base, reader, table=table), target, task, base, name)
        text, told = pipeline_text(findings, output.name), summary(findings, output)
    trial = output.with_name(f".{output.name}.trial")
    try:
        replace_file(trial, text.encode())
        load_pipeline(trial)  # what is written is valid, or this is a bug and shows itself here
    finally:
        trial.unlink(missing_ok=True)
    replace_file(output, text.encode())
    return InitReport(output, text, told)


def run_name(data: Sequence[str | Path], table: str | None = None) -> str:
    """A run's name from the table's or the first file's: letters, digits, _ and -."""
    first = str(data[0]) if data else ""
    stem = table or Path(first.partition("?")[0].rstrip("/")).name.split(".")[0]
    return re.sub(r"[^A-Za-z0-9_-]+", "_", stem).strip("_-")[:100] or "pipeline"


def look(seen: Dialect, target: str, task: str | None, base: Path, name: str) -> Findings:
    """Everything that the file and the summary say."""
    found = study(seen, base)
    settings, notes = seen.settings, seen.notes
    looks, rows, strip = found.looks, found.rows, found.strip
    _refuse_absent(target, looks, seen, strip=strip)
    if rows < FEWEST_ROWS:
        raise DataError(
            f"{seen.title} has {rows} row{'s' * (rows > 1)}; train, valid and test need {FEWEST_ROWS} at least",
            hint="is it the right file?",
        )
    spelt = next(look for look in found.raw.values() if look.name == target or (strip and look.name.strip() == target))
    aim = goal(spelt, found.columns[target], found.numbers, task, strip=strip)
    guesses = [_usable(found.judged(column), RESERVED[aim.task]) for column in looks if column != target]
    missing_settings(found, guesses, {target: aim.tokens})
    _in_order(settings, notes, guesses, rows)
    table = sample(found, settings, target, guesses, numeric_target=aim.task == "regression")
    entities = groups(table, target)
    guesses = grouped(guesses, entities)
    told: list[str] = []
    if aim.task == "regression":
        guesses, told = without_formulas(table, guesses, target)
    del table
    if rows >= MANY_ROWS:  # enough to know each distribution: mapped to a normal one, neither units nor far values matter
        guesses = [replace(g, scale="quantile") if g.kind == "numeric" and g.distinct > FEW_VALUES else g for g in guesses]
    learned = [guess.name for guess in guesses if guess.kind in ("numeric", "category", "datetime", "text")]
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
    order = in_time(found, guesses)
    split, more = split_lines(order, entities, stratify=aim.task == "classification" and aim.smallest >= FEWEST_ROWS)
    shapes = {column: sparkline(found.histogram(column)) for column in looks}
    return Findings(name, target, rows, settings, notes, guesses, aim, leaks, shapes, split, [*told, *more])


def _in_order(settings: dict[str, Any], notes: dict[str, list[str]], guesses: list[Guess], rows: int) -> None:
    """Rows of a table in a database come in the order of its key, where there is one: then nothing needs to be sorted here."""
    key = next((guess.name for guess in guesses if guess.kind == "key" and guess.distinct == rows and not guess.missing), None)
    if settings["kind"] == "sql" and "table" in settings and "order_by" not in settings and key is not None:
        settings["order_by"] = [key]
        notes.pop("url", None)
        notes["order_by"] = [f"{key} has another value in each of the {rows:,} rows"]


def _refuse_absent(target: str, looks: Mapping[str, Look], seen: Dialect, *, strip: bool) -> None:
    if target in looks:
        return
    path = seen.title
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
    if guess.kind not in ("numeric", "category", "datetime", "text") or (guess.name and guess.name not in reserved):
        return guess
    why = f"{guess.name!r} is a name of an output of the exported graph" if guess.name else "it has no name"
    return Guess(guess.name, "ignore", guess.missing, guess.distinct, guess.shown, reason=f"{why}: name it otherwise in the file to use it")


def summary(findings: Findings, output: Path) -> list[str]:
    """What a person wants to see at once: the table, the target, what looks wrong, what to do next."""
    aim = findings.goal
    table = [("column", "becomes", "missing", "distinct", "shape", "values", "remark")]
    for guess in findings.guesses:
        kind = {"ignore": "left out"}.get(guess.kind, guess.kind)
        remark = guess.reason or "; ".join(filter(None, [findings.leaks.get(guess.name), guess.remark]))
        table.append(
            (
                guess.name,
                kind,
                f"{guess.missing:,}",
                f"{guess.distinct:,}",
                findings.shapes.get(guess.name, ""),
                guess.shown if len(guess.shown) <= 40 else guess.shown[:37] + "...",
                remark,
            )
        )
    widths = [min(40, max(len(line[i]) for line in table)) for i in range(6)]
    lines = [f"{findings.rows:,} rows, {len(findings.guesses) + 1} columns"]
    for line in table:
        lines.append("  ".join([*(cell.ljust(width) for cell, width in zip(line[:6], widths, strict=True)), line[6]]).rstrip())
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
