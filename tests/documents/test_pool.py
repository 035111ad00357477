"""Workers under limits: a document that hangs, eats memory or kills its process costs itself and nothing else (case D04)."""

from __future__ import annotations

import sys
import time

import pytest

from mlpipe.documents.pool import Document, Limits, convert_all
from mlpipe.documents.result import How
from mlpipe.errors import MachineError

STUB = (sys.executable, "-m", "tests.documents.stub_worker")
LIMITS = Limits(seconds=2.0, megabytes=600)


def converted(folder, texts: dict[str, str], workers: int = 1, limits: Limits = LIMITS, command=STUB):
    jobs = []
    for name, text in texts.items():
        path = folder / name
        path.write_text(text, encoding="utf-8")
        jobs.append(Document(name, path))
    return {jobs[number].name: found for number, found in convert_all(jobs, How(), workers, limits, command)}


def test_every_document_gives_a_result_and_the_others_go_on(tmp_path):
    names = ["a.md", "stuck.md", "b.md", "greedy.md", "c.md", "crash.md", "noisy.md", "partial.pdf", "silent.pdf"]
    begun = time.monotonic()
    found = converted(tmp_path, {name: name for name in names}, workers=2)
    assert set(found) == set(names)
    assert {name: (one.status, one.reason) for name, one in found.items()} == {
        "a.md": ("ok", ""),
        "b.md": ("ok", ""),
        "c.md": ("ok", ""),
        "noisy.md": ("ok", ""),
        "stuck.md": ("failed", "time limit"),
        "greedy.md": ("failed", "memory limit"),
        "crash.md": ("failed", "unreadable"),
        "partial.pdf": ("partial", "pages missing"),
        "silent.pdf": ("ok", ""),
    }
    assert found["stuck.md"].detail == "it took more than 2 s"
    assert "600 MB" in found["greedy.md"].detail
    assert found["silent.pdf"].silent
    assert time.monotonic() - begun < 60


def test_a_worker_is_started_once_and_used_again(tmp_path):
    found = converted(tmp_path, {f"{i}.md": "pid" for i in range(6)})
    assert len({one.plain for one in found.values()}) == 1
    found = converted(tmp_path, {**{f"{i}.md": "pid" for i in range(3)}, "crash.md": "", "x.md": "pid"})
    assert len({one.plain for one in found.values() if one.status == "ok"}) == 2


def test_a_worker_that_cannot_begin_is_no_fault_of_a_document(tmp_path):
    with pytest.raises(MachineError, match="ends before it begins: ModuleNotFoundError: No module named 'docling'"):
        converted(tmp_path, {"a.md": "a"}, command=(*STUB, "broken"))


def test_a_caller_who_stops_early_leaves_no_process(tmp_path):
    import psutil

    jobs = [Document(f"{name}.md", tmp_path / f"{name}.md") for name in ("a", "stuck")]
    for job in jobs:
        job.file.write_text("x")
    results = convert_all(jobs, How(), 2, Limits(seconds=600, megabytes=600), STUB)
    next(results)
    results.close()
    assert not [child for child in psutil.Process().children(recursive=True) if "stub_worker" in " ".join(child.cmdline())]
