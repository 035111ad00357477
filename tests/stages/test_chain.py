"""The chain of stages: what runs again after a change, what is skipped, what is equal."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from mlpipe.errors import GateError, IntegrityError, NotReadyError
from mlpipe.run import STAGES
from mlpipe.spec import load_pipeline
from mlpipe.stages.base import Options
from mlpipe.stages.chain import run_stages, steps
from mlpipe.stages.verify import verify
from tests.helpers import chain, manifests_of, small, small_settings, states, table_csv, write_pipeline

ALL_FRESH = dict.fromkeys(STAGES, "fresh")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a pipeline with a test source of its own, run once."""
    folder = tmp_path_factory.mktemp("finished")
    table_csv(folder / "test.csv", 40, start=500)
    chain(small(folder, prepare__test={"kind": "csv", "path": "test.csv"}), folder / "runs")
    return folder


@pytest.fixture
def done(finished: Path, tmp_path: Path) -> tuple[Path, Path]:
    """A copy of the finished run: (pipeline file, runs folder)."""
    shutil.copytree(finished, tmp_path / "copy")
    return tmp_path / "copy/small.yaml", tmp_path / "copy/runs"


def test_second_run_does_nothing(done: tuple[Path, Path]) -> None:
    """A run with nothing changed does nothing, and leaves every byte alone."""
    file, runs = done
    before = {p: p.stat().st_mtime_ns for p in runs.rglob("*") if p.is_file()}
    assert states(chain(file, runs)) == ALL_FRESH
    assert before == {p: p.stat().st_mtime_ns for p in runs.rglob("*") if p.is_file()}


def test_touch_changes_nothing(done: tuple[Path, Path]) -> None:
    """A new time on an input is no change."""
    file, runs = done
    os.utime(file.parent / "train.csv", (1, 1))
    os.utime(file.parent / "test.csv")
    assert states(chain(file, runs)) == ALL_FRESH


def test_changed_test_row_does_not_retrain(done: tuple[Path, Path]) -> None:
    """One test row changed: prepare and evaluate run, train does not."""
    file, runs = done
    test = file.parent / "test.csv"
    lines = test.read_text().splitlines()
    lines[1] = lines[1].replace("no", "yes") if lines[1].endswith("no") else lines[1].replace("yes", "no")
    test.write_text("\n".join(lines) + "\n")
    weights = (runs / "small/train/weights.safetensors").stat().st_mtime_ns
    assert states(chain(file, runs)) == {"prepare": "ran", "train": "moved", "evaluate": "ran", "export": "ran"}
    assert (runs / "small/train/weights.safetensors").stat().st_mtime_ns == weights
    verify(runs / "small")


def test_same_content_in_another_file_retrains_nothing(done: tuple[Path, Path]) -> None:
    """A source that is packed differently gives equal rows: only prepare runs, later manifests are renewed, all links hold."""
    import gzip

    file, runs = done
    (file.parent / "train.csv.gz").write_bytes(gzip.compress((file.parent / "train.csv").read_bytes()))
    outcome = states(chain(file, runs, overrides=["prepare.source.path=train.csv.gz"]))
    assert outcome["prepare"] == "ran"
    assert outcome["train"] == outcome["evaluate"] == "moved"
    verify(runs / "small")


CHANGES = {
    "train.optimiser.lr=0.01": ("train", "evaluate", "export"),
    "train.model.hidden=[4]": ("train", "evaluate", "export"),
    "evaluate.metrics=[accuracy]": ("evaluate", "export"),
    "export.targets.0.tolerance=0.001": ("export",),
    "seed=4": STAGES,
    "prepare.split.valid=0.3": STAGES,
}


@pytest.mark.parametrize(("change", "expected"), CHANGES.items())
def test_what_a_setting_makes_run(done: tuple[Path, Path], change: str, expected: tuple[str, ...]) -> None:
    """A changed setting runs its own stage and what follows, and says what changed."""
    file, runs = done
    settings = [change] if "targets" not in change else ["export.targets=[{kind: onnx, tolerance: 0.001}]"]
    outcomes = chain(file, runs, overrides=settings)
    assert tuple(name for name, state in states(outcomes).items() if state == "ran") == expected
    assert any(char in outcomes[expected[0]].reason for char in ("->", "changed"))


def test_reason_names_the_setting_with_both_values(done: tuple[Path, Path]) -> None:
    """The reason of a run is a sentence: setting, old value, new value."""
    file, runs = done
    found = {step.stage: step for step in steps(load_pipeline(file, ["train.optimiser.lr=0.01"]), runs)}
    assert found["prepare"].state == "fresh"
    assert found["train"].reason == "optimiser.lr 0.001 -> 0.01"
    assert found["evaluate"].state == "waits"


