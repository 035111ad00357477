"""Source `documents`, with Docling itself: cases D01 to D05, growing folders, labels, chunks, tables."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from pyarrow import parquet as pq
from pydantic import ValidationError

from mlpipe.base import read_json
from mlpipe.documents import pool
from mlpipe.errors import DataError, MachineError
from mlpipe.sources.documents import Documents
from mlpipe.stages.verify import verify
from tests.documents.test_pool import STUB
from tests.helpers import chain, clean_failure, mlpipe, write_pipeline

FAILING = {
    "dangling_image.docx": "damaged",
    "empty.docx": "empty",
    "encrypted.pdf": "password",
    "login_page.pdf": "not what its name says",
    "plain_text.docx": "not what its name says",
    "truncated.docx": "damaged",
    "truncated.pdf": "damaged",
}


def settings(path: str, **source) -> dict:
    return {
        "name": "papers",
        "task": {"kind": "regression", "target": "words"},
        "prepare": {
            "source": {"kind": "documents", "path": path, **source},
            "split": {"kind": "random", "valid": 0, "test": 0.4, "key": ["path"]},
            "features": [{"kind": "text", "columns": ["text"], "min_count": 1}],
            "keys": ["path"],
        },
        "train": {"model": {"kind": "text_bag", "width": 2}, "epochs": 1},
    }


def rows(run: Path) -> dict[str, dict]:
    """The prepared rows of every split, by path."""
    found = {}
    for name in ("train", "valid", "test"):
        for row in pq.read_table(run / f"prepare/{name}.parquet").to_pylist():
            assert row["path"] not in found
            found[row["path"]] = row
    return found


@pytest.fixture(scope="module")
def mixed(tmp_path_factory, cases) -> Path:
    """D01, D02 and D03 in one folder, prepared once with failures allowed."""
    folder = tmp_path_factory.mktemp("mixed")
    for case in ("D01", "D02", "D03"):
        shutil.copytree(cases / case, folder / "in" / case)
    write_pipeline(folder / "p.yaml", settings("in", on_error="skip", workers=1))
    told = mlpipe("prepare", "p.yaml", cwd=folder, env={"HF_HUB_OFFLINE": "1", "HOME": str(folder / "home")})
    assert told.rc == 0, told.text
    (folder / "told.txt").write_text(told.err, encoding="utf-8")
    return folder


def test_failed_documents_end_prepare_and_each_is_named_with_one_reason(tmp_path, cases, mixed):
    """Case D01: every file is tried, the summary lists each failed one."""
    shutil.copytree(cases / "D01", tmp_path / "D01")
    shutil.copytree(mixed / "runs", tmp_path / "runs")  # what is known by content is known of copies, too
    write_pipeline(tmp_path / "p.yaml", settings("D01"))
    told = mlpipe("prepare", "p.yaml", cwd=tmp_path)
    clean_failure(told, "7 of 10 documents failed", *(f"{name}: {reason}" for name, reason in FAILING.items()))
    assert told.rc == 3
    assert "10 known from before, 0 to convert" in told.err


def test_allowed_failures_stand_in_the_manifest(mixed):
    """And on screen; the good ones are rows, a row of the manifest's inputs for every file."""
    manifest = read_json(mixed / "runs/papers/prepare/manifest.json")
    account = manifest["results"]["documents"]
    assert {entry["path"]: entry["reason"] for entry in account["not_ok"]} == {f"D01/{name}": why for name, why in FAILING.items()}
    assert (account["read"], account["ok"], account["failed"]) == (17, 10, 7)
    told = (mixed / "told.txt").read_text(encoding="utf-8")
    for name, reason in FAILING.items():
        assert f"D01/{name}: left out: {reason}" in told
    inputs = {entry["path"] for entry in manifest["identity"]["inputs"]}
    assert {"in/D03/a/report.md", "in/D03/b/report.md", "in/D01/encrypted.pdf"} <= inputs
    assert manifest["identity"]["config"]["readers"]["source"]["docling"]
    found = rows(mixed / "runs/papers")
    assert "40 EUR" in found["D01/good.docx"]["text"]
    assert "Invoice 18" in found["D01/good.pdf"]["text"]


