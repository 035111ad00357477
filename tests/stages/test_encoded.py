"""Encoded tensors as memory maps, whose pages are let go."""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np
import pytest

from mlpipe.stages.encoded import TensorWriter, read_tensors, release


@pytest.mark.skipif(not hasattr(mmap, "MADV_DONTNEED"), reason="the system has no such call")
def test_pages_that_are_let_go_leave_memory_and_come_back(tmp_path: Path) -> None:
    """16 MB that were read count as memory; once let go they do not, and read the same again."""
    values = np.arange(4 << 20, dtype=np.float32).reshape(-1, 4)
    with TensorWriter(tmp_path / "x", len(values)) as writer:
        writer.write("numeric", values)
    arrays = read_tensors(tmp_path / "x")
    assert np.array_equal(arrays["numeric"], values)
    smaps = Path("/proc/self/smaps")
    held = _resident(smaps)
    release({**arrays, "plain": values})
    if held is not None:
        assert held >= 15_000
        assert _resident(smaps) == 0
    assert np.array_equal(arrays["numeric"], values)


def _resident(smaps: Path) -> int | None:
    """Kilobytes of numeric.npy in memory, where the system tells."""
    if not smaps.is_file():
        return None
    lines = smaps.read_text(encoding="utf-8").splitlines()
    at = next(i for i, line in enumerate(lines) if line.endswith("numeric.npy"))
    return int(next(line for line in lines[at:] if line.startswith("Rss:")).split()[1])
