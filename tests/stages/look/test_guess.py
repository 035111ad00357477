"""What a column holds, from its texts."""

from __future__ import annotations

import pytest

from mlpipe.stages.inspect import inspect


def column(folder, values: list[str]) -> dict:
    text = "row;value\n" + "".join(f"r{i % 3};{value}\n" for i, value in enumerate(values))
    (folder / "x.csv").write_text(text, encoding="utf-8")
    return inspect([folder / "x.csv"]).found["columns"][1]


@pytest.mark.parametrize(
    ("values", "holds"),
    [
        ([f"1.{i:03},50 EUR" for i in range(40)], "unclear"),
        ([f"{i}%" for i in range(40)], "unclear"),
        ([f"{i % 3 * 5} ml" for i in range(40)], "category"),
        ([f"{i:05}" for i in range(40)], "identifier"),
        ([str(10**18 + i) for i in range(40)], "identifier"),
        (["x"] * 40, "constant"),
        ([""] * 40, "nothing"),
        ([f"2024-{i % 12 + 1:02}-{i % 28 + 1:02}" for i in range(40)], "date"),
        ([f"{i % 12 + 1:02}/{i % 28 + 1:02}/2024" for i in range(40)], "date"),
        ([f"{i % 12 + 1:02}/{i % 11 + 1:02}/2024" for i in range(40)], "unclear"),
        ([f"2024-{i % 12 + 1:02}" for i in range(40)], "date"),
        ([f"{i % 7} of one thing and another {i}" for i in range(40)], "free text"),
        ([f"我要听音乐第{i}首" for i in range(40)], "free text"),
        ([f"{i % 7},5" for i in range(40)], "number"),
        (["ja", "nein"] * 20, "category"),
    ],
)
def test_kinds(tmp_path, values, holds):
    found = column(tmp_path, values)
    assert found["holds"] == holds, found


def test_whole_numbers_named_like_codes_are_categories(tmp_path):
    lines = [f"{i % 5 + 40},{i % 7}.5,{i}.25" for i in range(60)]
    for name, holds in (("genreId", "category"), ("country_code", "category"), ("rooms", "number")):
        (tmp_path / "x.csv").write_text("\n".join([f"{name},a,b", *lines]) + "\n", encoding="utf-8")
        assert inspect([tmp_path / "x.csv"]).found["columns"][0]["holds"] == holds


@pytest.mark.parametrize(
    ("values", "holds", "said"),
    [
        ([f"{i},50 €" for i in range(40)], "unclear", "unit"),
        ([f"({i}.25)" if i % 2 else f"{i}.5 $" for i in range(40)], "unclear", "unit"),
        ([f"2024{i % 12 + 1:02}{i % 28 + 1:02}" for i in range(40)], "date", "%Y%m%d"),
        ([f"March {i % 28 + 1} 2024" for i in range(40)], "date", "%B %d %Y"),
        (["2024-01-02" if i % 2 else f"{i % 28 + 1:02}/12/2024" for i in range(60)], "unclear", "two forms"),
    ],
)
def test_evidence(tmp_path, values, holds, said):
    found = column(tmp_path, values)
    assert (found["holds"], said in found["evidence"]) == (holds, True), found


def test_what_to_look_at(tmp_path):
    def odd(values: list[str]) -> str:
        text = "row,value\n" + "".join(f"r{i % 3},{value}\n" for i, value in enumerate(values))
        (tmp_path / "x.csv").write_text(text, encoding="utf-8")
        return "\n".join(inspect([tmp_path / "x.csv"]).found["oddities"])

    assert "12 cells are -999, far from all others" in odd([f"{i % 50}" if i % 5 else "-999" for i in range(60)])
    assert "far from" not in odd([f"{i % 50 * 3}" for i in range(60)])
    assert "far from" not in odd([f"{2**i}" for i in range(30)] * 2)
    assert "from 1969-11-12 to 2068-11-11" in odd([f"{i % 28 + 1:02}/11/{(30 + i) % 100:02}" for i in range(95)])
    assert "two digits" not in odd([f"{i % 28 + 1:02}/11/{i % 5 + 18}" for i in range(95)])
