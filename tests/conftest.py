"""What every test shares: one thread, no telemetry, and where the shared folders lie."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # two threads on a busy two-core machine are slower than one by a factor of ten or more
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import pytest
from hypothesis import settings

from tests.postgres import Server, server

# the same examples in each run, and no clock: a busy machine makes no test fail
settings.register_profile("mlpipe", deadline=None, derandomize=True, max_examples=60, database=None)
settings.load_profile("mlpipe")

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"
CASES = Path(__file__).resolve().parent / "cases"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data sets; the test skips, and says so, where it is absent."""
    if not (SHARED / "data").is_dir():
        pytest.skip("the folder ../shared/data is absent")
    return SHARED / "data"


@pytest.fixture(scope="session")
def cases() -> Path:
    """The input files of the cases from public bug reports, a folder each."""
    return CASES


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server of our own; the test skips, and says so, where none is installed."""
    with server() as found:
        if isinstance(found, str):
            pytest.skip(found)
        yield found
