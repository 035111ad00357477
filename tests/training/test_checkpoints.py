"""Checkpoints: whole or refused, never executed."""

from __future__ import annotations

import errno
import pickle
from pathlib import Path

import pytest
import torch

from mlpipe.errors import IntegrityError, MachineError
from mlpipe.training import checkpoints
from mlpipe.training.checkpoints import Checkpoint, newest_checkpoint, read_checkpoint, save_checkpoint


def checkpoint(epoch: int) -> Checkpoint:
    return Checkpoint(
        {"net/w": torch.full((3, 2), float(epoch)), "optimiser/0/step": torch.tensor(4.0)}, {"epoch": epoch, "step": 0, "model": {"a": [1]}}
    )


def test_comes_back_as_it_was(tmp_path: Path) -> None:
    """Tensors and plain facts survive, and only the newest two files are kept."""
    for epoch in (1, 2, 3):
        save_checkpoint(tmp_path, checkpoint(epoch))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["000002-00000000.safetensors", "000003-00000000.safetensors"]
    found = newest_checkpoint(tmp_path)
    assert found is not None
    assert found.facts == checkpoint(3).facts
    assert torch.equal(found.part("net")["w"], torch.full((3, 2), 3.0))
    assert newest_checkpoint(tmp_path / "nothing") is None


@pytest.mark.parametrize("harm", ["cut", "empty", "flip", "text"])
def test_damaged_file_is_named_with_the_newest_good_one(tmp_path: Path, harm: str) -> None:
    """A cut, empty, changed or foreign file is refused; the message names the good one before it (R05)."""
    save_checkpoint(tmp_path, checkpoint(1))
    path = save_checkpoint(tmp_path, checkpoint(2))
    data = path.read_bytes()
    harmed = {"cut": data[:60], "empty": b"", "flip": data[:-1] + bytes([data[-1] ^ 1]), "text": b"not a checkpoint"}[harm]
    path.write_bytes(harmed)
    with pytest.raises(IntegrityError, match="damaged") as fault:
        newest_checkpoint(tmp_path)
    assert path.name in str(fault.value)
    assert "000001-00000000.safetensors" in (fault.value.hint or "")
    path.unlink()
    assert newest_checkpoint(tmp_path) is not None


class Evil:
    """Creates a file when it is unpickled."""

    def __init__(self, marker: str) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return (open, (self.marker, "w"))


@pytest.mark.parametrize("name", ["000009-00000000.safetensors", "last.ckpt"])
def test_nothing_in_a_checkpoint_is_executed(tmp_path: Path, name: str) -> None:
    """A pickle in place of a checkpoint is refused by name, and does nothing (R06)."""
    marker = tmp_path / "marker"
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    (folder / name).write_bytes(pickle.dumps({"hyper_parameters": Evil(str(marker))}))
    with pytest.raises(IntegrityError, match=name):
        newest_checkpoint(folder)
    torch.save({"x": Evil(str(marker))}, folder / name)
    with pytest.raises(IntegrityError, match=name):
        read_checkpoint(folder / name)
    assert not marker.exists()


def test_full_disk_leaves_the_earlier_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No space: the path is named, and the checkpoint before is whole (R05d)."""
    save_checkpoint(tmp_path, checkpoint(1))

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("mlpipe.base.os.fsync", full)
    with pytest.raises(MachineError, match="no space left") as fault:
        save_checkpoint(tmp_path, checkpoint(2))
    assert "000002" in str(fault.value)
    monkeypatch.undo()
    found = newest_checkpoint(tmp_path)
    assert found is not None
    assert found.facts["epoch"] == 1
    assert checkpoints.KEPT == 2
