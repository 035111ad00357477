"""The model files of Docling's standard PDF pipeline, which are never fetched without being asked for."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from mlpipe.errors import MachineError

# by folder below `artifacts_path`; tests compare them with what docling itself looks for
MODELS = {"docling-project--docling-layout-heron": "layout", "docling-project--docling-models": "tables"}


def check_models(artifacts: Path, written: str, names: Iterable[str]) -> None:
    """Raises MachineError when a model is missing that PDFs among `names` need; asks no network."""
    pdf = next((name for name in names if name.lower().endswith(".pdf")), None)
    missing = [f"{what}: {artifacts / folder}" for folder, what in MODELS.items() if not (artifacts / folder).is_dir()]
    if pdf is None or not missing:
        return
    raise MachineError(
        f"{pdf} needs Docling's models for `pdf: layout`, and the folder {written} lacks them",
        faults=[f"missing model {entry}" for entry in missing],
        hint=f"docling-tools models download -o {written} layout tableformer    (asks the network), or set pdf: native, which needs none",
    )
