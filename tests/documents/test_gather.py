"""Many documents: every one is tried, failures are counted, what is known is not converted again."""

from __future__ import annotations

import pytest

from mlpipe.documents import pool
from mlpipe.documents.cache import Cache, forget_others
from mlpipe.documents.gather import Policy, gather
from mlpipe.documents.pool import Document, Limits
from mlpipe.documents.result import Converted, How
from mlpipe.errors import DataError, MachineError
from tests.documents.test_pool import STUB

LIMITS = Limits(seconds=2.0, megabytes=600)
STRICT, PLAIN = Policy(), How()


@pytest.fixture
def gathered(tmp_path, monkeypatch):
    monkeypatch.setattr(pool, "WORKER", STUB)

    def run(texts: dict[str, str], policy: Policy = STRICT, how: How = PLAIN, passwords: dict[str, str] | None = None):
        documents = []
        for name, text in texts.items():
            path = tmp_path / "in" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            documents.append(Document(name, path, (passwords or {}).get(name, "")))
        return gather(documents, how, Cache(tmp_path / "known", how), 1, LIMITS, policy)

    return run


def test_a_failure_ends_the_work_after_every_document_was_tried(gathered, tmp_path):
    """Each failed one is named with its reason; what went well is not lost."""
    with pytest.raises(DataError, match="2 of 4 documents failed") as told:
        gathered({"a.md": "a", "partial_doc_a.pdf": "x", "b.md": "b", "stuck.md": "s"})
    assert told.value.faults == [
        "partial_doc_a.pdf: pages missing (2 of 5 pages: 4, 5)",
        "stuck.md: time limit (it took more than 2 s)",
    ]
    assert "on_error: skip" in told.value.hint and "allow_partial" in told.value.hint
    assert len(list((tmp_path / "known").iterdir())) == 3  # all but the one that another run may fare better with


def test_failures_that_are_allowed_are_left_out_counted_and_named(gathered):
    found = gathered({"a.md": "a", "partial.pdf": "x", "crash.md": "", "silent.pdf": "y"}, Policy(skip=True))
    account = found.account()
    assert [document.name for document, _ in found.good] == ["a.md", "silent.pdf"]
    assert {name: account[name] for name in ("read", "ok", "partial", "failed", "left_out")} == {
        "read": 4, "ok": 2, "partial": 1, "failed": 1, "left_out": 2,
    }  # fmt: skip
    assert [(entry["path"], entry["status"], entry["reason"]) for entry in account["not_ok"]] == [
        ("crash.md", "failed", "unreadable"),
        ("partial.pdf", "partial", "pages missing"),
    ]
    assert account["not_ok"][1]["lost_pages"] == [4, 5]
    assert account["without_text"] == ["silent.pdf"]
    notes = "\n".join(found.notes())
    assert "partial.pdf: left out: pages missing (2 of 5 pages: 4, 5)" in notes
    assert "1 documents hold no text: silent.pdf" in notes


def test_incomplete_documents_count_where_that_is_allowed(gathered):
    found = gathered({"partial.pdf": "x"}, Policy(partial=True))
    assert [document.name for document, _ in found.good] == ["partial.pdf"]
    assert found.notes() == ["partial.pdf: pages missing (2 of 5 pages: 4, 5)"]


@pytest.mark.parametrize(("most", "passes"), [(2, True), (1, False), (0.5, True), (0.2, False), (0, False), (None, True)])
def test_at_most_so_many_may_fail(gathered, most, passes):
    texts = {"a.md": "a", "b.md": "b", "partial.pdf": "x", "partial2.pdf": "y"}
    if passes:
        assert len(gathered(texts, Policy(skip=True, most=most)).bad) == 2
    else:
        with pytest.raises(DataError, match=f"2 of 4 documents failed, more than max_failures: {most} allows"):
            gathered(texts, Policy(skip=True, most=most))


def test_only_new_files_are_converted_and_results_are_those_of_before(gathered):
    texts = {"a.md": "pid", "b/a.md": "other pid"}
    first = gathered(texts)
    again = gathered(texts)
    assert (first.fresh, again.fresh) == (2, 0)
    assert [found.plain for _, found in again.whole()] == [found.plain for _, found in first.whole()]
    grown = gathered({**texts, "c.md": "third pid"})
    assert grown.fresh == 1
    assert len({found.plain for _, found in grown.whole()}) == 3
    assert gathered({**texts, "copy of a.md": "pid"}).fresh == 0  # the same bytes
    assert gathered({**texts, "a.md": "changed pid"}).fresh == 1
    assert gathered(texts, how=How(ocr="off")).fresh == 2  # other settings, other results
    assert gathered({**texts, "b/a.md": "changed pid"}, how=How(ocr="off")).fresh == 1
    assert gathered(texts).account() == first.account()


def test_what_is_known_of_files_that_are_gone_is_removed(gathered, tmp_path):
    gathered({"a.md": "a", "b.md": "b"})
    forget_others(tmp_path / "known", gathered({"a.md": "a"}).digests.values())
    assert len(list((tmp_path / "known").iterdir())) == 1


def test_what_was_read_stays_on_disk_until_it_is_asked_for(gathered, tmp_path):
    found = gathered({"a.md": "many words", "silent.pdf": "x"})
    assert [one.plain for _, one in found.good] == ["m", ""]
    assert [one.plain for _, one in found.whole()] == ["many words", ""]
    assert found.account()["without_text"] == ["silent.pdf"]
    for path in (tmp_path / "known").iterdir():
        path.unlink()
    with pytest.raises(MachineError, match=r"what was read of a\.md is gone"):
        list(found.whole())


def test_a_damaged_entry_is_as_good_as_none(gathered, tmp_path):
    gathered({"a.md": "a"})
    (entry,) = (tmp_path / "known").iterdir()
    entry.write_bytes(entry.read_bytes()[:20])
    assert gathered({"a.md": "a"}).fresh == 1


def test_what_a_password_opened_is_not_kept(gathered, tmp_path):
    found = gathered({"locked.pdf": "x"}, passwords={"locked.pdf": "1234"})
    assert found.good[0][1].plain == "opened by 4 signs"
    assert not list((tmp_path / "known").glob("*"))


def test_a_result_survives_the_pipe_and_the_cache(tmp_path):
    found = Converted(plain="é \ud7ff", pages=2, blank=(1,), scanned=(2,), title="t", words=1, encoding="utf-8", guessed=True)
    cache = Cache(tmp_path, How())
    cache.put("a.pdf", "0" * 64, found)
    assert cache.get("a.pdf", "0" * 64) == found
    assert cache.get("a.html", "0" * 64) is None  # the ending decides how it is read
