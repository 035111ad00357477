"""How delimited text is laid out: delimiter, quoting, lines above the header, header. Guessed from the first megabyte.

clevercsv names a likely delimiter; what decides is which settings cut the most records into the same number of fields, read by
the very reader that prepare uses. The reader then holds every row of the whole file to it, and names the line that does not fit.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from mlpipe.errors import DataError
from mlpipe.sources.csv import WHITESPACE, Csv
from mlpipe.stages.look.survey import NUMBER_LIKE

SNIFFED = 100_000  # characters for clevercsv: it takes 0.1 s for them
DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
SELDOM = frozenset("^~!#&%*:\x01\x1e\x1f ")  # clevercsv may name them; a minus or a point is never taken for one
LEAST_BLANK_ROWS = 10  # with as many words in each of them, blanks part columns and not words
MOST_TITLES = 40  # lines above a header
READING = frozenset({"delimiter", "quote", "escape", "comment", "skip_lines", "skip_initial_space"})
YEAR = re.compile(r"(1[5-9]|20|21)\d\d")

Record = tuple[int, list[str]]  # the line it begins on, its fields


@dataclass
class Layout:
    """Settings of a csv source that are not its defaults, and the evidence for each."""

    settings: dict[str, Any] = field(default_factory=dict)
    notes: dict[str, list[str]] = field(default_factory=dict)
    headless: bool = False
    even: float = 1.0  # the share of lines that are cut into as many fields as most


@dataclass(frozen=True)
class _Reading:
    """A sample read with some settings: its records, their usual width, and how well that holds."""

    settings: dict[str, Any]
    records: list[Record]
    width: int
    even: int  # records of that width
    numbers: float  # the share of fields that look like numbers
    strict: bool  # whether the quoting is whole

    @property
    def mark(self) -> str:
        """The delimiter."""
        return str(self.settings.get("delimiter", ","))

    @property
    def share(self) -> float:
        return self.even / len(self.records)


def layout(sample: str, target: str | None, *, whole: bool, fixed: dict[str, Any] | None = None) -> Layout:
    """How `sample`, the beginning of a text file, is to be read (`whole`: it is all of the file).

    `fixed` are settings that a person has given; they are not guessed. Raises DataError when nothing is in the sample.
    """
    fixed = {name: value for name, value in (fixed or {}).items() if name in Csv.model_fields}
    found = Layout()
    best = _best(sample, whole, fixed)
    found.even = best.share if best is not None else 0.0
    if best is None:
        found.notes["delimiter"] = ["no mark cuts the lines into fields"]
        if "," in sample and "delimiter" not in fixed:
            found.settings["delimiter"] = next((mark for mark in "\t|;\x1f" if mark not in sample), "\x1f")
        records = _records(sample, whole, {**found.settings, **fixed})
    else:
        records = best.records
        mark = best.mark
        if mark != "," and "delimiter" not in fixed:
            name = "runs of blanks cut" if mark == WHITESPACE else f"a {DELIMITERS.get(mark, repr(mark))} cuts"
            found.notes["delimiter"] = [f"{name} {best.even:,} of {len(records):,} lines into {best.width} fields"]
        found.settings |= {name: value for name, value in best.settings.items() if name not in fixed}
        _explain_quoting(found, best)
    if not records:
        return found  # the reader says what is wrong with it
    if "header" not in fixed and "skip_lines" not in fixed:
        _header(found, records, target)
    elif "header" not in fixed:
        _name_columns(found, records, target)
    if not found.headless and "header" not in fixed and "short_rows" not in fixed:
        _short_rows(found, [record for record in records if record[0] > found.settings.get("skip_lines", 0)])
    return found


def _short_rows(found: Layout, records: list[Record]) -> None:
    """Columns at the end without a name come of a delimiter too many in some rows; others may lack it."""
    header = records[0][1]
    named = max((i for i, name in enumerate(header, 1) if name.strip()), default=0)
    short = [line for line, record in records if named <= len(record) < len(header)]
    if short and named:
        found.settings["short_rows"] = "unnamed"
        behind = f"the columns behind {header[named - 1]!r}, which have no name"
        found.notes["short_rows"] = [f"{len(short):,} rows, the first on line {short[0]}, lack fields of {behind}"]


def _explain_quoting(found: Layout, best: _Reading) -> None:
    if found.settings.get("quote", "") is None:
        line = next((line for line, record in best.records if any(cell.startswith('"') for cell in record)), best.records[0][0])
        what = 'the sign " is read as a letter: as a quote it is not closed, or leaves lines uneven'
        where = f"line {line} is the first where it begins a field; if it is a slip there, mend the line and leave `quote` out"
        found.notes["quote"] = [f"{what}; {where}"]
    elif "quote" in found.settings:
        found.notes["quote"] = [f"{best.settings['quote']} encloses fields: read so, {best.even:,} of {len(best.records):,} lines are even"]
    if "escape" in found.settings:
        found.notes["escape"] = ["a backslash stands before quotes within quotes"]
    if "skip_initial_space" in found.settings:
        found.notes["skip_initial_space"] = ["there are blanks between a delimiter and the quote behind it"]


# ---- delimiter and quoting


def _best(sample: str, whole: bool, fixed: dict[str, Any]) -> _Reading | None:
    """The reading whose records are the most even; of equal ones that with clevercsv's delimiter, then with more numbers."""
    likely = _sniffed(sample)
    if likely == " ":  # sentences have blanks too: runs of them have a test of their own
        likely = None
    marks = [fixed["delimiter"]] if "delimiter" in fixed else [*dict.fromkeys([*([likely] if likely else []), *DELIMITERS])]
    readings: list[_Reading] = []
    for mark in marks:
        plain = _read(sample, whole, {"delimiter": mark}, fixed)
        spaced = plain is None or any(re.match(' +"', cell) for _, record in plain.records for cell in record)
        hows = ({**how, "delimiter": mark} for how in _quotings(sample, mark, fixed, spaced=spaced))
        others = [reading for how in hows if (reading := _read(sample, whole, how, fixed))]
        behind_blanks = [reading for reading in others if "skip_initial_space" in reading.settings]
        tried = [*behind_blanks, *([plain] if plain else []), *(reading for reading in others if reading not in behind_blanks)]
        if not tried:
            continue
        good = [reading for reading in tried if reading.strict] or tried
        best = max(round(reading.share, 3) for reading in good)
        readings.append(next(reading for reading in good if round(reading.share, 3) == best))
    readings = [reading for reading in readings if reading.width > 1 or "delimiter" in fixed]
    chosen = max(readings, key=lambda r: (round(r.share, 2), r.mark == likely, round(r.numbers, 2), r.width), default=None)
    if chosen is not None and chosen.share < 0.5 and chosen.mark != likely and "delimiter" not in fixed:
        chosen = None
    if "delimiter" not in fixed:
        blanks = _read(sample, whole, {"delimiter": WHITESPACE}, fixed)
        if blanks and blanks.strict and _by_blanks(sample, blanks, chosen):
            chosen = blanks
    return chosen


