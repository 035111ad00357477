"""run.py: a stage's folder is whole or absent, one process works at a time, and staleness has a reason."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mlpipe import manifest as manifests
from mlpipe.errors import LockedError, MachineError
from mlpipe.manifest import NAME, Artifact, Identity, Input, compose
from mlpipe.run import RunFolder, broken_outputs, differences, judge, volatile_facts

PLAIN = Identity("prepare", 1, {"seed": 7, "split": {"valid": 0.1}}, [Input("source", {"sha256": "aa"}, "data.csv")])


def finish(run: RunFolder, identity: Identity = PLAIN, content: bytes = b"new", parents=(), stage: str = "prepare"):
    with run.locked(), run.workspace(stage) as work:
        (work / "sub").mkdir()
        (work / "sub" / "data.bin").write_bytes(content)
        manifest = compose(identity, parents, [Artifact("sub/data.bin", "data")], work, {}, "ok")
        return run.commit(stage, work, manifest, {"host": "here"})


def entries(run: RunFolder) -> list[str]:
    return sorted(p.name for p in run.root.iterdir() if p.name not in (".lock", ".lock.json"))


@pytest.fixture
def run(tmp_path):
    return RunFolder(tmp_path / "runs" / "name")


def test_a_committed_stage_is_fresh_and_nothing_else_lies_around(run):
    manifest = finish(run)
    assert judge(run.stage("prepare"), PLAIN, []).kind == "fresh"
    assert entries(run) == ["prepare"]
    assert (manifest.folder / "run.json").is_file()
    assert not (run.root / ".lock.json").exists()
    assert broken_outputs(manifest) == []


def test_a_stage_that_has_not_run_is_stale(run):
    state = judge(run.stage("prepare"), PLAIN, [])
    assert (state.kind, state.reason, state.manifest) == ("stale", "has not run", None)


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (Identity("prepare", 1, {"seed": 8, "split": {"valid": 0.1}}, PLAIN.inputs), "seed 7 -> 8"),
        (Identity("prepare", 1, {"seed": 7, "split": {"valid": 0.2}}, PLAIN.inputs), "split.valid 0.1 -> 0.2"),
        (Identity("prepare", 1, {"seed": 7, "split": {"valid": 0.1}, "x": 1}, PLAIN.inputs), "x (none) -> 1"),
        (Identity("prepare", 1, {"seed": 7, "split": {}}, PLAIN.inputs), "split (none) -> {}; split.valid 0.1 -> (none)"),
        (Identity("prepare", 2, PLAIN.config, PLAIN.inputs), "stage version 1 -> 2"),
        (Identity("prepare", 1, PLAIN.config, [Input("source", {"sha256": "bb"}, "data.csv")]), "source data.csv changed"),
        (
            Identity("prepare", 1, PLAIN.config, [Input("source", {"sha256": "aa"}, "b.csv")]),
            "source b.csv is new; source data.csv is gone",
        ),
    ],
)
def test_a_stale_stage_says_what_changed(run, other, reason):
    finish(run)
    state = judge(run.stage("prepare"), other, [])
    assert (state.kind, state.reason) == ("stale", reason)
    assert judge(run.stage("prepare"), PLAIN, []).kind == "fresh"


def test_differences_name_list_entries_and_are_empty_for_equal_identities():
    one, two = ({"config": {"model": {"hidden": hidden}}, "inputs": []} for hidden in ([256, 256], [256, 128]))
    assert differences(one, two) == ["model.hidden.1 256 -> 128"]
    assert differences(one, one) == []


def test_a_changed_order_of_inputs_is_stale_with_some_reason(run):
    two = [Input("a", {"sha256": "1"}), Input("b", {"sha256": "2"})]
    finish(run, Identity("prepare", 1, {}, two))
    state = judge(run.stage("prepare"), Identity("prepare", 1, {}, two[::-1]), [])
    assert state.kind == "stale"
    assert state.reason


def test_edited_missing_and_flipped_results_are_stale(run):
    folder = finish(run).folder
    data = folder / "sub" / "data.bin"
    data.write_bytes(b"nex")
    assert "sub/data.bin has changed" in judge(folder, PLAIN, []).reason
    data.unlink()
    assert judge(folder, PLAIN, []).reason == "sub/data.bin is missing"
    data.write_bytes(b"new")
    assert judge(folder, PLAIN, []).kind == "fresh"
    text = (folder / NAME).read_text()
    (folder / NAME).write_text(text.replace('"verdict": "ok"', '"verdict": "OK"'))
    assert "edited" in judge(folder, PLAIN, []).reason
    (folder / NAME).write_text("{")
    state = judge(folder, PLAIN, [])
    assert (state.kind, state.manifest) == ("stale", None)


def test_only_the_time_of_a_file_changes_nothing(run):
    folder = finish(run).folder
    os.utime(folder / "sub" / "data.bin", (1, 1))
    assert judge(folder, PLAIN, []).kind == "fresh"


def test_new_parents_with_the_same_content_move_a_stage_without_running_it(run):
    parent = finish(run)
    child_identity = Identity("train", 1, {}, [])
    child = finish(run, child_identity, parents=[parent], stage="train")
    assert judge(child.folder, child_identity, [parent]).kind == "fresh"
    other = finish(run, Identity("prepare", 1, {"seed": 9}, []))
    state = judge(child.folder, child_identity, [other])
    assert state.kind == "moved"
    run.renew_parents(state.manifest, [other])
    assert judge(child.folder, child_identity, [other]).kind == "fresh"


def half_way(work: Path) -> None:
    (work / "data.bin").write_bytes(b"half")
    raise RuntimeError("halfway")


def test_work_that_fails_leaves_the_old_result_and_no_trace(run):
    old = finish(run, content=b"old")
    with pytest.raises(RuntimeError, match="halfway"), run.locked(), run.workspace("prepare") as work:
        half_way(work)
    assert (old.folder / "sub" / "data.bin").read_bytes() == b"old"
    assert entries(run) == ["prepare"]


def test_a_full_disk_while_working_is_a_machine_error_that_leaves_the_old_result(run):
    finish(run, content=b"old")
    with pytest.raises(MachineError, match="no space left"), run.locked(), run.workspace("prepare"):
        raise OSError(28, "No space left on device")
    assert judge(run.stage("prepare"), PLAIN, []).kind == "fresh"


def test_the_new_result_replaces_the_old_one_whole(run):
    finish(run, content=b"old")
    (run.stage("prepare") / "stray.txt").write_text("x")
    folder = finish(run, content=b"new").folder
    assert (folder / "sub" / "data.bin").read_bytes() == b"new"
    assert not (folder / "stray.txt").exists()
    assert entries(run) == ["prepare"]


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from test_run import PLAIN, RunFolder, finish

renames, syncs, at = [], [], sys.argv[2]
rename, fsync = Path.rename, os.fsync

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def counted_rename(self, target):
    if at == f"before-rename-{len(renames)}":
        die()
    renames.append(1)
    found = rename(self, target)
    if at == f"after-rename-{len(renames) - 1}":
        die()
    return found

def counted_fsync(handle):
    if at == f"fsync-{len(syncs)}":
        die()
    syncs.append(1)
    return fsync(handle)

Path.rename, os.fsync = counted_rename, counted_fsync
finish(RunFolder(Path(sys.argv[1])), content=b"new")
"""