def test_pages_without_a_charset_are_read_as_browsers_do(mixed):
    """Case D02: the guess is recorded by file."""
    found = {name.rpartition("/")[2]: row["text"] for name, row in rows(mixed / "runs/papers").items()}
    assert "café «près»" in found["no_charset_cp1252.html"]
    assert "café «près»" in found["no_charset_utf8.html"]
    assert "請求書 四十円" in found["meta_shift_jis.html"]
    assert "Crème brûlée" in found["utf16_bom.html"]
    account = read_json(mixed / "runs/papers/prepare/manifest.json")["results"]["documents"]
    assert account["guessed_encoding"] == {"D02/no_charset_cp1252.html": "windows-1252"}


def test_documents_of_one_name_stay_apart(mixed):
    """Case D03."""
    found = rows(mixed / "runs/papers")
    assert {name: found[name]["text"].split()[-1] for name in found if name.startswith("D03")} == {
        "D03/a/report.html": "gamma",
        "D03/a/report.md": "alpha",
        "D03/b/report.md": "beta",
    }


def test_nothing_is_written_outside_the_run_folder(mixed):
    assert not (mixed / "home").exists()
    assert sorted(path.name for path in mixed.iterdir()) == ["in", "p.yaml", "runs", "told.txt"]


def test_a_second_run_does_nothing_and_a_file_more_converts_one(tmp_path, mixed):
    shutil.copytree(mixed, tmp_path / "m")
    told = mlpipe("prepare", "p.yaml", cwd=tmp_path / "m")
    assert (told.rc, "fresh" in told.err, "documents:" in told.err) == (0, True, False)
    (tmp_path / "m/in/new.md").write_text("# New\n\none more", encoding="utf-8")
    told = mlpipe("prepare", "p.yaml", cwd=tmp_path / "m")
    assert "18 found, 17 known from before, 1 to convert" in told.err, told.err
    assert rows(tmp_path / "m/runs/papers")["new.md"]["text"].endswith("one more")
    assert verify(tmp_path / "m/runs/papers/prepare", tmp_path / "m").lines[-1] == "sources: 18 files hold"


def test_status_and_check_never_convert(mixed):
    for command in ("status", "check"):
        told = mlpipe(command, "p.yaml", cwd=mixed, env={"PYTHONPROFILEIMPORTTIME": "1"})
        assert told.rc in (0, 1), told.text
        loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in told.err.splitlines() if "import time" in line}
        assert "pydantic" in loaded
        assert not {"docling", "docling_core", "torch", "rapidocr", "PIL"} & loaded


def test_chunks_and_tables_are_rows_of_their_own(tmp_path, mixed):
    """With the document that they came from; a converter with other settings converts anew, tables are known already."""
    (tmp_path / "in").mkdir()
    text = "# Prices\n\nAll of them.\n\n| item | price |\n|---|---|\n| tea | 2 |\n| milk | 1 |\n\n## Terms\n\n" + "pay soon " * 40
    (tmp_path / "in/a.md").write_text(text, encoding="utf-8")
    for unit, columns in (("table", ["path", "table", "row", "item", "price"]), ("chunk", ["path", "chunk", "headings", "text"])):
        source = Documents(path="in", unit=unit, workers=1, chunk_words=20)
        here = source.local(tmp_path, tmp_path / "runs/.snapshots")
        found = [row for chunk in here.chunks(tmp_path, columns) for row in chunk.rows.to_pylist()]
        if unit == "table":
            assert [tuple(row.values()) for row in found] == [("a.md", 1, 1, "tea", "2"), ("a.md", 1, 2, "milk", "1")]
        else:
            assert {row["headings"] for row in found} == {"Prices", "Prices > Terms"}
            assert [row["chunk"] for row in found] == list(range(1, len(found) + 1))
            assert max(len(row["text"].split()) for row in found) <= 25


@pytest.fixture
def stub(monkeypatch):
    monkeypatch.setattr(pool, "WORKER", STUB)


def folder_of(tmp_path, texts: dict[str, str]) -> Path:
    for name, text in texts.items():
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def read(tmp_path, columns, **options):
    source = Documents(path="in", **options).local(tmp_path, tmp_path / "runs/.snapshots")
    found = [tuple(row.values()) for chunk in source.chunks(tmp_path, columns) for row in chunk.rows.to_pylist()]
    return found, source.notes