def _by_blanks(sample: str, blanks: _Reading, chosen: _Reading | None) -> bool:
    """Whether runs of blanks part the fields: every line is even, and numbers, aligned columns or a column of numbers show it."""
    if blanks.width < 2 or blanks.share < 1 or len(blanks.records) < 2:
        return False
    lines = [line for line in sample.splitlines() if line.strip()]
    aligned = sum("  " in line.rstrip() or line[0] == " " for line in lines) >= 0.3 * len(lines)
    rows = [record for _, record in blanks.records[1:]]
    columns = [sum(bool(NUMBER_LIKE.fullmatch(cell)) for cell in column) for column in zip(*rows, strict=True)]
    telling = blanks.numbers >= 0.5 or (
        blanks.width > 2 and len(rows) >= LEAST_BLANK_ROWS and (aligned or max(columns, default=0) >= 0.9 * len(rows))
    )
    if not telling:
        return False
    return chosen is None or (blanks.width > chosen.width and (blanks.numbers > chosen.numbers + 0.2 or chosen.mark in SELDOM))


def _sniffed(sample: str) -> str | None:
    """Clevercsv's delimiter, "" for one column, None where it finds none."""
    import clevercsv

    try:
        found = clevercsv.Sniffer().sniff(sample[:SNIFFED].replace("\0", " "))
    except (clevercsv.Error, ValueError, IndexError):
        return None
    mark = found.delimiter if found is not None else None
    return mark if mark == "" or mark in {*DELIMITERS, *SELDOM} else None


def _quotings(sample: str, mark: str, fixed: dict[str, Any], *, spaced: bool) -> Iterator[dict[str, Any]]:
    """Ways in which quotes may be used otherwise than plainly; only those of which the sample holds a sign."""
    if {"quote", "escape", "skip_initial_space"} & fixed.keys():
        return
    escaped = '\\"' in sample
    if spaced:
        yield {"skip_initial_space": True}
        if escaped:
            yield {"escape": "\\", "skip_initial_space": True}
    if escaped:
        yield {"escape": "\\"}
    if '"' in sample:
        yield {"quote": None}
    if len(re.findall(rf"({re.escape(mark)}|^)'|'({re.escape(mark)}|\r?$)", sample[:SNIFFED], re.MULTILINE)) > 3:
        yield {"quote": "'"}


