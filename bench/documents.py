"""`mlpipe prepare` of folders of documents beside Docling's own command over the same folders."""

from __future__ import annotations

import os
import shutil
import sys
from importlib.metadata import version
from pathlib import Path

from bench.measure import ROOT, alternately, mlpipe, wall
from bench.results import Result, Section, shown
from bench.workspace import Workspace

SHARED = ROOT.parent / "shared" / "data"
FOLDERS = 5
TIMES = 2
LEFT_OUT = (".doc", ".ppt", ".xls", ".tif", ".webp", "ocr_test.pdf", "ocr_test_rotated_180.pdf", "2206.01062_pg3.pdf")
OTHERS = ["docx", "pptx", "html", "asciidoc", "md", "csv", "xlsx", "xml_uspto", "xml_jats", "latex", "vtt", "email", "odt", "ods", "odp"]
# Docling's command reads PDFs without models in a call of their own
DOCLING = {"pdf": ["--from", "pdf", "--pipeline", "native"], "others": [part for kind in OTHERS for part in ("--from", kind)]}
PLAIN = ["--to", "md", "--image-export-mode", "placeholder", "--quiet"]
SETTINGS = """name: {name}-{workers}
task: {{kind: classification, target: folder}}
prepare:
  source: {{kind: documents, path: {name}, workers: {workers}}}
  split: {{kind: random}}
  features: [{{kind: text, columns: [text]}}]
train: {{model: {{kind: text_bag}}}}
evaluate: {{metrics: [accuracy]}}
"""


def bench(work: Workspace) -> Section:
    """Documents a second of the whole commands, start-up counted."""
    os.environ["HF_HUB_OFFLINE"] = "1"  # Docling's command, too, has no network to ask
    docling = str(Path(sys.executable).with_name("docling"))
    results, commands = [], []
    for name, what in (("pdf", "PDFs"), ("others", "Office, web and text files")):
        count = _folder(work.folder / name, [path for path in _files() if (path.suffix == ".pdf") == (name == "pdf")])
        runs = {}
        for workers in (1, 2):
            (work.folder / f"{name}-{workers}.yaml").write_text(SETTINGS.format(name=name, workers=workers), encoding="utf-8")
            command = mlpipe("prepare", f"{name}-{workers}.yaml", "--runs", f"runs-{name}-{workers}", "-q")
            # without what is known from before, which --force would use
            runs[f"{workers}"] = ["sh", "-c", f"rm -rf runs-{name}-{workers}; exec {' '.join(command)}"]
        output = work.folder / f"docling-{name}"
        runs["docling"] = [docling, "convert", str(work.folder / name), *DOCLING[name], *PLAIN, "--output", str(output)]
        costs = alternately(runs, TIMES, work.folder)
        own = count / wall(costs["docling"])
        for workers in (1, 2):
            label = f"{count} {what}, {workers} worker{'s' if workers > 1 else ''}"
            results.append(Result(label, count / wall(costs[f"{workers}"]), "documents/s", "docling convert", own))
        commands += [
            f"mlpipe prepare TMP/{name}-1.yaml --runs TMP/runs-{name}-1 -q",
            shown(["", "docling", *runs["docling"][1:]], work.places).removeprefix("python "),
        ]
    return Section(
        f"docling_docs and invoices_zugferd, without scans, pictures, locked and legacy files, {FOLDERS} times over, each time in a folder "
        f"of its own. Of both the whole process counts, start-up too; mlpipe also hashes, splits, fits a vocabulary and writes the encoded "
        f"rows, and Docling (version {version('docling')}) writes Markdown. No run knows what another one kept. Best of {TIMES}.",
        commands,
        results,
    )


def _files() -> list[Path]:
    found = [*(SHARED / "docling_docs" / "sources").iterdir(), *(SHARED / "invoices_zugferd" / "pdf").iterdir()]
    return sorted(path for path in found if not path.name.endswith(LEFT_OUT))


def _folder(folder: Path, files: list[Path]) -> int:
    """Copies that differ in nothing but their folder; returns how many."""
    for number in range(FOLDERS):
        (folder / f"copy-{number}").mkdir(parents=True)
        for path in files:
            shutil.copyfile(path, folder / f"copy-{number}" / path.name)
    return FOLDERS * len(files)
