"""What the target of a table is, for `mlpipe init`: classes or a number, what is wrong with it, and what gives it away."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mlpipe.errors import DataError, SpecError, did_you_mean
from mlpipe.sources.base import Source
from mlpipe.stages.look.guess import named_like_codes, short, skewness
from mlpipe.stages.look.survey import Cells, Convention, Look, numbers

TASKS = ("classification", "regression")
FEW_CLASSES = 20


@dataclass(frozen=True)
class Goal:
    """The task and its evidence. `replace` maps spellings that differ in blanks alone to one of them."""

    task: str
    why: str
    missing: int
    classes: Mapping[str, int] = field(default_factory=dict)
    transform: str = "none"
    shown: str = ""
    replace: Mapping[str, str] = field(default_factory=dict)
    tokens: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def smallest(self) -> int:
        """Rows of the rarest class."""
        return min(self.classes.values(), default=0)


def goal(look: Look, column: Cells, seen: Convention, asked: str | None, *, strip: bool) -> Goal:
    """What the target is. Raises DataError when it cannot be learned, SpecError when there is no such task."""
    if asked is not None and asked not in TASKS:
        raise SpecError(f"there is no task {asked!r}", hint=did_you_mean(asked, TASKS) or f"one of: {', '.join(TASKS)}")
    name = look.name
    if look.refused:
        raise DataError(f"the target cannot be read: {look.refused}")
    if not column.values:
        raise DataError(f"the target {name!r} has no value in {column.rows:,} rows", hint="name another column with --target")
    numeric = name in seen.numeric and not look.spilled_text
    whole = numeric and all(text.lstrip("+-").isdigit() for text in column.values)
    distinct = len(column.values)
    if asked == "regression" and not numeric:
        odd = numbers(list(column.values), seen.form)[1]
        example = short(odd[0]) if odd else "text"
        raise DataError(
            f"the target {name!r} holds {example}, which is not a number", hint="regression needs numbers; try --task classification"
        )
    if asked == "regression" or (asked is None and numeric and not (whole and (distinct <= FEW_CLASSES or _codes(name, column)))):
        why = "asked for" if asked else f"{distinct:,} different numbers"
        return _number(look, column, seen, why)
    if asked:
        why = "asked for"
    else:
        why = (
            f"{distinct} whole numbers, taken for classes (--task regression takes them for a quantity)"
            if numeric
            else "the target is text"
        )
    return _classes(look, column, why, numeric=numeric, strip=strip)


def _codes(name: str, column: Cells) -> bool:
    """Whether whole numbers are codes, by their column's name, with enough rows of each to be classes."""
    return named_like_codes(name) and len(column.values) <= sum(column.values.values()) / 10


def _number(look: Look, column: Cells, seen: Convention, why: str) -> Goal:
    """A quantity; its logarithm when it is above 0 and heavily skewed, and the logarithm is less so."""
    import numpy as np

    values = numbers(list(column.values), seen.form)[0]
    weights = np.array(list(column.values.values()), dtype=np.float64)
    low, high = float(values.min()), float(values.max())
    if low == high:
        raise DataError(f"the target {look.name!r} is {low!r} in every row: there is nothing to learn", hint="name another column")
    skew, transform = skewness(values, weights), "none"
    if low > 0 and skew > 1 and abs(skewness(np.log(values), weights)) < skew:
        transform, why = "log", f"{why}; all are above 0 and the skewness is {skew:.1f}, hence the logarithm"
    missing = column.empty + sum(column.tokens.values())
    return Goal("regression", why, missing, {}, transform, f"{low:.10g} to {high:.10g}", tokens=column.tokens)


