"""Killed, interrupted, crowded: the old result or the new one, never a mixture."""

from __future__ import annotations

import json
import random
import signal
import time
from pathlib import Path

import pytest

from tests.helpers import chain, clean_failure, manifests_of, mlpipe, small, start, table_csv

EPOCHS = "train.epochs=400"


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, bytes]]:
    """The manifests of an undisturbed run with each seed."""
    found = {}
    for seed in ("3", "4"):
        folder = tmp_path_factory.mktemp(f"seed{seed}")
        chain(small(folder), folder / "runs", overrides=[f"seed={seed}"])
        found[seed] = manifests_of(folder / "runs/small")
    return found


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["prepare", "train", "evaluate", "export"])
def test_killed_at_random_moments(tmp_path: Path, undisturbed: dict[str, dict[str, bytes]], stage: str) -> None:
    """SIGKILL while a stage is made anew: each stage's manifest is the old run's or the new one's; the next run completes (P01)."""
    file = small(tmp_path)
    chain(file, tmp_path / "runs")
    run = tmp_path / "runs/small"
    names = ["prepare", "train", "evaluate", "export"]
    before = names[: names.index(stage)]
    for name in before:
        chain(file, tmp_path / "runs", until=name, overrides=["seed=4"])
    dice = random.Random(stage)
    for _ in range(4):
        process = start("run", file, "--runs", tmp_path / "runs", "--set", "seed=4", "--until", stage)
        time.sleep(dice.uniform(0.3, 5.0))
        process.kill()
        process.communicate()
        for path, data in manifests_of(run).items():
            if not path.startswith("."):
                assert data in {undisturbed[seed][path] for seed in ("3", "4")}, path
    result = mlpipe("run", file, "--runs", tmp_path / "runs", "--set", "seed=4")
    assert result.rc == 0, result.text
    assert manifests_of(run) == undisturbed["4"]
    assert not list(run.glob(".*.tmp"))
    assert not list(run.glob(".*.old"))
    assert mlpipe("verify", run).rc == 0


def wait_for(process: object, words: str, seconds: float = 60) -> str:
    """Reads a process's lines until one has these words."""
    told, end = "", time.time() + seconds
    while time.time() < end:
        line = process.stdout.readline()  # type: ignore[attr-defined]
        told += line
        if words in line:
            return told
        if not line:
            break
    raise AssertionError(f"{words!r} did not come:\n{told}")


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_interrupted_training_resumes_to_the_same_bits(tmp_path: Path, number: signal.Signals, code: int) -> None:
    """R03, R04: a checkpoint, a line that says how to resume, the signal's exit code; the resumed run equals one in one go."""
    for name in ("whole", "parts"):
        table_csv(tmp_path / name / "train.csv")
    whole, parts = small(tmp_path / "whole"), small(tmp_path / "parts")
    process = start("run", parts, "--runs", tmp_path / "parts/runs", "--set", EPOCHS)
    wait_for(process, "epoch 20/400")
    process.send_signal(number)
    told, _ = process.communicate(timeout=30)
    assert process.returncode == code
    assert "checkpoint was saved" in told
    assert "resume" in told
    assert "Traceback" not in told
    assert not (tmp_path / "parts/runs/small/train").exists()
    refused = mlpipe("evaluate", parts, "--runs", tmp_path / "parts/runs", "--set", EPOCHS)
    assert refused.rc == 4
    clean_failure(refused, "train did not finish")
    status = mlpipe("status", parts, "--runs", tmp_path / "parts/runs", "--set", EPOCHS)
    assert "interrupted after epoch" in status.out
    result = mlpipe("run", parts, "--runs", tmp_path / "parts/runs", "--set", EPOCHS, "--until", "train")
    assert result.rc == 0, result.text
    assert "resumes after epoch" in result.err
    chain(whole, tmp_path / "whole/runs", until="train", overrides=[EPOCHS])
    assert manifests_of(tmp_path / "whole/runs/small") == manifests_of(tmp_path / "parts/runs/small")


