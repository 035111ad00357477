"""What becomes of each column of a table, guessed once, for `mlpipe init`: evidence in, a verdict with its reason out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mlpipe.base import NumberFormat
from mlpipe.columns import parse_moment
from mlpipe.errors import DataError
from mlpipe.sources.base import Source
from mlpipe.stages.look.survey import FORMATS, Cells, Convention, Look, numbers
from mlpipe.stages.prose import WORDS

if TYPE_CHECKING:
    import numpy as np

ID_NAME = re.compile(r"(^|[^a-z])(id|ids|uid|uuid|guid|pid|key|pk|no|nr|num|number|index|idx|code|order|rowid|hash)$")
CODE_NAME = re.compile(r"(^|[^a-z])(id|code|zip|zipcode|postcode|fips|sku)$")
DATES = ("%Y-%m", "%Y/%m", "%m/%Y", "%b %Y", "%B %Y",
         "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%d.%m.%y", "%d/%m/%Y", "%m/%d/%Y", "%d/%m/%y", "%m/%d/%y", "%d-%m-%Y", "%m-%d-%Y",
         "%d-%m-%y", "%m-%d-%y", "%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%d-%b-%y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y",
         "%B %d %Y")  # fmt: skip
TIMES = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p")
ISO = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}([.,]\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?")
LATE, LONG = 2040, 60  # a year, and years between two dates, that make one doubt two digits
FEW = 12  # different values: few enough to be categories, whatever they are
ACCOUNTING = re.compile(r"^\((.+)\)$")  # a number below zero, in books
UNIT = re.compile(r"^([$€£¥]|[A-Z]{3}(?= ))|([%‰$€£¥°]|\b(?<=[\d ])[A-Za-z]{1,3}[²³]?)$")  # of a number: 5 %, € 3, 1.5 kg, 20 EUR
MANY = 20  # an identifier in fewer rows than this is not told from a value

Kind = Literal["numeric", "category", "datetime", "text", "key", "ignore", "target"]


@dataclass(frozen=True)
class Guess:
    """A verdict on one column: what it becomes, what was seen, and what a person should know."""

    name: str
    kind: Kind
    missing: int = 0
    distinct: int = 0
    shown: str = ""
    remark: str = ""
    reason: str = ""
    format: str = ""
    scale: Literal["standard", "quantile"] = "standard"
    timed: bool = False
    doubt: bool = False  # left out for a reason that a person can settle
    warning: str = ""  # what a person should look at, though the column is used
    longest: int = 0  # characters, of a text
    holds: str = ""  # where `kind` does not say it: constant, nothing, identifier, free text
    tokens: Mapping[str, int] = field(default_factory=dict)


HOLDS = {"text": "free text", "numeric": "number", "category": "category", "datetime": "date", "key": "identifier"}


def holds(guess: Guess) -> str:
    """What a column holds, in a word or two."""
    return guess.holds or ("unclear" if guess.doubt else HOLDS.get(guess.kind, "unclear"))


def judge(look: Look, column: Cells, seen: Convention, *, quoted: bool, place: tuple[Source, Path]) -> Guess:
    """The verdict on a feature column. Raises DataError when its dates contradict each other."""
    name = look.name
    if look.refused:
        return Guess(name, "ignore", reason=look.refused)
    values, distinct = column.values, len(column.values)
    if not values:
        tokens = "" if not column.tokens else f" but {', '.join(map(repr, column.tokens))}"
        return Guess(name, "ignore", column.rows, 0, "", holds="nothing", reason=f"no value{tokens} in {column.rows:,} rows")
    missing = column.empty + sum(column.tokens.values())
    if distinct == 1 and not missing and not look.spilled and column.rows > 1:
        only = next(iter(values))
        return Guess(
            name, "ignore", 0, 1, short(only), holds="constant", reason=f"the same value, {short(only)}, in all {column.rows:,} rows"
        )
    if look.typed and look.typed.startswith(("timestamp", "date")):
        return _dated(Guess(name, "datetime", missing, distinct, _between(sorted(values)), format="iso", tokens=column.tokens), values)
    if quoted and not numbers(list(values)[:1000], seen.form)[1]:
        remark = "kept as text: written in quotes; if these are quantities, move it to a numeric feature"
        return _texts(Guess(name, "category", missing, distinct), look, column, remark)
    if name in seen.numeric and not look.spilled_text:
        guess = _number(Guess(name, "numeric", missing, distinct, tokens=column.tokens), look, column, seen.form)
        return _with_infinite(guess, column)
    if name in seen.otherwise:
        why = f"numbers such as {short(seen.otherwise[name])} can be read two ways, or not as the rest of the file"
        return Guess(name, "ignore", missing, distinct, doubt=True, reason=f"{why}: set `decimal` and `thousands`, then make it numeric")
    return _text(Guess(name, "category", missing, distinct), look, column, place)


def _number(guess: Guess, look: Look, column: Cells, form: NumberFormat) -> Guess:
    """A column whose values are all numbers: a quantity, unless it is an identifier."""
    import numpy as np

    texts, present = list(column.values), sum(column.values.values()) + look.spilled
    whole = all(text.lstrip("+-").isdigit() for text in texts)
    values, _, inexact = numbers(texts, form)
    unique = len(texts) == present or bool(look.spilled)
    if whole and any(len(text) > 1 and text.startswith("0") for text in texts):
        example = next(text for text in texts if len(text) > 1 and text.startswith("0"))
        return _texts(guess, look, column, remark=f"kept as text: {short(example)} begins with a zero")
    longest = max(len(text.lstrip("+-")) for text in texts)
    if whole and (inexact or (longest > 15 and unique)):
        return _texts(guess, look, column, remark=f"kept as text: a number cannot hold {longest} digits")
    low, high = float(np.min(values)), float(np.max(values))
    shown = f"{low:.10g} to {high:.10g}"
    guess = replace(guess, shown=shown)
    if whole and unique and present > MANY:
        if _id_like(guess.name):
            return replace(guess, kind="key", reason="", remark="another whole number in every row, and named like an identifier")
        if high - low + 1 == present:
            return replace(
                guess, kind="ignore", holds="identifier", reason=f"a running number from {low:.0f} to {high:.0f}, another in every row"
            )
    if whole and named_like_codes(guess.name) and 1 < len(texts) <= present / 2:
        return _texts(guess, look, column, remark="whole numbers, named like codes")
    if whole and longest == 8 and (len(texts) > 4 or re.search(r"date|day", guess.name, re.IGNORECASE)):
        moments = [parse_moment(text, "%Y%m%d") for text in texts]
        if all(moment is not None for moment in moments) and low > 1900_00_00 and high < 2100_00_00:
            return _dated(replace(guess, kind="datetime", format="%Y%m%d"), column.values)
    weights = np.array(list(column.values.values()), dtype=np.float64)
    skew = skewness(values, weights)
    remark = ""
    if whole and unique and present > MANY:
        remark = "another whole number in every row: leave it out if it identifies rows"
    elif whole and len(texts) <= 12 and len(texts) > 2:
        remark = f"{len(texts)} different whole numbers: make it a category if they are codes"
    skewed = abs(skew) > 2 and len(texts) > 12
    if skewed:
        remark = f"skewness {skew:.1f}, hence `scale: quantile`" + (f"; {remark}" if remark else "")
    scale: Literal["standard", "quantile"] = "quantile" if skewed else "standard"
    return replace(guess, scale=scale, remark=remark, warning=_sentinels(values, column))


def _sentinels(values: np.ndarray, column: Cells) -> str:
    """A value at either end that comes often and lies far from all others, such as -999: it may mean that there is none."""
    import numpy as np

    order = np.argsort(values)
    if len(values) < 5:
        return ""
    counts = np.array(list(column.values.values()))[order]
    ordered, texts = values[order], list(column.values)
    for end, near, far in ((0, 1, -1), (-1, -2, 0)):
        spread = abs(float(ordered[near] - ordered[far]))
        gap = abs(float(ordered[end] - ordered[near]))
        often = counts[end] >= max(3, 0.005 * counts.sum()) and counts[end] >= 2 * np.median(counts)
        if gap > 2 * spread > 0 and often:
            text = texts[order[end]]
            return f"{counts[end]:,} cells are {text}, far from all others: if that means missing, list it under missing_by_column"
    return ""


def _with_infinite(guess: Guess, column: Cells) -> Guess:
    """A column of numbers some of which are infinite stays one: prepare refuses those cells by line, and a person decides."""
    if not column.infinite:
        return guess
    told = ", ".join(f"{count:,} cells are {short(text)}" for text, count in column.infinite.items())
    return replace(guess, remark=f"{told}: prepare refuses them; correct them or list them under missing_by_column")


def skewness(values: Any, weights: Any) -> float:
    """The third standardised moment of weighted float64 values; 0 where there is no spread."""
    import numpy as np

    size = float(np.max(np.abs(values))) or 1.0
    scaled = values / size
    mean = np.average(scaled, weights=weights)
    spread = float(np.average((scaled - mean) ** 2, weights=weights)) ** 0.5
    return float(np.average((scaled - mean) ** 3, weights=weights)) / spread**3 if spread > 1e-12 else 0.0


def _text(guess: Guess, look: Look, column: Cells, place: tuple[Source, Path]) -> Guess:
    """A column with texts in it: dates, broken numbers, or words."""
    texts, present = list(column.values), sum(column.values.values())
    dated = _dates(guess, column, place)
    if dated is not None:
        return dated
    odd = [text for text in texts if numbers([text], NumberFormat())[1]] if len(texts) <= 50 else numbers(texts, NumberFormat())[1]
    share = 1 - sum(column.values[text] for text in odd) / present
    if share >= 0.9 and len(texts) > 50 and len(odd) <= 20:
        named = ", ".join(short(text) for text in odd[:3])
        how = f"if {named} mean missing, list them under missing_by_column and make the column numeric"
        return replace(guess, kind="ignore", doubt=True, reason=f"{share:.1%} of the cells are numbers, but {named} are not: {how}")
    bare = [UNIT.sub("", ACCOUNTING.sub(r"-\1", text)).strip() for text in texts[:1000]]
    if any(a != b for a, b in zip(bare, texts, strict=False)) and any(not numbers(bare, form)[1] for form in FORMATS):
        if len(texts) <= FEW:
            return _texts(guess, look, column, remark="numbers with a sign or a unit, kept as categories")
        how = f"numbers with a sign or a unit, such as {short(texts[0])}: take it off to use them"
        return replace(guess, kind="ignore", doubt=True, reason=how)
    guess = _texts(guess, look, column)
    if share > 0 and guess.kind == "category" and odd and len(odd) <= 3 and share >= 0.5:
        named = ", ".join(f"{short(text)} ({column.values[text]:,} cells)" for text in odd)
        return replace(guess, remark=f"text, because of {named}; the rest are whole numbers or decimals")
    return guess


def _texts(guess: Guess, look: Look, column: Cells, remark: str = "") -> Guess:
    """Words: a category, a key, or too many different ones to learn from. Tokens but "?" are values among words."""
    values = {**column.values, **{t: n for t, n in column.tokens.items() if t != "?"}}
    missing = column.empty + column.tokens.get("?", 0)
    present, distinct = sum(values.values()) + look.spilled, len(values)
    often = sorted(values, key=lambda text: (-values[text], text))
    shown = ", ".join(short(text, 20) for text in often[:3]) + (", ..." if distinct > 3 else "")
    guess = replace(guess, kind="category", missing=missing, distinct=distinct, shown=shown, remark=remark)
    if tokens := {t: n for t, n in column.tokens.items() if t != "?"}:
        counts = ", ".join(f"{n:,} of {column.rows:,} cells are {short(token)}" for token, n in tokens.items())
        guess = replace(guess, tokens=tokens, remark="; ".join(filter(None, [remark, f"{counts}, kept as a value"])))
    if present <= MANY or distinct <= present / 2:
        return guess
    words = sum(n * len(WORDS.findall(text)) for text, n in values.items()) / sum(values.values())
    if distinct == present or look.spilled:
        if _id_like(guess.name) or (not look.spilled and all(text.isdigit() for text in values)):
            return replace(
                guess, kind="key", remark="; ".join(filter(None, [remark, "another value in every row: carried along, not learned"]))
            )
        if words < 3:
            return replace(
                guess, kind="ignore", holds="identifier", tokens={}, reason=f"another value in each of {present:,} rows: it identifies rows"
            )
    if words >= 3:
        longest = max(map(len, values))
        seen = f"free text: {words:.0f} words a cell on average, at most {longest:,} characters"
        return replace(guess, kind="text", tokens={}, longest=longest, remark="; ".join(filter(None, [remark, seen])))
    few = f"{distinct:,} different values in {present:,} rows: too few rows of each to learn from"
    return _left(guess, "text", few)


def _left(guess: Guess, what: str, reason: str) -> Guess:
    """A column that is left out."""
    return replace(guess, kind="ignore", holds=what, tokens={}, reason=reason)


def _dates(guess: Guess, column: Cells, place: tuple[Source, Path]) -> Guess | None:
    """A date column, or None when the texts are no dates. Ambiguous dates are left out; contradicting ones are an error."""
    texts = list(column.values)
    if not any(char.isdigit() for char in texts[0]):
        return None
    shown = replace(
        guess, missing=column.empty + sum(column.tokens.values()), distinct=len(texts), tokens=column.tokens, shown=short(texts[0])
    )
    if all(ISO.fullmatch(text) and parse_moment(text, "iso") is not None for text in texts):
        return _dated(replace(shown, kind="datetime", format="iso", shown=_between(sorted(texts))), column.values)
    forms = [date + time for date in DATES for time in TIMES]
    some = [*texts[:20], *texts[len(texts) // 2 :][:10], *texts[-10:]]
    possible = [form for form in forms if any(parse_moment(text, form) is not None for text in some)]
    iso = {text for text in texts if ISO.fullmatch(text) and parse_moment(text, "iso") is not None}
    if possible and iso and (mixed := _mixed(iso, possible, texts)):
        return replace(shown, kind="ignore", tokens={}, doubt=True, reason=mixed)
    if not possible:
        return None
    fits = {form: {text for text in texts if parse_moment(text, form) is not None} for form in possible}
    whole = [form for form in possible if len(fits[form]) == len(texts)]
    if len(whole) > 1:
        how = f"set one of {', '.join(whole)} as `format` of a datetime feature"
        return replace(
            shown,
            kind="ignore",
            tokens={},
            doubt=True,
            reason=f"ambiguous dates: {short(texts[0])} and all others fit {' and '.join(whole)}; {how}",
        )
    if whole:
        return _dated(replace(shown, kind="datetime", format=whole[0]), column.values)
    for i, one in enumerate(possible):
        for other in possible[i + 1 :]:
            if len(fits[one] | fits[other]) == len(texts):
                raise _contradiction(guess.name, one, fits[one] - fits[other], other, fits[other] - fits[one], place)
    most = max(possible, key=lambda form: sum(column.values[text] for text in fits[form]))
    share = sum(column.values[text] for text in fits[most]) / sum(column.values.values())
    if share < 0.9:
        return None
    odd = next(text for text in texts if text not in fits[most])
    return replace(
        shown,
        kind="ignore",
        tokens={},
        doubt=True,
        reason=f"{share:.1%} of the cells are dates of the form {most}, but {short(odd)} is not",
    )


def _mixed(iso: set[str], possible: list[str], texts: list[str]) -> str:
    """What is wrong with dates of which some are ISO and all others of another form; nothing when they are not so."""
    rest = [text for text in texts if text not in iso]
    form = next((form for form in possible if rest and all(parse_moment(text, form) is not None for text in rest)), None)
    if form is None:
        return ""
    return f"dates of two forms: {short(min(iso))} is ISO, {short(rest[0])} fits {form}: write them all one way"


def _contradiction(name: str, one: str, ones: set[str], other: str, others: set[str], place: tuple[Source, Path]) -> DataError:
    """Names the first line that fits only the one form and the first that fits only the other."""
    source, base = place
    found: dict[str, str] = {}
    files = dict(source.files(base))
    for chunk in source.chunks(base, [name]):
        for i, text in enumerate(chunk.rows.column(0).to_pylist()):
            text = (text or "").strip()
            form = one if text in ones else other if text in others else None
            if form and form not in found:
                found[form] = (
                    f"{chunk.file}, {source.places(files[chunk.file], [chunk.first + i])[chunk.first + i]}: {text!r} fits {form} only"
                )
        if len(found) == 2:
            break
    return DataError(
        f"the dates of column {name!r} contradict each other", faults=list(found.values()), hint="mend the file: one column has one form"
    )


def _dated(guess: Guess, values: Mapping[str, int]) -> Guess:
    """The range of the dates, and whether the times of day say anything."""
    timed = any(re.search(r"[1-9]", text[10:] if guess.format == "iso" else "") for text in values) or "%H" in guess.format
    warning = ""
    if guess.format and guess.format != "iso":
        moments = sorted((moment, text) for text in values if (moment := parse_moment(text, guess.format)) is not None)
        guess = replace(guess, shown=f"{short(moments[0][1], 30)} to {short(moments[-1][1], 30)}")
        first, last = (datetime(1970, 1, 1) + timedelta(microseconds=m) for m, _ in (moments[0], moments[-1]))  # noqa: DTZ001
        if "%y" in guess.format and (last.year >= LATE or last.year - first.year > LONG):
            warning = (
                f"years of two digits are read as 1969 to 2068: the dates run from {first:%Y-%m-%d} to {last:%Y-%m-%d}."
                " Write four digits where that is wrong"
            )
    remark = guess.remark or f"every value fits {guess.format}"
    return replace(guess, timed=timed or "%I" in guess.format, remark=remark, warning=guess.warning or warning)


def _id_like(name: str) -> bool:
    """Whether a name is that of an identifier: order_id, customerID, PID, uuid."""
    return bool(ID_NAME.search(_apart(name)))


def named_like_codes(name: str) -> bool:
    """Whether a name is that of codes, which say which one and not how much: genreId, zip, country_code."""
    return bool(CODE_NAME.search(_apart(name)))


def _apart(name: str) -> str:
    """A name in small letters, its words parted: customerID becomes customer_id."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).strip().lower()


def _between(ordered: list[str]) -> str:
    return f"{short(ordered[0], 30)} to {short(ordered[-1], 30)}"


def short(text: str, most: int = 40) -> str:
    """A value for a person: in quotes, blanks made visible, cut."""
    cut = text if len(text) <= most else text[: most - 3] + "..."
    return '"' + "".join(c if c.isprintable() and (c == " " or not c.isspace()) else f"\\u{ord(c):04x}" for c in cut) + '"'
