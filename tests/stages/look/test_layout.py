"""Delimiter, quoting, titles and header of delimited text."""

from __future__ import annotations

import pytest

from mlpipe.stages.look.layout import layout


def found(text: str, target: str | None = None, **fixed) -> dict:
    return layout(text, target, whole=True, fixed=fixed).settings


def test_plain_files_need_no_settings():
    assert found("a,b\n1,2\n3,4\n") == {}
    assert found('a,b\n"x, y",2\n"say ""hi""",4\n') == {}


@pytest.mark.parametrize("mark", [";", "\t", "|", "^", "~"])
def test_the_delimiter_that_makes_records_even(mark):
    rows = [["name", "price", "note"], ["x", "1,5", "a, b"], ["y", "2,25", "c"], ["z", "3,0", "d, e, f"]] * 3
    assert found("\n".join(mark.join(row) for row in rows) + "\n").get("delimiter") == mark


def test_decimal_commas_do_not_part_fields():
    assert found("a;b\n1,5;2,5\n3,5;4,5\n") == {"delimiter": ";"}


def test_one_column_is_not_cut():
    assert found("date\n01/02/2024\n03/04/2024\n") == {}
    text = "review\nfine, and quick\ngood\nno, never, again\nwell, well, well, well\nok\n"
    assert found(text)["delimiter"] not in text


def test_runs_of_blanks():
    assert found('mpg  weight\tname\n18.0   3504.\t"chevrolet x"\n15.0  3693.\t"buick y"\n') == {"delimiter": "whitespace"}
    assert found("1 2 3\n4 5 6\n7 8 9\n")["delimiter"] == "whitespace"
    assert found("greeting\nhello world\ngood bye\n") == {}


def test_quotes_behind_blanks_and_behind_backslashes():
    assert found('a, b\n1, "x, y"\n2, "z"\n') == {"skip_initial_space": True}
    assert found('a,b\n1,"say \\"hi\\", he said"\n2,"z"\n') == {"escape": "\\"}
    assert found('a, b\n1, "one ""way"""\n2, "another \\" way"\n') == {"escape": "\\", "skip_initial_space": True}


def test_a_quote_behind_a_blank_within_a_cell_changes_nothing():
    assert found('id,text\n1,"he said, ""yes"""\n2,"x, ""y"" z"\n3, padded\n') == {}


def test_single_quotes_enclose_only_where_that_makes_records_even():
    assert found("a,b\n'x, y',1\n'z, w',2\n'u',3\n")["quote"] == "'"
    assert found("a,b\n'tis,1\nit's,2\n'twas,3\ndon't,4\n") == {}


def test_quotes_that_are_plain_text():
    assert found('label\ttext\nham\t"hello\nspam\twin "now\nham\tok\n') == {"delimiter": "\t", "quote": None}


def test_a_quote_that_swallows_a_cut_sample_is_none():
    text = 'label\ttext\nham\t"no\n' + "ham\tfine\n" * 1000
    assert layout(text, None, whole=False).settings == {"delimiter": "\t", "quote": None}


def test_titles_above_the_header():
    assert found("Sales by region,,,\n,,,\nregion,2000,2001,2002\nnorth,1,2,3\nsouth,4,5,6\n") == {"skip_lines": 2}
    assert found("# made by x\nf1,f2,f3\n1,2,3\n4,5,6\n") == {"skip_lines": 1}
    assert found("\n\n\na,b,c\n1,2,3\n") == {}  # blank lines are passed over anyway


def test_a_header_with_fewer_names_than_fields_is_no_title():
    """Case T05: a delimiter too many in all rows. Taking the header for a title would make the first row the header."""
    assert "skip_lines" not in found("a,b,c\n1,2,3,\n4,5,6,\n")
    assert "skip_lines" not in found("name\nbob,\nalice,\n")


def test_a_first_row_of_gaps_is_not_dropped():
    settings = found("x,,,\n1,2,3,4\n5,6,7,8\n9,1,2,3\n")
    assert "skip_lines" not in settings


def test_names_over_several_lines_are_read_as_rows_and_told():
    text = ",,Money,,,\n,,per head,,,\n,,town,town,town,town\nNR,Group,A,B,C,D\n1,tax,5,6,7,8\n2,rent,1,2,3,4\n3,fee,1,2,3,5\n"
    seen = layout(text, None, whole=True)
    assert seen.headless
    assert "skip_lines" not in seen.settings
    assert "several lines" in seen.notes["skip_lines"][0]


def test_header_or_data():
    assert "header" not in found("age,town\n1,x\n2,y\n3,x\n")
    assert found("1,x\n2,y\n3,x\n4,x\n")["header"] == ["column_1", "column_2"]
    assert "header" not in found("Country,2011,2012\nItaly,23.5,24.1\nFrance,21.0,22.9\n")
    assert found("1,2,3\n")["header"] == ["column_1", "column_2", "column_3"]
    assert "header" not in found("1,x\n2,y\n3,x\n4,x\n", target="x")  # the target's name settles it


def test_rows_that_lack_columns_without_a_name():
    assert found("a,b,c,,\n1,2,3,,\n4,5,6,\n7,8,9,,\n") == {"short_rows": "unnamed"}
    assert found("a,b,c\n1,2,3\n4,5\n6,7,8\n") == {}


def test_what_is_given_is_not_guessed():
    assert found("a;b\n1;2\n3;4\n", delimiter=",") == {}
    assert found("x\ny\n1,2\n3,4\n", skip_lines=2, header=("a", "b")) == {}


def test_blanks_part_aligned_columns_with_few_numbers():
    text = "".join(f"{i:5d}{i * 1.25:9.2f} {'xyz'[i % 3]} 2024-{i % 12 + 1:02d}-{i % 28 + 1:02d} {'pn'[i % 2]}\n" for i in range(100))
    assert found(text)["delimiter"] == "whitespace"
    text = "id name time lab\n" + "".join(f"{i} n{i % 4} 10:{i % 60:02}:00 {'pn'[i % 2]}\n" for i in range(100))
    assert found(text) == {"delimiter": "whitespace"}
    prose = "text\n" + "".join(f"some {'few' if i % 2 else 'old'} words here\n" for i in range(40))
    assert found(prose) == {}


def test_an_open_quote_is_told_with_its_line():
    rows = [f"{i},x,p" for i in range(40)]
    rows[20] = '20,"x,p'
    seen = layout("a,b,c\n" + "\n".join(rows) + "\n", None, whole=True)
    assert seen.settings == {"quote": None}
    assert "line 22" in seen.notes["quote"][0]
