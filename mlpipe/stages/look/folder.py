"""A folder of files: what is in it, by ending and by subfolder. Tables in it are read by naming them; what else there is, is counted."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from mlpipe.errors import DataError, listed
from mlpipe.sources.base import KIND_OF_ENDING
from mlpipe.sources.streams import ENDINGS

SORTS = {
    "images": frozenset({".jpg", ".jpeg", ".png", ".tif", ".tiff", ".webp", ".bmp", ".gif"}),
    "documents": frozenset({".pdf", ".docx", ".pptx", ".doc", ".ppt", ".html", ".htm", ".md", ".adoc", ".asciidoc", ".eml", ".epub",
                            ".odt", ".odp", ".tex", ".xml", ".nxml"}),
    "sounds": frozenset({".wav", ".mp3", ".flac", ".ogg"}),
}  # fmt: skip


def contents(folder: Path) -> dict[str, Any]:
    """Files below a folder: how many and how large by ending; the subfolders of the first floor with their files.

    Raises DataError for a folder without files.
    """
    count: Counter[str] = Counter()
    size: Counter[str] = Counter()
    below: Counter[str] = Counter()
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if not path.is_file() or any(part.startswith(".") for part in inside.parts):
            continue
        ending = _ending(path)
        count[ending] += 1
        size[ending] += path.stat().st_size
        below[inside.parts[0] if len(inside.parts) > 1 else "."] += 1
    if not count:
        raise DataError(f"{folder} is a folder without files", hint="is it the right folder?")
    sorts: Counter[str] = Counter()
    for ending, number in count.items():
        sort = next((sort for sort, endings in SORTS.items() if ending in endings), None)
        sorts[sort or ("tables" if ending in KIND_OF_ENDING else "other files")] += number
    return {
        "files": sum(count.values()),
        "endings": {ending: {"files": number, "bytes": size[ending]} for ending, number in count.most_common()},
        "folders": dict(sorted(below.items())),
        "sorts": dict(sorts.most_common()),
    }


def _ending(path: Path) -> str:
    return (Path(path.stem) if path.suffix.lower() in ENDINGS else path).suffix.lower()


def lines(folder: Path, found: dict[str, Any]) -> list[str]:
    """The same for a person, and what to do next."""
    said = [f"{folder}: a folder of {found['files']:,} files"]
    said += [
        f"  {ending or 'no ending'}: {one['files']:,} file{'s' * (one['files'] > 1)}, {one['bytes']:,} bytes"
        for ending, one in found["endings"].items()
    ]
    named = {name: number for name, number in found["folders"].items() if name != "."}
    if named:
        each = listed([f"{name} ({number:,})" for name, number in named.items()], 20)
        said.append(f"  folders, which may be classes: {each}")
    return [*said, f"next: {advice(folder, found)}"]


def advice(folder: Path, found: dict[str, Any]) -> str:
    """What can be done with such a folder."""
    tables = [ending for ending in found["endings"] if ending in KIND_OF_ENDING]
    if tables:
        return f"name the files of one table, such as {folder.as_posix().rstrip('/')}/*{tables[0]}"
    if found["sorts"].get("documents", 0) * 2 > found["files"]:
        return f"mlpipe init {folder.as_posix()} --target folder -o pipeline.yaml"
    return f"no source kind reads {' and '.join(found['sorts'])} yet"


def refused(folder: Path) -> DataError:
    """Why a folder is no table, with what is in it."""
    found = contents(folder)
    return DataError(f"{folder} is a folder, not a file", faults=lines(folder, found)[1:-1], hint=advice(folder, found))