def _read(sample: str, whole: bool, how: dict[str, Any], fixed: dict[str, Any]) -> _Reading | None:
    """The sample read so; None when it cannot be."""
    settings = {**how, **fixed}
    try:
        records, strict = _records(sample, whole, settings, strict=True), True
    except DataError:
        try:
            records, strict = _records(sample, whole, settings), False
        except DataError:
            return None
    except ValueError:  # the delimiter is the quote, say
        return None
    if not records:
        return None
    width, even = Counter(len(record) for _, record in records).most_common(1)[0]
    cells = [cell.strip() for _, record in records[1:] or records for cell in record]
    numbers = sum(bool(NUMBER_LIKE.fullmatch(cell)) for cell in cells) / len(cells)
    if how.get("quote", "") is None and even < len(records):  # quotes are plain text only where that makes every line even
        return None
    return _Reading({name: value for name, value in how.items() if value != ","}, records, width, even, numbers, strict)


def _records(sample: str, whole: bool, settings: dict[str, Any], *, strict: bool = False) -> list[Record]:
    """Records that are not blank; the last one of a sample that was cut is left out, and may leave a quote open."""
    reading = {name: value for name, value in settings.items() if name in READING}
    records: list[Record] = []
    try:
        for record in Csv(path="sample", **reading).parsed(sample, strict=strict):
            records.append(record)
    except DataError:
        if whole or not records:
            raise
        lines = sample.count("\n") or sample.count("\r")
        if lines - records[-1][0] > max(50, lines // 50):  # a quote that swallows so much was none
            raise
        return records
    return records if whole or len(records) < 2 else records[:-1]


# ---- header


def _header(found: Layout, records: list[Record], target: str | None) -> None:
    """Where the header is: the first record as wide as most and mostly filled, below lines that look like titles."""
    width = Counter(len(record) for _, record in records).most_common(1)[0][0]
    start = next((i for i, (_, r) in enumerate(records) if len(r) == width and 2 * _filled(r) >= width), 0)
    titles = records[:start]
    few = 1 if width < 6 else 2
    if titles and start <= MOST_TITLES and width > 2 and all(_filled(record) <= few for _, record in titles):
        line, names = records[start]
        cells = [cell.strip() for cell in names if cell.strip()]
        if len(set(cells)) == len(cells) and _votes(records[start:]) >= 0:
            found.settings["skip_lines"] = line - 1
            shown = "; ".join(" ".join(cell.strip() for cell in record if cell.strip())[:60] for _, record in titles[:3] if _filled(record))
            said = f": {shown}" if shown else ""
            found.notes["skip_lines"] = [f"line {line} holds the names; the lines above it look like titles{said}"]
            return
        above = f"the first {start + 1} lines look like titles and names over several lines, and are read as rows"
        found.notes["skip_lines"] = [f"{above}: to leave them out, set skip_lines and give the names as `header`"]
        if {len(record) for _, record in titles} <= {width}:
            _without_header(found, records, width)
            return
    _name_columns(found, records, target)


def _name_columns(found: Layout, records: list[Record], target: str | None) -> None:
    """Whether the first record holds names; otherwise the columns are numbered."""
    if not has_header(records, target):
        width = Counter(len(record) for _, record in records).most_common(1)[0][0]
        _without_header(found, records, width)


def _without_header(found: Layout, records: list[Record], width: int) -> None:
    found.headless = True
    found.settings["header"] = [f"column_{i + 1}" for i in range(width)]
    shown = ", ".join(cell.strip() for cell in records[0][1])[:60]
    found.notes["header"] = [f"the first line looks like data, not names ({shown}): put the right names here, in order"]


def has_header(records: list[Record], target: str | None) -> bool:
    """Whether the first record holds names. The target's name settles it; else each column votes."""
    first = [cell.strip() for cell in records[0][1]]
    if target is not None and target.strip() in first:
        return True
    if target is not None and re.fullmatch(r"column_[1-9]\d*", target):
        return False
    if len(records) < 2:
        return not all(NUMBER_LIKE.fullmatch(cell) for cell in first)
    return _votes(records) >= 0


def _votes(records: list[Record]) -> int:
    """Columns that speak for the first record as names, less those that speak against it.

    A name over numbers is no number; a cell that comes again below is a value. Years over numbers that are none are names.
    """
    votes = 0
    first = [cell.strip() for cell in records[0][1]]
    years = [cell for cell in first if YEAR.fullmatch(cell)]
    for i, cell in enumerate(first):
        rest = [record[i].strip() for _, record in records[1:1001] if i < len(record) and record[i].strip()]
        if rest and sum(bool(NUMBER_LIKE.fullmatch(text)) for text in rest) >= 0.9 * len(rest):
            if YEAR.fullmatch(cell) and len(set(years)) == len(years) > 1 and not all(map(YEAR.fullmatch, rest)):
                continue
            votes += -1 if NUMBER_LIKE.fullmatch(cell) else bool(cell)
        elif cell and len(rest) > 2 and cell in rest:
            votes -= 1
    return votes


def _filled(record: list[str]) -> int:
    return sum(bool(cell.strip()) for cell in record)
