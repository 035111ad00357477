"""The text of a pipeline file: what `mlpipe init` found, as YAML with the evidence beside each guess."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlpipe.stages.init.target import Goal
from mlpipe.stages.look.guess import Guess, short

PLAIN_SCALAR = re.compile(r"(\.\.?/)*[A-Za-z_][A-Za-z0-9_.+/()-]*( [A-Za-z0-9_.+/()-]+)*")
RESERVED_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf"})
WIDE = 110
MANY_ROWS = 2_000
FEW_TEXTS = 6_000  # rows: of fewer texts every word is kept
LONG_TEXT = 2_048  # characters
LONGEST_READ = 32_768  # characters


@dataclass(frozen=True)
class Findings:
    """All that was seen and guessed. `notes` are comments by setting of the source."""

    name: str
    target: str
    rows: int
    settings: Mapping[str, Any]
    notes: Mapping[str, list[str]]
    guesses: list[Guess]
    goal: Goal
    leaks: Mapping[str, str]
    shapes: Mapping[str, str]
    split: Sequence[str]  # the lines of `split:`, with their comments
    told: Sequence[str] = ()  # more that a person should look at

    def warnings(self) -> list[str]:
        """What a person should look at before the first run."""
        found = [*self.goal.warnings, *self.told]
        if self.goal.missing:
            found.append(f"{self.goal.missing:,} rows have no {self.target}: prepare stops there unless task.missing_target is `drop`")
        found += [f"{name} {what}" if not what.startswith("a copy") else f"{name} is {what}" for name, what in self.leaks.items()]
        found += [f"{guess.name}: {guess.reason}" for guess in self.guesses if guess.doubt]
        found += [f"{guess.name}: {guess.warning}" for guess in self.guesses if guess.warning]
        kept: dict[str, list[str]] = {}
        for guess in self.guesses:
            if guess.kind == "category":
                for token, count in guess.tokens.items():
                    kept.setdefault(token, []).append(f"{guess.name} ({count:,})")
        for token, columns in kept.items():
            cut = ", ".join(columns[:8]) + (f" and {len(columns) - 8} columns more" if len(columns) > 8 else "")
            found.append(f"{short(token)} is kept as a value in {cut}: list it under missing_by_column if it means missing")
        found += [
            f"{setting}: {note}"
            for setting in ("encoding", "header", "skip_lines", "quote", "short_rows")
            for note in self.notes.get(setting, [])
            if "mark" not in note
        ]
        return found


def scalar(value: Any) -> str:
    """A YAML scalar: plain where that cannot be misread, else in double quotes with what is invisible written as an escape."""
    if value is True or value is False:
        return str(value).lower()
    if value is None:
        return "null"
    if not isinstance(value, str):
        return str(value)
    if PLAIN_SCALAR.fullmatch(value) and value.lower() not in RESERVED_WORDS:
        return value
    text = json.dumps(value, ensure_ascii=False)
    return "".join(c if c.isprintable() and (c == " " or not c.isspace()) else _escape(c) for c in text)


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def comment(text: str) -> str:
    """A comment of one line."""
    return "# " + "".join(c if c.isprintable() else " " for c in text)


def flow(values: list[Any], indent: int) -> str:
    """A list in brackets, broken into lines where it is long."""
    lines, line = [], ""
    for i, value in enumerate(values):
        item = scalar(value) + ("" if i == len(values) - 1 else ",")
        if line and len(line) + len(item) + indent + 1 > WIDE:
            lines.append(line)
            line = item
        else:
            line = f"{line} {item}" if line else item
    lines.append(line)
    return "[" + ("\n" + " " * (indent + 1)).join(lines) + "]"


def pipeline_text(findings: Findings, file: str) -> str:
    """The whole file."""
    rows, columns = findings.rows, len(findings.guesses) + 1
    lines = [
        comment(f"mlpipe run {file}            one change for a trial: --set train.epochs=5"),
        "#",
        comment(f"Written by mlpipe init after a look at all {rows:,} rows and {columns} columns. From here on nothing is guessed:"),
        comment(
            "prepare does what this file says, and stops where the data are otherwise. Look through the guesses; each has its evidence."
        ),
    ]
    if any(note.startswith("a guess") for note in findings.notes.get("encoding", [])):
        lines.append(comment("The encoding below is a guess: check a few names with accents."))
    lines += ["", f"name: {scalar(findings.name)}", "seed: 0", ""]
    lines += [*_task(findings), "", *_prepare(findings), "", *_train(findings), "", *_evaluate(findings), "", *_export(), ""]
    return "\n".join(lines)


def _task(findings: Findings) -> list[str]:
    aim = findings.goal
    lines = ["task:", f"  kind: {aim.task:20} {comment(aim.why)}", f"  target: {scalar(findings.target)}"]
    if aim.task == "classification":
        for text, count in list(aim.classes.items())[:20]:
            lines.append("  " + comment(f"  {short(text)}: {count:,} rows"))
        if len(aim.classes) == 2:
            lines.append(
                "  " + comment(f"positive: {scalar(sorted(aim.classes)[-1])}   the class that precision, recall and ROC AUC speak of")
            )
    else:
        lines.append("  " + comment(f"  {aim.shown}"))
        lines.append(f"  transform: {aim.transform}")
    if aim.missing:
        lines.append(
            "  "
            + comment(
                f"{aim.missing:,} of {findings.rows:,} cells of the target are missing: `fail` stops there, `drop` leaves those rows out"
            )
        )
        lines.append("  missing_target: fail")
    lines += ["  " + comment(warning) for warning in aim.warnings]
    return lines


def _prepare(findings: Findings) -> list[str]:
    lines = ["prepare:", "  source:"]
    for name, value in findings.settings.items():
        lines += ["    " + comment(note) for note in findings.notes.get(name, [])]
        if isinstance(value, dict):
            lines.append(f"    {name}:")
            for key, item in value.items():
                shown = flow(item, 8 + len(key)) if isinstance(item, list) else _mapping(item)
                lines.append(f"      {scalar(key)}: {shown}")
        elif isinstance(value, list):
            lines.append(f"    {name}: {flow(value, 6 + len(name))}")
        else:
            lines.append(f"    {name}: {scalar(value)}")
    for name in findings.notes:
        if name not in findings.settings:
            lines += ["    " + comment(note) for note in findings.notes[name]]
    lines += [f"  {line}" for line in findings.split]
    lines.append("  features:")
    lines += _features(findings)
    keys = [guess for guess in findings.guesses if guess.kind == "key"]
    if keys:
        lines.append("  keys: " + comment("carried to the prepared rows and the predictions as text, never learned"))
        lines += _listed(keys, findings, "    ")
    ignored = [guess for guess in findings.guesses if guess.kind == "ignore"]
    if ignored:
        lines.append("  ignore:")
        lines += [f"    {scalar(guess.name)}: {json_quoted(guess.reason)}" for guess in ignored]
    return lines


def json_quoted(text: str) -> str:
    """A text in double quotes."""
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(c if c.isprintable() else _escape(c) for c in quoted)


def _mapping(value: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{scalar(key)}: {scalar(item)}" for key, item in value.items()) + "}"


def _features(findings: Findings) -> list[str]:
    lines: list[str] = []
    guesses = findings.guesses
    for scale in ("standard", "quantile"):
        chosen = [guess for guess in guesses if guess.kind == "numeric" and guess.scale == scale]
        if chosen:
            lines += ["    - kind: numeric", f"      scale: {scale}", "      columns:", *_listed(chosen, findings, "        ")]
    categories = [guess for guess in guesses if guess.kind == "category"]
    if categories:
        few = 10 if findings.rows >= 5000 else 3 if findings.rows >= 500 else 1
        lines.append("    - kind: category")
        if few > 1:
            lines.append(
                f"      min_count: {few}   " + comment("rarer values share the code of unknown ones, so that this code is trained")
            )
        lines += ["      columns:", *_listed(categories, findings, "        ")]
    lines += _texts(findings)
    dates: dict[tuple[str, bool], list[Guess]] = {}
    for guess in guesses:
        if guess.kind == "datetime":
            dates.setdefault((guess.format, guess.timed), []).append(guess)
    for (form, timed), chosen in dates.items():
        parts = ["age", "month", "day", "weekday", *(["hour"] if timed else [])]
        lines += ["    - kind: datetime", f"      format: {scalar(form)}", f"      parts: {flow(parts, 13)}"]
        lines += ["      columns:", *_listed(chosen, findings, "        ")]
    return lines


def _texts(findings: Findings) -> list[str]:
    """Free texts; of long ones words alone are read, since every character would take part with four n-grams."""
    lines: list[str] = []
    texts = [guess for guess in findings.guesses if guess.kind == "text"]
    for long in (False, True):
        chosen = [guess for guess in texts if (guess.longest > LONG_TEXT) is long]
        if not chosen:
            continue
        lines += ["    - kind: text", "      words: 2                  " + comment("words and pairs of them")]
        if long:
            longest = min(LONGEST_READ, max(guess.longest for guess in chosen))
            lines.append("      characters: 0             " + comment("4: characters and runs of up to 4, for short texts"))
            lines.append(f"      max_characters: {longest}     " + comment("of a text that are read"))
        else:
            lines.append(
                "      characters: 4             " + comment("and runs of up to 4 characters: misspellings, languages without blanks")
            )
        few = 2 if findings.rows >= FEW_TEXTS else 1
        lines.append(f"      min_count: {few}              " + comment("rows that must have a word for it to be known"))
        lines += ["      columns:", *_listed(chosen, findings, "        ")]
    return lines


def _listed(guesses: list[Guess], findings: Findings, indent: str) -> list[str]:
    """A line a column, with its evidence behind it."""
    names = [scalar(guess.name) for guess in guesses]
    width = min(30, max(map(len, names)))
    lines = []
    for name, guess in zip(names, guesses, strict=True):
        seen = [f"{guess.distinct:,} values", guess.shown, f"{guess.missing:,} missing" if guess.missing else "", guess.remark]
        warning = findings.leaks.get(guess.name)
        said = "; ".join(filter(None, [f"WARNING: {warning}" if warning else "", *seen]))
        lines.append(f"{indent}- {name:{width}}  {comment(said)}")
    return lines


def _train(findings: Findings) -> list[str]:
    rows = findings.rows
    many = rows >= MANY_ROWS
    numeric = any(guess.kind in ("numeric", "datetime") for guess in findings.guesses)
    if not numeric and any(guess.kind == "text" for guess in findings.guesses):
        return _train_texts(findings)
    lines = ["train:", "  model:", "    kind: mlp", f"    hidden: {'[256, 256]' if many else '[128, 128]' if rows >= 500 else '[64, 64]'}"]
    lines.append(f"    dropout: {0.2 if many else 0.1}")
    if many and numeric:
        lines.append("    numeric_embedding: periodic   " + comment("numbers as sines and cosines of learned frequencies"))
        lines.append(
            "    frequency_scale: auto         "
            + comment("tries none, 0.1, 1, 4 and 16 for a few epochs on the valid rows; a number skips that")
        )
    else:
        lines.append("    numeric_embedding: none       " + comment("periodic pays from some 2,000 rows on"))
    lines.append("  optimiser: {kind: adamw, lr: 0.001, weight_decay: 0.01}")
    lines.append(f"  epochs: {60 if many else 200}                   " + comment("at most; patience ends it earlier"))
    lines.append(f"  batch_size: {256 if many else 64 if rows >= 500 else 32}")
    lines.append(
        f"  patience: {8 if many else 20}                  " + comment("epochs without a better valid value; the best epoch is kept")
    )
    lines.append(f"  monitor: {_main_metric(findings)[1]}")
    return lines


def _train_texts(findings: Findings) -> list[str]:
    """For texts, with or without categories beside them."""
    many = findings.rows >= MANY_ROWS
    return [
        "train:",
        "  model:",
        "    kind: text_bag          "
        + comment("the mean of what is learned of each word and run of characters; text_cnn and transformer read in order"),
        "    width: 64",
        "    forget: 0.3             " + comment("of the words, in each step of training"),
        "  optimiser: {kind: adamw, lr: 0.005, weight_decay: 0.01}",
        f"  epochs: {40 if many else 100}                " + comment("at most; patience ends it earlier"),
        f"  batch_size: {64 if many else 32}",
        f"  patience: {5 if many else 15}               " + comment("epochs without a better valid value; the best epoch is kept"),
        f"  monitor: {_main_metric(findings)[1]}",
    ]


def _main_metric(findings: Findings) -> tuple[str, str]:
    """The metric of the gate, and the one that training watches."""
    aim = findings.goal
    if aim.task == "classification":
        return ("roc_auc" if len(aim.classes) == 2 else "log_loss"), "log_loss"
    return ("rmse_log", "rmse_log") if aim.transform == "log" else ("rmse", "rmse")


def _evaluate(findings: Findings) -> list[str]:
    aim = findings.goal
    metrics = ["accuracy", "f1", "roc_auc", "log_loss"] if aim.task == "classification" else ["rmse", "mae", "r2"]
    if aim.transform == "log":
        metrics.append("rmse_log")
    gate = _main_metric(findings)[0]
    return [
        "evaluate:",
        f"  metrics: {flow(metrics, 11)}",
        "  gates: " + comment("where one fails, evaluate exits with 6 and export refuses; tighten it when you know what is possible"),
        f"    - {{metric: {gate}, better_than: baseline}}",
    ]


def _export() -> list[str]:
    return [
        "export:",
        "  targets: [{kind: onnx}]",
        "  " + comment("data_license: CC-BY-4.0       goes into the model card"),
    ]
