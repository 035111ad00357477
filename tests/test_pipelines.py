"""The pipelines that ship: each loads, names columns that its data have, and the ones whose data ship pass their gates."""

from __future__ import annotations

import importlib.util
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mlpipe.spec import load_pipeline

ROOT = Path(__file__).resolve().parents[1]
PIPELINES = sorted(path.stem for path in (ROOT / "pipelines").glob("*.yaml"))
SHIPPED = ["auto_mpg", "breast_cancer", "messages", "penguins"]
DOCUMENTS = ["letters"]


@pytest.mark.parametrize("name", PIPELINES)
def test_every_pipeline_loads_and_is_called_like_its_file(name: str) -> None:
    """And has a gate."""
    spec = load_pipeline(ROOT / "pipelines" / f"{name}.yaml").spec
    assert spec.name == name and spec.evaluate.gates


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_data_have_their_columns_and_their_licence(name: str) -> None:
    """Every column of the file is a feature, the target, a key, or left out with a reason."""
    pipeline = load_pipeline(ROOT / "pipelines" / f"{name}.yaml")
    spec = pipeline.spec
    ((_, file),) = spec.prepare.source.files(pipeline.base)
    placed = [*spec.feature_columns(), spec.task.target, *spec.prepare.keys, *spec.prepare.ignore]
    assert sorted(placed) == sorted(spec.prepare.source.names(file))
    assert "Licence" in (file.parent / "LICENSE.md").read_text(encoding="utf-8")
    assert f"`{file.parent.name}/`" in (ROOT / "data" / "README.md").read_text(encoding="utf-8")


def made_by(folder: str) -> Any:
    """The script of a data set that we made."""
    found = importlib.util.spec_from_file_location(f"make_{folder}", ROOT / "data" / folder / "make.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_messages_are_what_their_script_makes() -> None:
    """Byte for byte, so that the script is the whole source."""
    made = made_by("messages").csv_text().encode()
    assert made == (ROOT / "data" / "messages" / "messages.csv").read_bytes()
    assert len(made) < 100_000


@pytest.mark.data
@pytest.mark.parametrize("name", sorted(set(PIPELINES) - {*SHIPPED, *DOCUMENTS}))
def test_other_pipelines_have_the_columns_of_the_data_they_name(name: str, shared_data: Path) -> None:
    """Checked where the data are; the paths are those of ../shared/data."""
    spec = load_pipeline(ROOT / "pipelines" / f"{name}.yaml").spec
    source = spec.prepare.source
    assert isinstance(source.path, str) and source.path.startswith("../data/")
    file = shared_data / source.path.removeprefix("../data/")
    placed = [*spec.feature_columns(), spec.task.target, *spec.prepare.keys, *spec.prepare.ignore, *spec.prepare.split.columns()]
    assert sorted(placed) == sorted(source.names(file))


def test_letters_are_of_four_kinds_in_four_formats() -> None:
    """Three of each in each folder, small, with their licence."""
    folder = ROOT / "data" / "letters"
    files = [path.relative_to(folder / "documents").as_posix() for path in (folder / "documents").rglob("*") if path.is_file()]
    counts = Counter((name.split("/")[0], name.rpartition(".")[2]) for name in files)
    assert counts == {
        (kind, ending): 3 for kind in ("application", "complaint", "invoice", "order") for ending in ("pdf", "docx", "html", "md")
    }
    assert sum((folder / "documents" / name).stat().st_size for name in files) < 600_000
    assert "Licence" in (folder / "LICENSE.md").read_text(encoding="utf-8")
    assert "`letters/`" in (ROOT / "data" / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SHIPPED, *DOCUMENTS])
def test_shipped_pipelines_pass_their_gates(name: str, tmp_path: Path) -> None:
    """From the source file to the verdict."""
    from mlpipe.stages.base import Options
    from mlpipe.stages.chain import run_stages

    pipeline = load_pipeline(ROOT / "pipelines" / f"{name}.yaml")
    *_, evaluated = run_stages(pipeline, tmp_path, ["prepare", "train", "evaluate"], Options())
    assert evaluated.manifest.verdict == "ok"
