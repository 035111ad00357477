"""The table of docs/odd-files.md: what `inspect` makes of each file of ../shared/data/nasty_csv. `python -m tests.odd_files` prints it."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mlpipe.errors import MlpipeError
from mlpipe.stages.look.dialect import dialect

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"

# files that are refused, and why that is right
REFUSED = {
    "weird_head_padding.csv": "below the rows stand footnotes of one field each; which lines are rows is for a person to say",
    "duplicate-headers.csv": "three columns are called id: a name must mean one column",
    "bad.csv": "rows of 2, 3 and 4 fields: a delimiter is missing or one too many, and no reading tells where",
    "test_extra_header.csv": "the header has a name more than the row has fields: which one lacks its value is not known",
    "utf8bom.csv": "a single line of words: a header without rows",
}

HEAD = """# Odd files

What `mlpipe inspect` makes of 51 delimited files that tools are known to stumble over (messytables, frictionless, csvkit and others).
The rows and columns are those that are there, and every cell is as the file has it, or the file is refused with its line and the reason.
This page is printed by `python -m tests.odd_files`, and a test compares it.

| file | rows | columns | read with, or refused because |
| --- | ---: | ---: | --- |
"""
TAIL = """
What a refusal says names the setting that reads the file all the same, once a person has decided:
`--reader short_rows=fill` takes the fields that a row lacks for empty ones.
`--reader skip_lines=1 --reader header=[a,b,c]` gives names of its own.
"""


@dataclass(frozen=True)
class Entry:
    """A file of MANIFEST.csv."""

    file: str
    encoding: str
    delimiter: str
    rows: int
    columns: int


def entries(folder: Path) -> Iterator[Entry]:
    """The files that are stated, with the rows below the header."""
    with (folder / "MANIFEST.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            above = 0 if row["header_line"] == "none" else int(row["header_line"]) + 1
            yield Entry(row["file"], row["encoding"], row["delimiter"], int(row["records"]) - above, int(row["max_fields"]))


def table(folder: Path) -> str:
    """The page."""
    lines = []
    for entry in entries(folder):
        try:
            seen = dialect([folder / entry.file], None, folder)
            names = seen.source.check_header(entry.file, folder / entry.file, [])
            rows = sum(chunk.rows.num_rows for chunk in seen.source.chunks(folder, names))
            if not rows:
                raise MlpipeError("no rows")
            named = {name: value for name, value in seen.settings.items() if name not in ("kind", "path", "header")}
            how = ", ".join(f"{name} `{value!r}`".replace("|", "\\|") for name, value in named.items()) or "defaults"
            lines.append(f"| {entry.file} | {rows:,} | {len(names):,} | {how}{', no header' if seen.headless else ''} |")
        except MlpipeError:
            lines.append(f"| {entry.file} | - | - | refused: {REFUSED.get(entry.file, '?')} |")
    return HEAD + "\n".join(lines) + "\n" + TAIL


if __name__ == "__main__":
    print(table(SHARED / "nasty_csv"), end="")
