"""How a data file is written: its kind, encoding, delimiter and header, guessed once, for `mlpipe init`.

Nothing is guessed from a part where the whole decides: the encoding must decode every byte. The delimiter and the header are
guessed from the first megabyte; the reader then holds every row to them and names the line that does not fit.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import os
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mlpipe.errors import DataError, listed
from mlpipe.sources import AnySource
from mlpipe.sources.base import KIND_OF_ENDING
from mlpipe.sources.csv import FIELD_LIMIT, Csv
from mlpipe.sources.jsonl import Jsonl
from mlpipe.sources.parquet import Parquet
from mlpipe.sources.streams import ENDINGS, open_bytes
from mlpipe.stages.init.survey import NUMBER_LIKE

SAMPLE = 1 << 20
DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}


@dataclass
class Dialect:
    """A source that gives every cell as it stands, the settings the pipeline file must state, and the evidence for each."""

    source: AnySource
    settings: dict[str, Any]
    notes: dict[str, list[str]] = field(default_factory=dict)
    quoted: frozenset[str] = frozenset()  # JSON names whose every value is a string: never retyped
    headless: bool = False


def dialect(files: list[Path], target: str, base: Path) -> Dialect:
    """Looks at files that make up one table; paths are written relative to `base`. Raises DataError when they cannot be read."""
    if not files:
        raise DataError("no data file was named", hint="mlpipe init DATA --target COLUMN")
    for file in files:
        if not file.exists():
            raise DataError(f"there is no file {file}", hint="check the path; it is relative to the current folder")
        if file.is_dir():
            raise DataError(f"{file} is a folder, not a file", hint=f"name its files, such as {file}/*.csv")
    written = [Path(os.path.relpath(os.path.abspath(file), base)).as_posix() for file in files]  # noqa: PTH100 (links stay as they are)
    path: Any = written[0] if len(written) == 1 else written
    kinds = {_kind(file) for file in files}
    if len(kinds) > 1:
        raise DataError(f"the files are of different kinds: {listed(sorted(kinds))}", hint="one table has files of one kind")
    kind = kinds.pop()
    settings: dict[str, Any] = {"kind": kind, "path": path}
    if kind == "parquet":
        return Dialect(Parquet(path=path, missing=()), settings)
    if kind == "jsonl":
        return Dialect(Jsonl(path=path, missing=()), settings, quoted=_quoted(files))
    return _delimited(files, target, settings)


def _kind(file: Path) -> str:
    """The source kind by ending, else by the first bytes."""
    stem = Path(file.stem) if file.suffix.lower() in ENDINGS else file
    ending = stem.suffix.lower()
    with open_bytes(file) as raw:
        head = raw.read(512)
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"PK\x03\x04") and ending not in (".xlsx", ".ods"):
        raise DataError(f"{file.name} is a zip archive", hint="unpack it first; gz, bz2, xz and zst are read as they are")
    if ending in (".xlsx", ".xls", ".ods"):
        raise DataError(f"{file.name} is a spreadsheet, which no source kind reads yet", hint="save the sheet as CSV in UTF-8")
    if ending == ".json":
        if head.lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"{"):
            return "jsonl"
        raise DataError(f"{file.name} is not JSON Lines", hint="write one JSON object a line, for example: jq -c '.[]'")
    return KIND_OF_ENDING.get(ending, "csv")


def _quoted(files: list[Path]) -> frozenset[str]:
    """The JSON names that never hold a number or a boolean."""
    seen: set[str] = set()
    other: set[str] = set()
    for file in files:
        with open_bytes(file) as raw:
            for line in raw:
                try:
                    record = json.loads(line)
                except ValueError:
                    continue  # the source says what is wrong with it, and where
                if isinstance(record, dict):
                    seen.update(name for name, value in record.items() if isinstance(value, str))
                    other.update(name for name, value in record.items() if value is not None and not isinstance(value, str))
    return frozenset(seen - other)


def _delimited(files: list[Path], target: str, settings: dict[str, Any]) -> Dialect:
    notes: dict[str, list[str]] = {}
    encodings = {file.name: _encoding(file) for file in files}
    if len({encoding for encoding, _ in encodings.values()}) > 1:
        said = [f"{name}: {encoding}" for name, (encoding, _) in encodings.items()]
        raise DataError("the files are in different encodings", faults=said, hint="convert them all to UTF-8")
    encoding, why = encodings[files[0].name]
    if encoding != "utf-8":
        settings["encoding"], notes["encoding"] = encoding, [why]
    sample, whole = _sample(files[0], encoding)
    mark, why = _delimiter(sample, whole)
    if mark != ",":
        settings["delimiter"], notes["delimiter"] = mark, [why]
    records = _records(sample, mark, whole)
    if _quotes_are_letters(sample, mark, whole):
        records = _records(sample, mark, whole, quoting=csv.QUOTE_NONE)
        settings["quote"], notes["quote"] = (
            None,
            ['the sign " does not enclose fields here; without quoting every line has the same number of them'],
        )
    headless = not _has_header(records, target)
    if headless:
        width = Counter(map(len, records)).most_common(1)[0][0]
        settings["header"] = [f"column_{i + 1}" for i in range(width)]
        notes["header"] = [f"the first line looks like data, not names ({_shown(records[0])}): put the right names here, in order"]
    csv_settings = {name: value for name, value in settings.items() if name != "kind"}
    return Dialect(Csv(**csv_settings, missing=()), settings, notes, headless=headless)


def _encoding(file: Path) -> tuple[str, str]:
    """The encoding in which every byte of a file can be read, and why. Raises DataError when there is none."""
    with open_bytes(file) as raw:
        head = raw.read(4096)
    if head.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32", "the file begins with a UTF-32 mark"
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16", "the file begins with a UTF-16 mark"
    if b"\0" in head:
        odd, even = head[1::2].count(0), head[0::2].count(0)
        if max(odd, even) < 0.8 * len(head) / 2 or min(odd, even):
            raise DataError(f"{file.name} holds zero bytes: it is no text file", hint="is it the right file?")
        name = "utf-16-le" if odd else "utf-16-be"
        if _decodes(file, name):
            return name, "every other byte is zero: UTF-16 without a mark"
    if _decodes(file, "utf-8"):
        return "utf-8", "every byte is UTF-8"
    number, lines = 0, list[bytes]()
    first = 0
    with open_bytes(file) as raw:
        for line in raw:
            number += 1
            if not line.isascii():
                first = first or number
                lines.append(line)
            if len(lines) > 2000:
                break
    for name in _charsets(b"".join(lines)):
        if _decodes(file, name):
            seen = next(iter(lines)).decode(name, "replace").strip()[:60]
            return name, f"a guess: line {first} is not UTF-8; in {name} it reads {json.dumps(seen, ensure_ascii=False)}"
    raise DataError(
        f"{file.name}, line {first}: the encoding is not UTF-8, and no guess fits every byte", hint="convert the file to UTF-8 first"
    )


def _charsets(text: bytes) -> list[str]:
    """Encodings to try.

    Where charset-normalizer does not rule windows-1252 out, that comes first, as browsers hold it: a short text leaves its
    neighbours as likely, and those change single letters without a sign.
    """
    from charset_normalizer import from_bytes

    matches = from_bytes(text)
    likely = list(dict.fromkeys(name for match in matches for name in match.could_be_from_charset))
    best = matches.best()
    if not likely or "cp1252" in likely or best is None:
        return ["cp1252", *likely]
    return [best.encoding, *likely, "cp1252"]


def _decodes(file: Path, encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    with open_bytes(file) as raw:
        try:
            while block := raw.read(SAMPLE):
                decoder.decode(block)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return False
    return True


def _sample(file: Path, encoding: str) -> tuple[str, bool]:
    """The first megabyte as text, and whether that is all of the file."""
    with open_bytes(file) as raw:
        data = raw.read(SAMPLE)
        whole = not raw.read(1)
    text = codecs.getincrementaldecoder(encoding)("strict").decode(data, final=False)
    return text.lstrip("\ufeff"), whole


def _records(sample: str, mark: str, whole: bool, **how: Any) -> list[list[str]]:
    """Records that are not blank; the last one of a sample that was cut is left out."""
    csv.field_size_limit(FIELD_LIMIT)
    records = [record for record in csv.reader(io.StringIO(sample, newline=""), delimiter=mark, **how) if record]
    return records if whole or len(records) < 2 else records[:-1]


def _quotes_are_letters(sample: str, mark: str, whole: bool) -> bool:
    """Whether reading with quotes fails, or leaves uneven rows, where reading without them gives even ones."""
    if '"' not in sample:
        return False
    try:
        quoted = {len(record) for record in _records(sample, mark, whole, strict=whole)}
    except csv.Error:
        quoted = set()
    plain = {len(record) for record in _records(sample, mark, whole, quoting=csv.QUOTE_NONE)}
    return len(quoted) != 1 and len(plain) == 1 and plain != {1}


def _delimiter(sample: str, whole: bool) -> tuple[str, str]:
    """The mark that cuts the most rows into the same number of fields; of equal ones that whose fields look like numbers.

    csv.Sniffer goes by how often a character comes, and takes a decimal comma for a delimiter; this goes by whole records.
    """
    best: tuple[tuple[float, float, int], str, str] | None = None
    for mark, name in DELIMITERS.items():
        try:
            records = _records(sample, mark, whole)
        except csv.Error:
            continue
        widths = Counter(map(len, records))
        if not widths:
            break
        width, count = widths.most_common(1)[0]
        if width < 2:
            continue
        cells = [cell.strip() for record in records for cell in record]
        numbers = sum(bool(NUMBER_LIKE.fullmatch(cell)) for cell in cells) / len(cells)
        rank = (round(count / len(records), 2), round(numbers, 2), width)
        if best is None or rank > best[0]:
            best = (rank, mark, f"a {name} cuts {count:,} of {len(records):,} lines into {width} fields")
    return (best[1], best[2]) if best else (",", "no mark cuts the lines into fields")


def _has_header(records: list[list[str]], target: str) -> bool:
    """Whether the first record holds names. The target's name settles it; else each column votes."""
    if len(records) < 2:
        return True
    first = [cell.strip() for cell in records[0]]
    if target.strip() in first:
        return True
    if re.fullmatch(r"column_[1-9]\d*", target):
        return False
    votes = 0
    for i, cell in enumerate(first):
        rest = [record[i].strip() for record in records[1:1001] if i < len(record) and record[i].strip()]
        if rest and sum(bool(NUMBER_LIKE.fullmatch(text)) for text in rest) >= 0.9 * len(rest):
            votes += -1 if NUMBER_LIKE.fullmatch(cell) else bool(cell)
        elif cell and cell in rest:
            votes -= 1
    return votes >= 0


def _shown(record: list[str]) -> str:
    return ", ".join(cell.strip() for cell in record)[:60]
