"""Makes the letters in the folder documents: made-up invoices, orders, complaints and applications as PDF, Word, HTML and Markdown.

    pip install fpdf2 python-docx
    python data/letters/make.py

Nobody wrote these letters: their sentences come from the lists below. The files are 4 kinds of letter, 12 of each, 3 of each format.
"""

from __future__ import annotations

import datetime as dt
import io
import random
import shutil
import zipfile
from html import escape
from pathlib import Path

from docx import Document
from fpdf import FPDF

FOLDER = Path(__file__).parent
MADE = dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc)  # noqa: UP017 (as fpdf wants it)
COUNT = 12
FORMATS = ("pdf", "docx", "html", "md")

NAMES = ("Mara Lindqvist", "Tom Okafor", "Ines Duarte", "Paul Weber", "Aiko Mori", "Jan Novak", "Leila Haddad", "Sam Price")
FIRMS = ("Harbour Tools Ltd", "Blue Kettle Co", "Nordlicht GmbH", "Casa Verde", "Little Print Works", "Oak & Sons")
THINGS = ("kettle", "desk lamp", "rain jacket", "book shelf", "coffee grinder", "garden chair", "backpack", "wall clock")
MONTHS = ("January", "March", "April", "June", "September", "November")

KINDS: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    # (titles, sentences, closing lines)
    "invoice": (
        ("Invoice {number}", "Invoice no. {number}", "Bill {number}"),
        (
            "Please pay {amount} EUR by the end of {month}.",
            "The amount due is {amount} EUR, value added tax included.",
            "We delivered {count} pieces of {thing} to you in {month}.",
            "Kindly transfer the total to the account given below.",
            "Payment is due within 14 days without any deduction.",
            "Our tax number is {number}{count}.",
        ),
        ("Thank you for your payment.", "With kind regards, the accounts department"),
    ),
    "order": (
        ("Order {number}", "Purchase order", "We would like to order"),
        (
            "Please send us {count} pieces of {thing} as soon as you can.",
            "We order {count} units of {thing} at the price of your offer of {month}.",
            "Deliver to our store, please, between 8 and 12 in the morning.",
            "Please confirm this order and tell us the day of delivery.",
            "If {thing} is not in stock, send another one of the same kind.",
            "We expect the goods in {month}.",
        ),
        ("We look forward to your delivery.", "Best wishes from the purchasing team"),
    ),
    "complaint": (
        ("Complaint about {thing}", "A broken {thing}", "I am not satisfied"),
        (
            "The {thing} that I received in {month} is broken.",
            "It stopped working after {count} days, and nobody answers my calls.",
            "I am very disappointed and ask you to replace it or to return my money.",
            "This is the second time that you sent me a damaged {thing}.",
            "Unfortunately the quality is far below what you promise.",
            "Please let me know how you will solve this problem.",
        ),
        ("I expect your answer within a week.", "Disappointed regards"),
    ),
    "application": (
        ("Application", "Application as a sales assistant", "Your job advertisement of {month}"),
        (
            "I am writing to apply for the position in your team.",
            "I have {count} years of experience in a shop like yours.",
            "My strengths are patience, good languages and an eye for detail.",
            "I finished my training in {month} and can start at once.",
            "Please find my curriculum vitae and my references enclosed.",
            "I would be glad to introduce myself in an interview.",
        ),
        ("I look forward to hearing from you.", "Yours sincerely"),
    ),
}


def letter(kind: str, number: int) -> tuple[str, list[str], list[tuple[str, str]]]:
    """Title, paragraphs, and the rows of a table (of invoices and orders)."""
    draw = random.Random(f"{kind} {number}")  # noqa: S311 (the same letters each time)
    titles, sentences, closing = KINDS[kind]
    facts = {"number": str(1000 + draw.randrange(9000)), "amount": f"{draw.randrange(20, 900)}.{draw.randrange(100):02}",
             "count": str(draw.randrange(2, 30)), "thing": draw.choice(THINGS), "month": draw.choice(MONTHS)}  # fmt: skip
    chosen = draw.sample(sentences, k=draw.randrange(3, 6))
    greeting = f"Dear {draw.choice(NAMES)}," if draw.random() < 0.7 else "To whom it may concern,"
    lines = [f"{draw.choice(FIRMS)}, {draw.randrange(1, 28)} {facts['month']} 2025", greeting]
    lines += [sentence.format(**facts) for sentence in chosen]
    lines += [draw.choice(closing), draw.choice(NAMES)]
    table = [(thing, str(draw.randrange(1, 20))) for thing in draw.sample(THINGS, k=3)] if kind in ("invoice", "order") else []
    return draw.choice(titles).format(**facts), lines, table