@pytest.mark.slow
def test_killed_training_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    """R05c: SIGKILL while a checkpoint is saved every epoch: there is always a whole one, and the result is that of one go."""
    from mlpipe.training.checkpoints import read_checkpoint

    file = small(tmp_path)
    for turn in range(4):
        process = start("run", file, "--runs", tmp_path / "runs", "--set", "train.epochs=3000", "--until", "train")
        wait_for(process, "epoch ")
        time.sleep(0.2 + 0.13 * turn)
        process.kill()
        process.communicate()
        for path in (tmp_path / "runs/small/.checkpoints").rglob("[0-9]*.safetensors"):
            read_checkpoint(path)
    process = start("run", file, "--runs", tmp_path / "runs", "--set", "train.epochs=3000", "--until", "train")
    assert "resumes after epoch" in wait_for(process, "resumes after epoch")
    process.kill()
    process.communicate()


@pytest.mark.slow
def test_two_runs_at_once(tmp_path: Path) -> None:
    """P02: one works; the other ends with 75 and names the holder and its start; waiting makes it succeed; a dead holder blocks nobody."""
    file = small(tmp_path)
    first = start("run", file, "--runs", tmp_path / "runs", "--set", "train.epochs=4000")
    wait_for(first, "epoch ")
    second = mlpipe("run", file, "--runs", tmp_path / "runs")
    assert second.rc == 75
    clean_failure(second, "locked by process", str(first.pid), "started 20")
    assert json.loads(mlpipe("run", file, "--runs", tmp_path / "runs", "--json").out)["exit_code"] == 75
    waiting = start("run", file, "--runs", tmp_path / "runs", "--wait-lock", "120", "--until", "prepare")
    first.kill()
    first.communicate()
    told, _ = waiting.communicate(timeout=120)
    assert waiting.returncode == 0, told
    assert (tmp_path / "runs/small/.lock").exists()  # left by the killed one: the kernel's lock decides, not the file
    assert mlpipe("run", file, "--runs", tmp_path / "runs").rc == 0


@pytest.mark.slow
def test_started_at_the_same_moment(tmp_path: Path) -> None:
    """Two at the same moment, several times: exit codes 0 and 75 (or 0 twice), and one whole result."""
    file = small(tmp_path)
    for seed in range(3):
        both = [start("run", file, "--runs", tmp_path / "runs", "--set", f"seed={seed}", "--until", "prepare") for _ in range(2)]
        told = [process.communicate(timeout=120)[0] for process in both]
        assert sorted(process.returncode for process in both) in ([0, 75], [0, 0]), told
        json.loads((tmp_path / "runs/small/prepare/manifest.json").read_text())
        assert mlpipe("verify", tmp_path / "runs/small").rc == 0


def test_sigterm_in_another_stage(tmp_path: Path) -> None:
    """SIGTERM while prepare works: exit code 143, nothing half-written."""
    table_csv(tmp_path / "train.csv", 200_000)
    file = small(tmp_path)
    process = start("prepare", file, "--runs", tmp_path / "runs")
    wait_for(process, "prepare: runs")
    process.send_signal(signal.SIGTERM)
    told, _ = process.communicate(timeout=30)
    assert process.returncode == 143, told
    assert "Traceback" not in told
    assert not (tmp_path / "runs/small/prepare").exists()
    assert not list((tmp_path / "runs/small").glob(".*.tmp"))


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0.3, 1.0, 1.6])
def test_sigterm_while_the_exporter_works(tmp_path: Path, delay: float) -> None:
    """SIGTERM inside torch's exporter, which catches exceptions: exit code 143 (or a whole result, had it just ended)."""
    file = small(tmp_path)
    chain(file, tmp_path / "runs", until="evaluate")
    process = start("export", file, "--runs", tmp_path / "runs")
    wait_for(process, "export: runs")
    time.sleep(delay)
    process.send_signal(signal.SIGTERM)
    told, _ = process.communicate(timeout=30)
    assert "Traceback" not in told
    assert process.returncode in (0, 143), told
    assert (process.returncode == 0) == (tmp_path / "runs/small/export/manifest.json").exists()