def test_labels_from_a_file_by_path(tmp_path, stub):
    """Relative to the documents or to the file; what does not match is told on both sides."""
    folder_of(tmp_path, {"x/a.md": "a", "x/b.md": "b", "c.md": "c", "labels.csv": "file,kind\nx/a.md,bill\n./c.md,note\ngone.md,note\n"})
    found, notes = read(tmp_path, ["path", "kind"], labels={"path": "in/labels.csv"})
    assert found == [("c.md", "note"), ("x/a.md", "bill"), ("x/b.md", None)]
    assert "1 rows of in/labels.csv name no document that is read: gone.md" in notes
    assert "1 documents have no row in in/labels.csv: x/b.md" in notes
    (tmp_path / "labels.csv").write_text("doc;kind\nin/x/a.md;bill\nin/c.md;note\n", encoding="utf-8")
    (tmp_path / "in/labels.csv").unlink()
    found, _ = read(tmp_path, ["path", "kind"], labels={"path": "labels.csv", "file": "doc", "delimiter": ";"})
    assert found[:2] == [("c.md", "note"), ("x/a.md", "bill")]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("file,kind\nx/a.md,bill\nx/a.md,note\n", "names x/a.md twice"),
        ("name,kind\nx/a.md,bill\n", "has no column 'file' with the paths"),
        ("file,kind\nelse.md,bill\n", "no row of labels.csv names a document"),
        ("file,text\nx/a.md,bill\n", "the labels have a column 'text'"),
    ],
)
def test_labels_that_do_not_fit_are_refused(tmp_path, stub, text, told):
    folder_of(tmp_path, {"x/a.md": "a"})
    (tmp_path / "labels.csv").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=told):
        read(tmp_path, ["path", "kind"], labels={"path": "labels.csv"})


def test_folders_globs_and_lists(tmp_path, stub):
    folder_of(tmp_path, {"x/a.md": "a", "x/y/b.md": "b", ".hidden/c.md": "c", "x/.d.md": "d", "e.txt": "e"})
    assert [row[0] for row in read(tmp_path, ["path", "folder"])[0]] == ["e.txt", "x/a.md", "x/y/b.md"]
    assert [row[1] for row in read(tmp_path, ["path", "folder"])[0]] == [None, "x", "y"]

    def listing(path):
        return [name for name, _ in Documents(path=path).listing(tmp_path)]

    assert listing("in/**/*.md") == ["in/x/a.md", "in/x/y/b.md"]
    assert listing(("in/e.txt", "in/x")) == ["in/e.txt", "in/x/a.md", "in/x/y/b.md"]
    for path, told in (("gone", "there is no file or folder gone"), ("in/*.pdf", "no file matches"), ("in/.hidden2", "there is no file")):
        with pytest.raises(DataError, match=told):
            listing(path)


def test_a_stuck_document_ends_by_itself_and_is_named(tmp_path, stub):
    """Case D04 from the pipeline file: incomplete, silent and stuck documents."""
    folder_of(tmp_path, {"partial_doc_a.pdf": "1", "silent.pdf": "2", "stuck.pdf": "3", "fine.md": "x"})
    with pytest.raises(DataError) as told:
        read(tmp_path, ["text"], time_limit=2)
    assert [fault.split(":")[0] for fault in told.value.faults] == ["partial_doc_a.pdf", "stuck.pdf"]
    found, notes = read(tmp_path, ["path", "text"], time_limit=2, on_error="skip")
    assert found == [("fine.md", "x"), ("silent.pdf", None)]
    assert "1 documents hold no text: silent.pdf" in notes


def test_two_hundred_files_of_which_twenty_are_damaged(tmp_path, stub, monkeypatch):
    """The whole kind of D01, with Docling: the folder finishes, 180 rows, 20 named failures."""
    monkeypatch.undo()
    texts = {f"{i % 7}/note {i:03}.md": f"# Note {i}\n\nsome words" for i in range(180)}
    folder_of(tmp_path, texts)
    for i in range(20):
        name = ("a.pdf", "b.docx", "c.xlsx", "d.html", "e.pptx")[i % 5]
        data = (b"", b"PK\x03\x04 cut", b"%PDF-1.7 cut off", b"\x00\x01\x02" * 40)[i % 4]
        (tmp_path / f"in/{i} {name}").write_bytes(data)
    found, notes = read(tmp_path, ["path", "text"], on_error="skip")
    assert len(found) == 180
    assert {text.split("\n")[0] for _, text in found} == {f"Note {i}" for i in range(180)}
    assert sum("left out" in note for note in notes) == 20
    with pytest.raises(DataError, match=r"20 of 200 documents failed, more than max_failures: 0\.05 allows"):
        read(tmp_path, ["path"], on_error="skip", max_failures=0.05)


