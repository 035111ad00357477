"""Documents as rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyarrow import parquet as pq

from mlpipe.documents.pool import Document
from mlpipe.documents.result import Converted, Grid, Passage
from mlpipe.documents.rows import folder_of, names_of, write_rows
from mlpipe.errors import DataError

ONE = Converted(
    title="Invoice",
    plain="plain words",
    markdown="# plain words",
    words=2,
    pages=3,
    tables=(
        Grid(page=1, header=("item", "price"), rows=(("tea", "2"), ("milk", "1"))),
        Grid(page=3, header=("item", "tax"), rows=(("tea", "0.4"),)),
    ),
    passages=(Passage(text="plain", headings=("A", "B"), pages=(1, 2)), Passage(text="words")),
)
PAIRS = [(Document("in/a.pdf", Path("a")), ONE), (Document("b.md", Path("b")), Converted(pages=1))]


def rows(tmp_path, unit, markdown=False, labels=None):
    count = write_rows(lambda: PAIRS, unit, markdown, labels or {}, tmp_path / "x.parquet")
    found = pq.read_table(tmp_path / "x.parquet").to_pylist()
    assert len(found) == count
    return found


def test_a_row_a_document(tmp_path):
    one, two = rows(tmp_path, "document", labels={"kind": ["bill", None]})
    assert one == {
        "path": "in/a.pdf", "folder": "in", "title": "Invoice", "text": "plain words", "pages": 3, "words": 2, "tables": 2, "pictures": 0,
        "encoding": None, "kind": "bill",
    }  # fmt: skip
    assert (two["path"], two["folder"], two["text"], two["title"], two["kind"]) == ("b.md", None, None, None, None)
    assert rows(tmp_path, "document", markdown=True)[0]["text"] == "# plain words"


def test_a_row_a_chunk(tmp_path):
    one, two = rows(tmp_path, "chunk")
    assert (one["chunk"], one["headings"], one["text"], one["page"], one["last_page"]) == (1, "A > B", "plain", 1, 2)
    assert (two["chunk"], two["headings"], two["text"], two["page"]) == (2, None, "words", None)


def test_a_row_of_a_table_knows_its_document_and_page(tmp_path):
    found = rows(tmp_path, "table")
    assert [(row["path"], row["page"], row["table"], row["row"], row["item"], row["price"], row["tax"]) for row in found] == [
        ("in/a.pdf", 1, 1, 1, "tea", "2", None),
        ("in/a.pdf", 1, 1, 2, "milk", "1", None),
        ("in/a.pdf", 3, 2, 1, "tea", None, "0.4"),
    ]


def test_names_that_are_taken_are_refused(tmp_path):
    with pytest.raises(DataError, match="the labels have a column 'text'"):
        rows(tmp_path, "document", labels={"text": ["a", "b"]})
    with pytest.raises(DataError, match="a table inside a document has a column 'item'"):
        rows(tmp_path, "table", labels={"item": ["a", "b"]})


def test_names_and_folders():
    assert names_of("chunk")[:2] == ["path", "folder"]
    assert [folder_of(name) for name in ("a/b/c.md", "c.md", "../c.md")] == ["b", None, None]