def pdf(title: str, lines: list[str], table: list[tuple[str, str]]) -> bytes:
    """A PDF with a text layer."""
    page = FPDF()
    page.set_creation_date(MADE)
    page.set_title(title)
    page.add_page()
    page.set_font("Helvetica", style="B", size=16)
    page.multi_cell(0, 10, title, new_x="LMARGIN", new_y="NEXT")
    page.set_font("Helvetica", size=11)
    for line in [*lines, *(f"{thing}: {count}" for thing, count in table)]:
        page.multi_cell(0, 7, line, new_x="LMARGIN", new_y="NEXT")
    return bytes(page.output())


def docx(title: str, lines: list[str], table: list[tuple[str, str]]) -> bytes:
    """A Word document."""
    document = Document()
    document.core_properties.created = document.core_properties.modified = MADE
    document.add_heading(title, level=1)
    for line in lines:
        document.add_paragraph(line)
    if table:
        grid = document.add_table(rows=1, cols=2)
        grid.rows[0].cells[0].text, grid.rows[0].cells[1].text = "item", "pieces"
        for thing, count in table:
            cells = grid.add_row().cells
            cells[0].text, cells[1].text = thing, count
    made = io.BytesIO()
    document.save(made)
    again = io.BytesIO()  # the same archive with the date of nothing
    with zipfile.ZipFile(made) as old, zipfile.ZipFile(again, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            if name != "docProps/thumbnail.jpeg":
                new.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), _plain(name, old.read(name)), zipfile.ZIP_DEFLATED)
    return again.getvalue()


def _plain(name: str, data: bytes) -> bytes:
    """A part without the mention of the picture of the template, which is left out."""
    if name == "_rels/.rels":
        start = data.index(b"<Relationship ", data.index(b"thumbnail") - 200)
        while b"thumbnail" not in data[start : data.index(b"/>", start)]:
            start = data.index(b"<Relationship ", start + 1)
        data = data[:start] + data[data.index(b"/>", start) + 2 :]
    return data


def html(title: str, lines: list[str], table: list[tuple[str, str]]) -> bytes:
    """A page."""
    rows = "".join(f"<tr><td>{escape(thing)}</td><td>{count}</td></tr>\n" for thing, count in table)
    grid = f"<table>\n<tr><th>item</th><th>pieces</th></tr>\n{rows}</table>\n" if table else ""
    body = "".join(f"<p>{escape(line)}</p>\n" for line in lines)
    head = f'<meta charset="utf-8">\n<title>{escape(title)}</title>\n'
    return f"<!DOCTYPE html>\n<html>\n<head>\n{head}</head>\n<body>\n<h1>{escape(title)}</h1>\n{body}{grid}</body>\n</html>\n".encode()


def md(title: str, lines: list[str], table: list[tuple[str, str]]) -> bytes:
    """Markdown."""
    grid = "\n| item | pieces |\n|---|---|\n" + "".join(f"| {thing} | {count} |\n" for thing, count in table) if table else ""
    return (f"# {title}\n\n" + "\n\n".join(lines) + "\n" + grid).encode()


def main() -> None:
    """Writes all of them."""
    writers = {"pdf": pdf, "docx": docx, "html": html, "md": md}
    for kind in KINDS:
        shutil.rmtree(FOLDER / "documents" / kind, ignore_errors=True)
        (FOLDER / "documents" / kind).mkdir(parents=True)
        for number in range(COUNT):
            ending = FORMATS[number % len(FORMATS)]
            (FOLDER / "documents" / kind / f"{number + 1:02}.{ending}").write_bytes(writers[ending](*letter(kind, number)))


if __name__ == "__main__":
    main()
