"""Real documents: every file of docling_docs, and German invoices."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from mlpipe.documents.sniff import office
from mlpipe.sources.documents import Documents
from tests.conftest import ROOT
from tests.converted_documents import entries, page

GERMAN = str.maketrans(",.", ".,")


def cells(text: str) -> list[list[str]]:
    """The rows of the page's table."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def number(text: str) -> float:
    """A cell as a number."""
    return float(text.replace(",", "") or "nan")


@pytest.mark.slow
@pytest.mark.data
def test_every_document_is_read_or_named_with_the_right_reason(shared_data: Path) -> None:
    """At least 55 of 58 give text, none is read worse than by Docling itself, and the page in docs says so."""
    found = entries(shared_data / "docling_docs")
    if office() is not None:
        pytest.skip("LibreOffice is installed: legacy files are read, and the page was printed without it")
    assert len(found) == 58
    assert sum(bool(entry.found.plain.strip()) for entry in found) >= 55
    refused = {entry.name.rpartition(".")[2]: entry.found for entry in found if entry.found.status != "ok"}
    assert set(refused) == {"doc", "ppt", "xls"}
    assert all(result.reason == "unsupported" and "soffice --headless --convert-to" in result.detail for result in refused.values())
    worse = [entry.name for entry in found if (entry.own_similarity or 0) > (entry.similarity or 0) + 0.001]
    assert worse == []
    now, then = cells(page(found)), cells((ROOT / "docs" / "documents.md").read_text(encoding="utf-8"))
    assert [row[:2] for row in now] == [row[:2] for row in then]
    for new, old in zip(now, then, strict=True):  # another processor may read a letter of a scan otherwise
        for one, other in zip(new[2:], old[2:], strict=True):
            assert one == other or abs(number(one) - number(other)) <= 0.02 * max(1.0, number(other)), (new, old)


@pytest.mark.slow
@pytest.mark.data
def test_words_of_the_labels_stand_in_the_text_of_every_invoice(shared_data: Path, tmp_path: Path) -> None:
    """Number, seller, buyer and total of 14 German PDFs."""
    folder = shared_data / "invoices_zugferd"
    source = Documents(path="pdf", labels={"path": "labels.csv"}).local(folder, tmp_path / ".snapshots")
    rows = [row for chunk in source.chunks(folder, ["path", "text", "invoice_id", "seller"]) for row in chunk.rows.to_pylist()]
    assert len(rows) == 14
    texts = {row["path"]: row["text"] for row in rows}
    missing = []
    with (folder / "labels.csv").open(encoding="utf-8", newline="") as file:
        for label in csv.DictReader(file):
            text = " ".join(texts[Path(label["file"]).name].split())
            amount = label["grand_total"]
            spelt = {amount, amount.replace(".", ","), f"{float(amount):,.2f}", f"{float(amount):,.2f}".translate(GERMAN)}
            wanted = {name: all(word in text for word in label[name].split()) for name in ("invoice_id", "seller", "buyer")}
            wanted["grand_total"] = any(number in text for number in spelt)
            missing += [(label["file"], name, label[name]) for name, there in wanted.items() if not there]
    assert all(row["invoice_id"] for row in rows)
    assert missing == []