def _classes(look: Look, column: Cells, why: str, *, numeric: bool, strip: bool) -> Goal:
    """Classes. Spellings that differ in blanks alone are one class; tokens among words are words."""
    values = dict(column.values)
    tokens = dict(column.tokens) if numeric else {t: n for t, n in column.tokens.items() if t == "?"}
    values.update({token: n for token, n in column.tokens.items() if token not in tokens})
    spellings: dict[str, Counter[str]] = defaultdict(Counter)
    for text, count in values.items():
        spellings[" ".join(text.split())][text] += count
    replace: dict[str, str] = {}
    classes: dict[str, int] = {}
    warnings = []
    for spelt in spellings.values():
        kept = min(spelt, key=lambda text: (-spelt[text], len(text), text))
        classes[kept] = sum(spelt.values())
        replace.update({text: kept for text in spelt if text != kept})
    raw = Counter(text.strip() for text in look.counts if text.strip())
    if strip and (merged := sorted(text for text in look.counts if raw[text.strip()] > 1)):
        named = ", ".join(f"{short(text)} ({look.counts[text]:,} rows)" for text in merged[:8])
        warnings.append(f"spellings that differ in blanks are made one by `strip`: {named}")
    if replace:
        warnings.append(f"spellings that differ in blanks alone are made one by `replace`: {', '.join(map(short, replace))}")
    folded = Counter(text.casefold() for text in classes)
    if twins := [text for text in classes if folded[text.casefold()] > 1]:
        warnings.append(f"{', '.join(short(text) for text in sorted(twins))} differ in case alone; they stay classes of their own")
    present = sum(classes.values())
    if len(classes) == 1:
        raise DataError(f"the target {look.name!r} has only one class: {next(iter(classes))}", hint="name another column with --target")
    if len(classes) > max(FEW_CLASSES, present / 2) or look.spilled:
        raise DataError(
            f"the target {look.name!r} has {len(classes):,} different values in {present:,} rows: too many for classes",
            hint="name another column with --target, or give --task regression if it is a number",
        )
    if few := {text: n for text, n in classes.items() if n < 3}:
        named = ", ".join(f"{short(text)} ({n} row{'s' * (n > 1)})" for text, n in sorted(few.items())[:5])
        warnings.append(
            f"too few rows for train, valid and test: {named}; hence `stratify: false`. Merge them with `replace`, or get more rows"
        )
    missing = column.empty + sum(tokens.values())
    order = dict(sorted(classes.items(), key=lambda item: (-item[1], item[0])))
    return Goal("classification", why, missing, order, replace=replace, tokens=tokens, warnings=tuple(warnings))


def giveaways(source: Source, base: Path, target: str, candidates: list[str], words: set[str], rows: int, *, strip: bool) -> dict[str, str]:
    """Columns that are copies of the target or settle it: column -> what was seen. One more pass over the candidates.

    A column settles the target when each of its values goes with one target value only, though its values come five
    times each or more on average; with rarer values that is chance. A number that settles it by its size alone is no
    giveaway: for numbers, only those that stand for the target one to one count.
    """
    if not candidates:
        return {}
    tables: dict[str, dict[str, str]] = {name: {} for name in candidates}
    copies, settled = set(candidates), set(candidates)
    for chunk in source.chunks(base, [target, *candidates]):
        goals = _texts(chunk.rows.column(0), strip)
        for name, array in zip(candidates, chunk.rows.columns[1:], strict=True):
            if name in copies or name in settled:
                pairs = list(zip(_texts(array, strip), goals, strict=True))
                if name in copies and any(text != wanted for text, wanted in pairs):
                    copies.discard(name)
                if name in settled and not _settles(pairs, tables[name], rows // 5):
                    settled.discard(name)
    found = {}
    for name in candidates:
        table = tables[name]
        if name in copies:
            found[name] = "a copy of the target: take it out"
        elif name in settled and len(table) > 1:
            one = len(set(table.values())) == len(table)
            if not one and name not in words:
                continue
            what = "stands for the target one to one" if one else "has values that each go with one value of the target only"
            found[name] = f"{what}: take it out, unless it is known before the target is"
    return found


def _settles(pairs: list[tuple[str, str]], table: dict[str, str], most: int) -> bool:
    """Whether each text still goes with one target value, and there are not too many texts; `table` grows by the new ones."""
    for text, wanted in pairs:
        if text and wanted and table.setdefault(text, wanted) != wanted:
            return False
        if len(table) > most:
            return False
    return True


def _texts(array: object, strip: bool) -> list[str]:
    values: list[object] = array.to_pylist()  # type: ignore[attr-defined]
    texts = ["" if value is None else str(value) for value in values]
    return [text.strip() for text in texts] if strip else texts
