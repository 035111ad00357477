"""Columns of fixed width are seen where no delimiter makes lines even."""

from __future__ import annotations

from mlpipe.spec import load_pipeline
from mlpipe.stages.init import init
from mlpipe.stages.inspect import inspect
from mlpipe.stages.look.fixed import fixed_width

TABLE = """\
name            town          sales  open
Miller & Sons   New York     1200.5  yes
Ann             Ulm             7.0  no
Bo Li           St. Gallen    130.25 yes
Cy              Rome          80.0
"""


def test_names_and_places():
    settings, notes, headless = fixed_width(TABLE, None, whole=True)
    assert list(settings["columns"]) == ["name", "town", "sales", "open"]
    assert settings["columns"]["name"] == [1, 13]
    assert settings["skip_lines"] == 1
    assert settings["pad"] is True
    assert not headless
    assert "4 columns" in notes["columns"][0]


def test_sentences_are_no_columns():
    text = "it was the best of times\nand the worst of them all\nthe age of wisdom then\nthe epoch of belief it was\n"
    assert fixed_width(text, None, whole=True) is None


def test_inspect_reads_every_cell(tmp_path):
    (tmp_path / "x.txt").write_text(TABLE, encoding="utf-8")
    found = inspect([tmp_path / "x.txt"], to=tmp_path / "x.csv").found
    assert found["source"]["kind"] == "fixed"
    assert found["rows"] == 4
    assert (tmp_path / "x.csv").read_text(encoding="utf-8").splitlines()[1].replace('"', "") == "Miller & Sons,New York,1200.5,yes"


def test_init_writes_a_source_of_its_kind(tmp_path):
    lines = ["id   group name     value"] + [f"{i:<4} g{i % 3}    Name {i % 7:<3} {i * 1.5:>6}" for i in range(40)]
    (tmp_path / "x.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    init([tmp_path / "x.txt"], "value", output=tmp_path / "x.yaml")
    spec = load_pipeline(tmp_path / "x.yaml").spec
    assert spec.prepare.source.kind == "fixed"
    assert spec.task.target == "value"
