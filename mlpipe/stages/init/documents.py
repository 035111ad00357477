"""`init` for a folder of documents: the folders in it are the classes, the text of each document says which."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from mlpipe.errors import DataError, did_you_mean, listed
from mlpipe.stages.init.writer import MANY_ROWS, comment, scalar
from mlpipe.stages.look.folder import contents, lines

TARGET = "folder"
FEWEST = 2  # classes


def is_of_documents(data: Any) -> bool:
    """Whether what is named is one folder, most of whose files are documents."""
    if len(data) != 1 or "://" in str(data[0]) or not Path(data[0]).is_dir():
        return False
    found = contents(Path(data[0]))
    return bool(found["sorts"].get("documents", 0) * 2 > found["files"])


def documents_text(folder: Path, target: str, base: Path, name: str, file: str) -> tuple[str, list[str]]:
    """The pipeline file and the summary; nothing is converted.

    Raises DataError for another target than the folder, and when there are not two folders to tell apart.
    """
    found = contents(folder)
    if target != TARGET:
        raise DataError(
            f"a folder of documents has no column {target!r} to learn: what is known of each is the folder that it lies in",
            hint=did_you_mean(target, [TARGET])
            or "say --target folder, and for labels in a CSV file add `labels: {path: FILE}` to the source and change the target",
        )
    classes: dict[str, int] = {}
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder).parts
        if path.is_file() and not any(part.startswith(".") for part in inside):
            classes[inside[-2] if len(inside) > 1 else ""] = classes.get(inside[-2] if len(inside) > 1 else "", 0) + 1
    loose = classes.pop("", 0)
    if len(classes) < FEWEST:
        raise DataError(
            f"{folder} has {len(classes)} folder{'s' * (len(classes) != 1)} with documents: {FEWEST} classes at least are needed",
            hint="put the documents of each class into a folder of its own, or write labels into a CSV file (`labels` of the source)",
        )
    written = Path(os.path.relpath(folder.resolve(), base)).as_posix()
    return _yaml(found, classes, loose, written, name, file), [*lines(folder, found)[:-1]]


def _yaml(found: dict[str, Any], classes: dict[str, int], loose: int, written: str, name: str, file: str) -> str:
    files = found["files"]
    many = files >= MANY_ROWS
    kinds = listed([f"{ending or 'no ending'} ({entry['files']:,})" for ending, entry in found["endings"].items()])
    shown = [comment(f"  {scalar(one)}: {count:,} documents") for one, count in list(classes.items())[:20]]
    rare = min(classes.values())
    text = [
        comment(f"mlpipe run {file}            one change for a trial: --set train.epochs=5"),
        "#",
        comment(
            f"Written by mlpipe init after a look at the names of {files:,} files; none was read. Look through it before the first run."
        ),
        "",
        f"name: {scalar(name)}",
        "seed: 0",
        "",
        "task:",
        "  kind: classification",
        "  target: folder            " + comment("the folder that a document lies in"),
        *(f"  {line}" for line in shown),
        *([f"  missing_target: drop      {comment(f'{loose:,} files lie in no folder')}"] if loose else []),
        "",
        "prepare:",
        "  source:",
        "    kind: documents         " + comment(f"read by Docling: {kinds}"),
        f"    path: {scalar(written)}",
        "    unit: document          " + comment("chunk: a row for each chunk of a document; table: for each row of its tables"),
        "    pdf: native             " + comment("the text layer, without any model; scans are read by OCR"),
        "    on_error: fail          " + comment("skip: a document that cannot be read is left out, counted and named"),
        f"  split: {{kind: random, valid: 0.15, test: 0.2, stratify: {'true' if rare >= 8 else 'false'}}}",
        "  features:",
        "    - kind: text",
        "      columns: [text]",
        "      words: 2              " + comment("words and pairs of them"),
        "      characters: 0         " + comment("4: characters and runs of up to 4, for short texts"),
        f"      min_count: {2 if many else 1}          " + comment("documents that must have a word for it to be known"),
        "      max_characters: 32768 " + comment("of a document that are read"),
        "  keys: [path]              " + comment("stands beside each prediction"),
        "",
        "train:",
        "  model: {kind: text_bag, width: 64}",
        "  optimiser: {kind: adamw, lr: 0.005, weight_decay: 0.01}",
        f"  epochs: {40 if many else 100}",
        f"  batch_size: {64 if many else 16}",
        f"  patience: {5 if many else 15}              " + comment("epochs without a better valid value; the best epoch is kept"),
        "",
        "evaluate:",
        "  metrics: [accuracy, f1, log_loss]",
        "  gates:",
        "    - {metric: log_loss, better_than: baseline}",
        "",
        "export:",
        "  targets: [{kind: onnx}]",
        "",
    ]
    return "\n".join(text)