@pytest.mark.parametrize(
    ("at", "content"),
    [
        *((f"fsync-{i}", b"old") for i in range(7)),
        ("before-rename-0", b"old"),
        ("after-rename-0", b"old"),
        ("before-rename-1", b"old"),
        ("after-rename-1", b"new"),
    ],
)
def test_a_kill_at_any_moment_leaves_the_old_result_or_the_new_one(run, at, content):
    finish(run, content=b"old")
    command = [sys.executable, "-c", KILLED, str(run.root), at, str(Path(__file__).parent)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    with run.locked():  # a dead holder does not block, and the next holder puts things right
        assert (run.stage("prepare") / "sub" / "data.bin").read_bytes() == content
        assert judge(run.stage("prepare"), PLAIN, []).kind == "fresh"
        assert entries(run) == ["prepare"]


def test_a_first_result_that_was_killed_before_its_rename_is_absent(run):
    command = [sys.executable, "-c", KILLED, str(run.root), "before-rename-0", str(Path(__file__).parent)]
    assert subprocess.run(command, check=False, capture_output=True).returncode == -signal.SIGKILL
    assert any(name.endswith(".tmp") for name in entries(run))
    with run.locked():
        assert entries(run) == []


def test_leftovers_of_half_done_work_are_removed_by_the_next_holder(run):
    finish(run)
    (run.root / ".train.99999.tmp").mkdir()
    (run.root / ".train.99999.tmp" / "x").write_text("x")
    (run.root / ".note.1.tmp").write_text("x")
    (run.stage("prepare") / f".{NAME}.1.tmp").write_text("x")
    (run.root / ".checkpoints" / "0123").mkdir(parents=True)
    with run.locked():
        assert entries(run) == [".checkpoints", "prepare"]
    assert manifests.extra_files(manifests.load(run.stage("prepare"))) == []


HOLDER = """
import sys, time
from pathlib import Path
from mlpipe.run import RunFolder
with RunFolder(Path(sys.argv[1])).locked():
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(run):
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(run.root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_second_process_is_refused_and_told_who_holds_the_run(run, holder):
    with pytest.raises(LockedError, match=rf"'name' is locked by process {holder.pid} on .* started 20") as caught, run.locked():
        raise AssertionError("the lock was had twice")
    assert caught.value.exit_code == 75
    assert "--wait-lock" in caught.value.hint


def test_a_waiting_process_gets_the_lock_when_its_holder_ends(run, holder):
    holder.stdin.close()
    with run.locked(wait=60):
        assert (run.root / ".lock.json").exists()


def test_a_killed_holder_does_not_block(run, holder):
    holder.kill()
    holder.wait()
    assert (run.root / ".lock.json").exists()
    with run.locked():
        pass


def test_waiting_for_the_lock_ends_after_the_time_given(run, holder):
    start = time.monotonic()
    with pytest.raises(LockedError), run.locked(wait=0.2):
        raise AssertionError("the lock was had twice")
    assert time.monotonic() - start >= 0.2


def test_a_folder_that_cannot_be_written_is_a_machine_error(tmp_path):
    (tmp_path / "file").write_text("x")
    for root in (tmp_path / "file", tmp_path / "file" / "name"):
        with pytest.raises(MachineError, match="cannot write"), RunFolder(root).locked():
            raise AssertionError("locked a file")


def test_checkpoints_of_different_ids_lie_apart(run):
    assert run.checkpoints("sha256:" + "a" * 64) != run.checkpoints("sha256:" + "b" * 64)


def test_volatile_facts_name_packages_and_duration():
    facts = volatile_facts(time.time() - 5, ["mlpipe", "run"])
    assert facts["seconds"] >= 5
    assert facts["argv"] == ["mlpipe", "run"]
    assert "numpy" in facts["packages"]
