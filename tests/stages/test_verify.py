"""verify names the first link that does not hold, also where a manifest is gone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mlpipe.base import json_text, read_json
from mlpipe.errors import IntegrityError
from mlpipe.stages.verify import verify
from tests.helpers import chain, small


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("verify")
    chain(small(folder), folder / "runs")
    return folder


@pytest.fixture
def base(finished: Path, tmp_path: Path) -> Path:
    return shutil.copytree(finished, tmp_path / "copy")


@pytest.mark.parametrize("stage", ["prepare", "train", "evaluate", "export"])
def test_a_stage_without_its_manifest_is_a_broken_link(base: Path, stage: str) -> None:
    """Whatever lies there, and whatever lineage/ says: a stage's folder without a manifest does not hold."""
    (base / "runs/small" / stage / "manifest.json").unlink()
    with pytest.raises(IntegrityError, match=r"has no manifest\.json"):
        verify(base / "runs/small")


@pytest.mark.parametrize("stage", ["prepare", "train", "evaluate", "export"])
@pytest.mark.parametrize("member", ["results", "verdict", "id", "identity", "parents", "outputs"])
def test_an_edited_manifest_is_a_broken_link(base: Path, stage: str, member: str) -> None:
    """Any member: results too, of which no digest of an artifact speaks."""
    path = base / "runs/small" / stage / "manifest.json"
    data = read_json(path)
    data[member] = {"results": {"accuracy": 1.0}, "verdict": "fine", "id": "sha256:0", "identity": {}, "parents": [{}], "outputs": []}[
        member
    ]
    path.write_text(json_text(data))
    with pytest.raises(IntegrityError):
        verify(base / "runs/small")


def test_an_extra_and_a_renamed_file_are_named(base: Path) -> None:
    """A file that no manifest lists, and one that took another name."""
    (base / "runs/small/train/notes.txt").write_text("mine")
    with pytest.raises(IntegrityError, match=r"notes\.txt is not listed"):
        verify(base / "runs/small")
    (base / "runs/small/train/notes.txt").unlink()
    (base / "runs/small/prepare/encoded/train/category.npy").rename(base / "runs/small/prepare/encoded/train/codes.npy")
    with pytest.raises(IntegrityError, match="encoded/train has changed"):
        verify(base / "runs/small")


def test_a_missing_parent_is_named(base: Path) -> None:
    """A whole stage gone: for evaluate there is no lineage to fall back on."""
    shutil.rmtree(base / "runs/small/export")
    shutil.rmtree(base / "runs/small/train")
    with pytest.raises(IntegrityError, match="its parent train is missing"):
        verify(base / "runs/small")


def test_a_model_shipped_alone_is_checked_against_its_lineage(base: Path, tmp_path: Path) -> None:
    """The export folder under another name: every link by lineage/, and with the pipeline's folder the sources too."""
    alone = shutil.copytree(base / "runs/small/export", tmp_path / "shipped")
    assert set(verify(alone).stages) == {"export", "prepare", "train", "evaluate"}
    assert any("1 file holds" in line for line in verify(alone, base).lines)
    (base / "train.csv").write_text("x1,x2,colour,label\n1,2,red,no\n")
    with pytest.raises(IntegrityError, match=r"source train\.csv has changed"):
        verify(alone, base)
    lineage = alone / "lineage/train.json"
    lineage.write_text(lineage.read_text().replace('"epochs": 4', '"epochs": 5'))
    with pytest.raises(IntegrityError):
        verify(alone)