def test_changed_byte_with_size_and_time_kept_is_noticed(done: tuple[Path, Path]) -> None:
    """Content decides, not size and time."""
    file, runs = done
    train = file.parent / "train.csv"
    times = train.stat()
    data = bytearray(train.read_bytes())
    at = data.index(b"red")
    data[at : at + 3] = b"rad"
    train.write_bytes(data)
    os.utime(train, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert states(chain(file, runs))["prepare"] == "ran"


@pytest.mark.parametrize(
    "path",
    ["prepare/encoder.onnx", "train/weights.safetensors", "evaluate/metrics.json", "export/model.onnx", "prepare/encoded/train/target.npy"],
)
@pytest.mark.parametrize("harm", ["delete", "edit"])
def test_missing_or_edited_output_is_noticed_and_made_again(done: tuple[Path, Path], path: str, harm: str) -> None:
    """verify names the artifact; the next run makes it again, byte for byte."""
    file, runs = done
    victim = runs / "small" / path
    whole = victim.read_bytes()
    if harm == "delete":
        victim.unlink()
    else:
        victim.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(IntegrityError) as fault:
        verify(runs / "small")
    assert path.split("/")[1] in str(fault.value)
    assert states(chain(file, runs))[path.split("/")[0]] == "ran"
    assert victim.read_bytes() == whole
    verify(runs / "small")


def test_later_stage_refuses_an_edited_parent(done: tuple[Path, Path]) -> None:
    """evaluate refuses weights that are not the recorded ones, with exit code 7."""
    file, runs = done
    weights = runs / "small/train/weights.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    with pytest.raises(IntegrityError, match=r"weights\.safetensors has changed"):
        run_stages(load_pipeline(file), runs, ["evaluate"], Options(force=True))


def test_later_stage_is_not_ready(tmp_path: Path) -> None:
    """A stage whose parent has not run, or ran with other settings, says so (exit code 4)."""
    file = small(tmp_path)
    with pytest.raises(NotReadyError, match="prepare did not finish"):
        run_stages(load_pipeline(file), tmp_path / "runs", ["train"], Options())
    chain(file, tmp_path / "runs", until="prepare")
    with pytest.raises(NotReadyError, match=r"seed 3 -> 5"):
        run_stages(load_pipeline(file, ["seed=5"]), tmp_path / "runs", ["train"], Options())
    with pytest.raises(NotReadyError, match="train did not finish"):
        run_stages(load_pipeline(file), tmp_path / "runs", ["evaluate"], Options())


def test_user_code_enters_the_id(tmp_path: Path) -> None:
    """A changed line in the user's module, or in one that it imports, trains again."""
    (tmp_path / "widths.py").write_text("WIDTH = 4\n")
    (tmp_path / "net.py").write_text(
        "import torch\nfrom torch import nn\nfrom widths import WIDTH\n\n\n"
        "class Net(nn.Module):\n"
        "    def __init__(self, tensors, outputs, bias=True):\n"
        "        super().__init__()\n"
        "        self.hidden = nn.Linear(len(tensors.numeric), WIDTH)\n"
        "        self.out = nn.Linear(WIDTH, outputs, bias=bias)\n\n"
        "    def forward(self, numeric=None, plain=None, category=None):\n"
        "        return self.out(torch.tanh(self.hidden(numeric)))\n"
    )
    file = small(tmp_path, train__model={"kind": "python", "object": "net.py:Net", "options": {"bias": False}})
    first = chain(file, tmp_path / "runs")
    assert states(first) == dict.fromkeys(STAGES, "ran")
    assert states(chain(file, tmp_path / "runs")) == ALL_FRESH
    (tmp_path / "widths.py").write_text("WIDTH = 5\n")
    again = chain(file, tmp_path / "runs")
    assert states(again) == {"prepare": "fresh", "train": "ran", "evaluate": "ran", "export": "ran"}
    assert again["train"].reason == "code widths.py changed"
    assert again["train"].manifest.results["parameters"] != first["train"].manifest.results["parameters"]


def test_failed_gate_writes_its_evidence_and_stops_the_chain(tmp_path: Path) -> None:
    """A gate that fails: manifest with the verdict, exit code 6, no export; the pipeline may allow it, and that is recorded."""
    file = small(tmp_path, evaluate__gates=[{"metric": "accuracy", "at_least": 1.1}])
    with pytest.raises(GateError, match=r"accuracy at_least 1\.1"):
        chain(file, tmp_path / "runs")
    assert not (tmp_path / "runs/small/export").exists()
    with pytest.raises(GateError):
        chain(file, tmp_path / "runs")
    with pytest.raises(GateError, match="export refuses"):
        run_stages(load_pipeline(file), tmp_path / "runs", ["export"], Options())
    allowed = chain(file, tmp_path / "runs", overrides=["export.allow_failed_gate=true"])
    assert allowed["evaluate"].manifest.verdict == "gate_failed"
    assert allowed["export"].manifest.results["gate"] == "gate_failed"


def test_crash_inside_a_stage_leaves_the_old_result(done: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception in the middle of prepare leaves no half-done folder and the old result whole."""
    from mlpipe.stages import prepare

    file, runs = done
    before = manifests_of(runs / "small")

    def crash(*_: object) -> None:
        raise RuntimeError("in the middle")

    monkeypatch.setattr(prepare._Preparation, "_fit", crash)
    with pytest.raises(RuntimeError, match="in the middle"):
        chain(file, runs, overrides=["seed=9"])
    assert manifests_of(runs / "small") == before
    assert not list((runs / "small").glob(".*.tmp"))
    verify(runs / "small")


def test_moved_tree_still_works(tmp_path: Path) -> None:
    """Prepared and trained in one folder, moved, evaluated and exported from elsewhere; nothing names the old place (P04)."""
    import socket

    one = tmp_path / "A" / "one dir"
    file = small(one)
    chain(file, one / "runs", until="train")
    shutil.move(one, tmp_path / "A" / "two")
    two = tmp_path / "A" / "two"
    outcome = chain(two / "small.yaml", two / "runs")
    assert states(outcome) == {"prepare": "fresh", "train": "fresh", "evaluate": "ran", "export": "ran"}
    for path in (two / "runs").rglob("*"):
        if path.is_file() and path.name != "run.json":
            data = path.read_bytes()
            assert b"one dir" not in data, path
            assert str(tmp_path).encode() not in data, path
            assert socket.gethostname().encode() not in data, path


def test_sources_may_be_gone_when_later_stages_run(done: tuple[Path, Path]) -> None:
    """A machine without the raw data can evaluate and export what prepare left."""
    file, runs = done
    (file.parent / "train.csv").unlink()
    outcomes = run_stages(load_pipeline(file), runs, ["evaluate"], Options())
    assert outcomes[0].state == "fresh"


def test_two_clean_runs_are_byte_equal(tmp_path: Path) -> None:
    """Two runs in different folders in one process: equal manifests, equal model.onnx."""
    for name in ("here", "there/deeper"):
        chain(small(tmp_path / name), tmp_path / name / "runs")
    here, there = tmp_path / "here/runs/small", tmp_path / "there/deeper/runs/small"
    assert manifests_of(here) == manifests_of(there)
    assert (here / "export/model.onnx").read_bytes() == (there / "export/model.onnx").read_bytes()


def test_test_rows_take_no_part_in_fitting(tmp_path: Path) -> None:
    """Any change to test rows leaves everything fitted alone: schema and encoder are byte-equal (E04)."""
    file = small(tmp_path, prepare__split={"kind": "order", "valid": 0.1, "test": 0.2})
    first = chain(file, tmp_path / "runs", until="prepare")["prepare"].manifest
    lines = (tmp_path / "train.csv").read_text().splitlines()
    lines[-20:] = [f"1000000,999999,purple,{'yes' if i % 2 else 'no'}" for i in range(20)]
    (tmp_path / "train.csv").write_text("\n".join(lines) + "\n")
    second = chain(file, tmp_path / "runs", until="prepare")["prepare"].manifest
    for role in ("schema", "encoder", "encoded-train", "encoded-valid", "profile"):
        assert first.output(role) == second.output(role)
    assert second.results["unseen"]["test"]["colour"] == {"rows": 20, "values": {"purple": 20}}


def test_unknown_pipeline_name_is_its_own_run(tmp_path: Path) -> None:
    """Two names in one runs folder do not meet."""
    small(tmp_path)
    for name in ("a", "b"):
        write_pipeline(tmp_path / f"{name}.yaml", small_settings(name=name))
        chain(tmp_path / f"{name}.yaml", tmp_path / "runs", until="prepare")
    assert {p.name for p in (tmp_path / "runs").iterdir()} == {"a", "b"}
    first, second = (manifests_of(tmp_path / "runs" / name) for name in ("a", "b"))
    assert first == second