def test_missing_models_are_named_at_once(tmp_path, cases):
    """Case D05: the model, the folder and the command that fetches it, without a look at the network."""
    folder_of(tmp_path, {"a.md": "x"})
    shutil.copy(cases / "D01/good.pdf", tmp_path / "in")
    (tmp_path / "models").mkdir()
    write_pipeline(tmp_path / "p.yaml", settings("in", pdf="layout", artifacts_path="models"))
    told = mlpipe("prepare", "p.yaml", cwd=tmp_path, timeout=30)
    clean_failure(told, "good.pdf needs Docling's models", "missing model layout", "models/docling-project--docling-layout-heron",
                  "docling-tools models download -o models")  # fmt: skip
    (tmp_path / "in/good.pdf").unlink()  # the other formats need none
    source = Documents(path="in", pdf="layout", artifacts_path="models", workers=1).local(tmp_path, tmp_path / "runs/.snapshots")
    assert source.files(tmp_path)


def test_the_models_are_those_that_docling_looks_for():
    from docling.datamodel.layout_model_specs import DOCLING_LAYOUT_HERON
    from docling.models.stages.table_structure.table_structure_model import TableStructureModel

    from mlpipe.documents.models import MODELS

    assert set(MODELS) == {DOCLING_LAYOUT_HERON.repo_id.replace("/", "--"), TableStructureModel._model_repo_folder}


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    from mlpipe.documents import cache

    monkeypatch.setattr(cache, "PACKAGES", ("docling", "no-such-package"))
    with pytest.raises(MachineError, match="needs the package no-such-package"):
        Documents(path="in").readers()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"pdf": "layout"}, "pdf: layout needs artifacts_path"),
        ({"max_failures": 3}, "max_failures belongs to on_error: skip"),
        ({"passwords": {"*.pdf": "1234"}}, "the password of '\\*.pdf' stands in the file"),
        ({"unit": "page"}, "document"),
    ],
)
def test_settings_that_contradict_are_refused(options, told):
    with pytest.raises(ValidationError, match=told):
        Documents(path="in", **options)


def test_limits_do_not_convert_again_and_workers_are_no_part_of_the_id(tmp_path, stub):
    """What decides which documents count runs prepare again, from what is known."""
    folder_of(tmp_path, {f"{i}.md": "some " + "words " * i for i in range(12)})
    file = write_pipeline(tmp_path / "p.yaml", settings("in"))
    chain(file, tmp_path / "runs", until="prepare")
    same = chain(file, tmp_path / "runs", until="prepare", overrides=["prepare.source.workers=1"])
    assert same["prepare"].state == "fresh"
    again = chain(file, tmp_path / "runs", until="prepare", overrides=["prepare.source.time_limit=50"])
    assert again["prepare"].state == "ran"
    assert len(list((tmp_path / "runs/papers/.documents").iterdir())) == 12


def test_new_documents_are_scored_by_the_exported_model(tmp_path, stub, monkeypatch):
    """A folder, a single document, or a table with the text; the path stands beside each answer."""
    folder_of(tmp_path, {f"{'ab'[i % 2]}/{i}.md": f"{'red' if i % 2 else 'blue'} words {i}" for i in range(30)})
    changed = settings("in")
    changed["task"] = {"kind": "classification", "target": "folder"}
    changed["train"] |= {"epochs": 30, "optimiser": {"kind": "adamw", "lr": 0.05}}
    chain(write_pipeline(tmp_path / "p.yaml", changed), tmp_path / "runs")
    monkeypatch.undo()
    (tmp_path / "new").mkdir()
    (tmp_path / "new/x.md").write_text("blue words", encoding="utf-8")
    (tmp_path / "new/y.html").write_text("<p>red words</p>", encoding="utf-8")
    (tmp_path / "new/z.pdf").write_text("no pdf", encoding="utf-8")
    export = tmp_path / "runs/papers/export"
    told = mlpipe("predict", export, "new", "-o", "out.jsonl", cwd=tmp_path)
    clean_failure(told, "1 of 3 documents failed", "z.pdf: not what its name says")
    assert not (tmp_path / "out.jsonl").exists()
    told = mlpipe("predict", export, "new", "-o", "out.jsonl", "--reader", "on_error=skip", cwd=tmp_path)
    assert told.rc == 0, told.text
    assert "z.pdf: left out" in told.err
    found = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(row["path"], row["prediction"]) for row in found] == [("x.md", "a"), ("y.html", "b")]
    (tmp_path / "rows.csv").write_text("text\nred words\n", encoding="utf-8")
    told = mlpipe("predict", export, "rows.csv", "-o", "out.csv", cwd=tmp_path)
    assert (tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()[1].startswith('"b",'), told.text
