"""Source `csv`: the cells of a file as they stand, or a fault with its line. No value is dropped, moved or retyped."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from mlpipe.base import NumberFormat
from mlpipe.columns import Column, convert
from mlpipe.errors import DataError
from mlpipe.sources import csv as source_csv
from mlpipe.sources.csv import Csv


def read(folder: Path, data: bytes | str, columns: list[str], **settings) -> list[tuple]:
    (folder / "x.csv").write_bytes(data.encode() if isinstance(data, str) else data)
    return rows(Csv(path="x.csv", **settings), folder, columns)


def rows(source: Csv, base: Path, columns: list[str]) -> list[tuple]:
    """All cells, missing as None."""
    found = []
    for chunk in source.chunks(base, columns):
        assert chunk.first == len(found)
        found += zip(*(chunk.rows.column(name).to_pylist() for name in columns), strict=True)
    return found


def refused(folder: Path, data: bytes | str, columns: list[str], *words: str, **settings) -> None:
    with pytest.raises(DataError) as caught:
        read(folder, data, columns, **settings)
    for word in ("x.csv", *words):
        assert word in str(caught.value), str(caught.value)


CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\ufeff"), max_size=6) | st.sampled_from(
    ["", "NA", "null", "nan", "NULL", "#N/A", "001", '"', ",", "\n", "\r\n", "\r", " a ", "empty", "#", "\\"]
)


@given(
    st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=8),
    st.sampled_from([",", ";", "\t", "|"]),
    # QUOTE_MINIMAL leaves a carriage return bare where lines end in a line feed; such a file says something else
    st.sampled_from([(csv.QUOTE_ALL, "\n"), (csv.QUOTE_ALL, "\r\n"), (csv.QUOTE_MINIMAL, "\r\n"), (csv.QUOTE_NONNUMERIC, "\n")]),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
)
def test_what_pythons_csv_module_writes_comes_back_cell_for_cell(tmp_path_factory, table, delimiter, style, encoding):
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter, quoting=style[0], lineterminator=style[1])
    writer.writerows([("a", "b c", "d\ne"), *table])
    data = text.getvalue().encode(encoding)
    folder = tmp_path_factory.mktemp("csv")
    found = read(folder, data, ["a", "b c", "d\ne"], delimiter=delimiter, missing=(), encoding=encoding.replace("-sig", ""))
    assert found == table


@given(st.integers(1, 60), st.integers(0, 3))
def test_block_boundaries_do_not_matter(tmp_path_factory, block, blank):
    table = [(f"r{i}", ["x", 'y"z', "p,q", "n\nm", ""][i % 5]) for i in range(40)]
    text = io.StringIO(newline="")
    text.write("\n" * blank)
    csv.writer(text, lineterminator="\n").writerows([("a", "b"), *table])
    folder = tmp_path_factory.mktemp("csv")
    before = source_csv.BLOCK_BYTES
    source_csv.BLOCK_BYTES = block + 30
    try:
        assert read(folder, text.getvalue(), ["a", "b"], missing=()) == table
    finally:
        source_csv.BLOCK_BYTES = before


def test_only_listed_tokens_are_missing(tmp_path):
    """T01: a country code that spells NA is a value like another."""
    data = "a,b\nNA,null\n,nan\n?,-\n"
    assert read(tmp_path, data, ["a", "b"]) == [("NA", "null"), (None, "nan"), ("?", "-")]
    assert read(tmp_path, data, ["a", "b"], missing=("?",)) == [("NA", "null"), ("", "nan"), (None, "-")]
    assert read(tmp_path, data, ["a", "b"], missing_by_column={"b": ("-", "NA")}) == [("NA", "null"), (None, "nan"), ("?", None)]


def test_leading_zeros_and_blanks_are_kept(tmp_path):
    """T02: a postcode stays text."""
    assert read(tmp_path, "a,b\n00501, x \n", ["a", "b"]) == [("00501", " x ")]


def test_blanks_of_every_kind_are_stripped_on_request_before_tokens_and_replacements(tmp_path):
    data = " a ,b\n yes\u00a0, ? \nYes, no\n"
    assert read(tmp_path, data, ["a", "b"], strip=True, missing=("?",), replace={"a": {"Yes": "yes"}}) == [("yes", None), ("yes", "no")]


def test_a_column_that_missing_or_replace_names_and_the_file_lacks_is_refused(tmp_path):
    """A misspelt name would leave -999 among the numbers without a word."""
    for settings in ({"missing_by_column": {"agee": ("-999",)}}, {"replace": {"agee": {"x": "y"}}}):
        refused(tmp_path, "age,b\n1,2\n", ["b"], "'agee'", "did you mean 'age'?", **settings)


def test_columns_are_found_by_name_in_any_order(tmp_path):
    assert read(tmp_path, "a,b,c\n1,2,3\n", ["c", "a"]) == [("3", "1")]


def test_names_may_be_given_where_the_file_has_none(tmp_path):
    assert read(tmp_path, "1,2\n3,4\n", ["b", "a"], header=("a", "b")) == [("2", "1"), ("4", "3")]


@pytest.mark.parametrize("above", ["", "\n", "\n\r\n\n"])
def test_blank_lines_above_the_header_and_between_rows_are_passed_over(tmp_path, above):
    """The header is never taken for a row."""
    assert read(tmp_path, f"{above}a,b\n\n1,2\n\n\n3,4\n\n", ["a", "b"]) == [("1", "2"), ("3", "4")]


def test_a_header_over_two_lines_is_one_name(tmp_path):
    assert read(tmp_path, '"a\nx",b\n1,2\n', ["a\nx", "b"]) == [("1", "2")]


def test_an_empty_cell_in_a_file_of_one_column_is_a_row_when_it_is_quoted(tmp_path):
    assert read(tmp_path, 'a\n1\n""\n  \n2\n', ["a"], missing=()) == [("1",), ("",), ("  ",), ("2",)]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_kind_of_line_end_is_read(tmp_path, end):
    assert read(tmp_path, f"a,b{end}1,2{end}3,4", ["a", "b"]) == [("1", "2"), ("3", "4")]


def test_comments_and_lines_to_skip_are_left_out_but_not_inside_quotes(tmp_path):
    data = '% junk "\nnotes, notes\n#first\na,b\n#second\n1,2\n"3\n#no comment",4\n"#5",6\n'
    assert read(tmp_path, data, ["a", "b"], skip_lines=2, comment="#") == [("1", "2"), ("3\n#no comment", "4"), ("#5", "6")]


def test_escapes_and_files_without_quotes_are_read(tmp_path):
    assert read(tmp_path, 'a,b\n"1\\"q",2\n', ["a", "b"], escape="\\") == [('1"q', "2")]
    assert read(tmp_path, 'a,b\n"1,2"\n', ["a", "b"], quote=None) == [('"1', '2"')]
    assert read(tmp_path, 'a,b\n5" nail,2\n', ["a", "b"]) == [('5" nail', "2")]


# ---- what cannot be read, with its line


@pytest.mark.parametrize("bad", ["empty,2,3", "Empty CSV file,2,3", "1", "1,2,3", "1,2,"])
def test_a_row_of_another_width_is_refused_with_its_line(tmp_path, bad):
    """Whatever words it holds: no rows may be lost without a word."""
    refused(tmp_path, f"a,b\n1,2\n\n{bad}\n5,6\n", ["a"], "line 4", "fields instead of 2")


def test_rows_that_are_all_wider_than_the_header_are_refused(tmp_path):
    refused(tmp_path, "a,b\n1,2,\n3,4,\n", ["a", "b"], "line 2", "3 fields instead of 2")


def test_a_quote_that_is_never_closed_is_refused_with_the_line_that_opens_it(tmp_path):
    refused(tmp_path, 'a,b\n1,2\n"3,4\n5,6\n', ["a"], "line 3", "never closed")


def test_text_behind_a_closing_quote_is_refused(tmp_path):
    refused(tmp_path, 'a,b\n1,2\n"3"x,4\n', ["a"], "line 3")


def test_an_empty_file_has_no_header_and_a_header_alone_has_no_rows(tmp_path):
    """T15: the caller says how many rows there were."""
    for data in ("", "\n\n\n", "\ufeff"):
        refused(tmp_path, data, ["a"], "empty")
    for data in ("a,b\n", "a,b", "\n\na,b\r\n\r\n"):
        assert read(tmp_path, data, ["a"]) == []
    assert read(tmp_path, "", ["a"], header=("a", "b")) == []


def test_a_missing_column_is_refused_with_what_there_is_and_a_hint(tmp_path):
    refused(tmp_path, "age,hours_per_week\n1,2\n", ["hours-per-week"], "it has: age, hours_per_week", "did you mean 'hours_per_week'?")


def test_bytes_of_another_encoding_are_refused_far_down_a_file_too(tmp_path):
    refused(tmp_path, b"a,b\n" + b"1,2\n" * 50_000 + b"M\xfcnchen,2\n", ["a"], "50002", "0xfc", "encoding")
    refused(tmp_path, "a,b\n1,2\n".encode("utf-16-le"), ["a"], "utf-16", encoding="utf-16")
    refused(tmp_path, "a,b\n1,2\n".encode("utf-16"), ["a"], "encoding")


@pytest.mark.parametrize(
    "settings",
    [
        {"delimiter": ""},
        {"delimiter": "||"},
        {"delimiter": "\n"},
        {"delimiter": "§"},
        {"quote": "«"},
        {"delimiter": '"'},
        {"escape": '"'},
        {"comment": ","},
        {"decimal": ",", "thousands": ","},
        {"thousands": "1"},
        {"decimal": "e"},
        {"encoding": "utf-99"},
        {"encoding": "rot13"},
        {"path": ()},
        {"header": False},
    ],
)
def test_settings_that_contradict_each_other_are_refused(settings):
    with pytest.raises(ValidationError):
        Csv(**{"path": "x.csv", **settings})


# ---- packed files

PACK = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zst": zstandard.ZstdCompressor().compress}
TABLE = "a,b\n" + "".join(f"{i},{i * 7919 % 104_729}\n" for i in range(20_000))


@pytest.mark.parametrize("kind", PACK)
def test_packed_files_give_the_same_rows_by_ending_or_by_setting(tmp_path, kind):
    plain = read(tmp_path, TABLE, ["a", "b"])
    packed = PACK[kind](TABLE.encode())
    (tmp_path / f"y.csv.{kind}").write_bytes(packed)
    assert rows(Csv(path=f"y.csv.{kind}"), tmp_path, ["a", "b"]) == plain
    assert read(tmp_path, packed, ["a", "b"], compression=kind) == plain
    half = TABLE.index("\n", len(TABLE) // 2) + 1
    members = PACK[kind](TABLE[:half].encode()) + PACK[kind](TABLE[half:].encode())
    assert read(tmp_path, members, ["a", "b"], compression=kind) == plain


@pytest.mark.parametrize("kind", PACK)
def test_packed_files_that_are_cut_off_damaged_or_not_packed_are_refused(tmp_path, kind):
    packed = PACK[kind](TABLE.encode())
    refused(tmp_path, packed[: len(packed) // 2], ["a"], compression=kind)
    refused(tmp_path, packed[:-3], ["a"], compression=kind)
    refused(tmp_path, TABLE, ["a"], compression=kind)


# ---- files by path and glob


def test_files_of_a_glob_come_in_sorted_order_and_keep_their_own_row_numbers(tmp_path):
    for name, value in (("b.csv", 2), ("a.csv", 1), ("c.txt", 3)):
        (tmp_path / name).write_text(f"a\n{value}\n{value}\n")
    (tmp_path / "folder.csv").mkdir()
    found = [(c.file, c.first, c.rows.to_pydict()) for c in Csv(path="*.csv").chunks(tmp_path, ["a"])]
    assert found == [("a.csv", 0, {"a": ["1", "1"]}), ("b.csv", 0, {"a": ["2", "2"]})]


def test_a_folder_whose_name_has_brackets_is_no_pattern(tmp_path):
    folder = tmp_path / "data [1]"
    folder.mkdir()
    (folder / "a.csv").write_text("a\n1\n")
    assert rows(Csv(path="*.csv"), folder, ["a"]) == [("1",)]
    assert rows(Csv(path="data [1]/a.csv"), tmp_path, ["a"]) == [("1",)]


def test_a_file_that_two_entries_name_is_refused_so_that_no_row_counts_double(tmp_path):
    (tmp_path / "a.csv").write_text("a\n1\n")
    with pytest.raises(DataError, match=r"a\.csv is read twice"):
        list(Csv(path=("a.csv", "*.csv")).chunks(tmp_path, ["a"]))


@pytest.mark.parametrize(
    ("path", "words"),
    [("b.csv", "there is no file b.csv"), ("*.tsv", "no file matches"), ("sub", "is a folder"), ("su*", "no file matches")],
)
def test_paths_that_lead_nowhere_are_refused(tmp_path, path, words):
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.csv").write_text("a\n1\n")
    with pytest.raises(DataError, match=words.replace("*", r"\*")):
        list(Csv(path=path).chunks(tmp_path, ["a"]))


def test_a_variable_in_a_path_is_expanded_where_it_is_used(tmp_path, monkeypatch):
    monkeypatch.setenv("MLPIPE_TEST_WHERE", str(tmp_path))
    (tmp_path / "a.csv").write_text("a\n1\n")
    source = Csv(path="${env:MLPIPE_TEST_WHERE}/a.csv")
    assert [name for name, _ in source.files(Path("/"))] == ["${env:MLPIPE_TEST_WHERE}/a.csv"]
    assert rows(source, Path("/"), ["a"]) == [("1",)]


def test_places_are_the_lines_on_which_rows_begin(tmp_path):
    (tmp_path / "x.csv").write_text('#c\n\na,b\n\n1,"two\nlines"\n#c\n3,4\n')
    assert Csv(path="x.csv", comment="#").places(tmp_path / "x.csv", [0, 1]) == {0: "line 5", 1: "line 8"}
    (tmp_path / "y.csv").write_text("1,2\n3,4\n")
    assert Csv(path="y.csv", header=("a", "b")).places(tmp_path / "y.csv", [1]) == {1: "line 2"}


# ---- cases from public reports

TOWNS = {"München", "Köln", "Orléans", "Málaga", "Besançon"}


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("bom_target_first.csv", {}),
        ("double_bom.csv", {}),
        ("utf16.tsv", {"encoding": "utf-16", "delimiter": "\t"}),
        ("cp1252.csv", {"encoding": "cp1252"}),
    ],
)
def test_t03_marks_at_the_head_and_other_encodings_are_read(cases, name, settings):
    found = rows(Csv(path=name, **settings), cases / "T03", ["label", "town", "x"])
    assert {town for _, town, _ in found} == TOWNS
    assert found[0] == ("no", "München", "0.0")


def test_t03_a_file_of_another_encoding_is_refused_with_file_line_and_option(cases):
    with pytest.raises(DataError, match=r"cp1252\.csv, about line 2: byte 0xfc") as caught:
        rows(Csv(path="cp1252.csv"), cases / "T03", ["town"])
    assert "`encoding`" in str(caught.value)


def numbers(source: Csv, base: Path, column: str) -> tuple[list, list]:
    values, faults = [], []
    for chunk in source.chunks(base, [column]):
        typed, bad = convert(chunk.rows.column(column), Column(name=column, type="number"), source.numbers)
        values += typed.to_pylist()
        faults += bad
    return values, faults


def test_t04_decimal_commas_and_thousands_are_read_as_set_and_are_faults_otherwise(cases):
    german = Csv(path="german.csv", delimiter=";", decimal=",")
    assert german.numbers == NumberFormat(decimal=",")
    values, faults = numbers(german, cases / "T04", "betrag")
    assert (values[0], min(values), faults) == (0.25, 0.25, [])
    values, faults = numbers(Csv(path="thousands.csv", thousands=","), cases / "T04", "price")
    assert (values[0], min(values), faults) == (500.0, 500.0, [])
    for source, column in ((Csv(path="german.csv", delimiter=";"), "betrag"), (Csv(path="thousands.csv"), "price")):
        values, faults = numbers(source, cases / "T04", column)
        assert faults
        assert all("," in fault.value for fault in faults)


@pytest.mark.parametrize(("name", "line"), [("first_row_trailing.csv", 2), ("all_rows_trailing.csv", 2), ("one_extra_mid.csv", 32)])
def test_t05_one_separator_too_many_is_refused_with_file_and_line(cases, name, line):
    assert rows(Csv(path="good.csv"), cases / "T05", ["A", "label"])[:2] == [("0", "no"), ("1", "yes")]
    with pytest.raises(DataError, match=rf"{name}, line {line}: 5 fields instead of 4"):
        rows(Csv(path=name), cases / "T05", ["A", "B", "C", "label"])


@pytest.mark.parametrize(
    ("name", "column", "places"),
    [("dup_feature.csv", "age", "1 and 3"), ("dup_target.csv", "label", "1 and 3"), ("mangled_collision.csv", "a", "1 and 3")],
)
def test_t06_a_name_that_stands_twice_is_refused_with_both_places(cases, name, column, places):
    with pytest.raises(DataError) as caught:
        rows(Csv(path=name), cases / "T06", ["label"])
    assert name in str(caught.value)
    assert f"'{column}' stands in columns {places}" in str(caught.value)


def test_t07_large_integers_beside_a_gap_are_kept_digit_for_digit_or_refused(cases):
    cells = [cell for (cell,) in rows(Csv(path="bigid.csv"), cases / "T07", ["order_id"])]
    assert (len(set(cells) - {None}), cells.count(None), "1582218195625938945" in cells) == (59, 1, True)
    _, faults = numbers(Csv(path="bigid.csv"), cases / "T07", "order_id")
    kept = {int(cell) for cell in cells if cell} - {int(fault.value) for fault in faults}
    assert all(int(float(value)) == value for value in kept)


def test_r02_infinite_cells_are_faults_with_their_lines(cases):
    source = Csv(path="inf_cell.csv")
    _, faults = numbers(source, cases / "R02", "x2")
    places = source.places(cases / "R02" / "inf_cell.csv", [fault.row for fault in faults])
    assert sorted(places.values()) == ["line 35", "line 6"]
    assert {fault.value for fault in faults} == {"Infinity", "-inf"}


def test_a_header_line_under_given_names_is_no_row(tmp_path):
    """The names are given and the file has them too: in a table of texts the header would become a row without a word."""
    (tmp_path / "x.csv").write_text("a,b\np,q\n", encoding="utf-8")
    source = Csv(path="x.csv", header=("a", "b"))
    with pytest.raises(DataError, match=r"x\.csv, line 1: the file has a header line"):
        list(source.chunks(tmp_path, ["a", "b"]))
    (tmp_path / "x.csv").write_text("p,q\na,b\n", encoding="utf-8")
    assert [chunk.rows.num_rows for chunk in source.chunks(tmp_path, ["a", "b"])] == [2]


def test_fields_parted_by_runs_of_blanks_and_tabs(tmp_path):
    text = 'mpg  weight\tname\n18.0   3504.\t"chevrolet  chevelle"\n  15  3693.   buick\t\n\n'
    assert read(tmp_path, text, ["mpg", "weight", "name"], delimiter="whitespace") == [
        ("18.0", "3504.", "chevrolet  chevelle"),
        ("15", "3693.", "buick"),
    ]
    refused(tmp_path, text + "1 2\n", ["mpg"], "line 5", "2 fields instead of 3", delimiter="whitespace")


def test_blanks_before_a_quote_are_passed_over_when_asked(tmp_path):
    text = 'id, size, place\n1, "6,000", Galway\n2, "say ""x""", Bray \n'
    assert read(tmp_path, text, ["size", "place"], skip_initial_space=True) == [("6,000", "Galway"), ('say "x"', "Bray ")]
    refused(tmp_path, text, ["id"], "line 2", "4 fields instead of 3")


def test_both_ways_to_write_a_quote_within_quotes(tmp_path):
    text = 'a,b\n1,"two "" marks"\n2,"and \\" one"\n'
    expected = [("1", 'two " marks'), ("2", 'and " one')]
    assert read(tmp_path, text, ["a", "b"], escape="\\") == expected
    assert read(tmp_path, text, ["a", "b"], escape="\\", skip_initial_space=True) == expected


def test_short_rows_are_refused_and_filled_only_when_asked(tmp_path):
    text = "a,b,c\n1,2,3\n4,5\n6\n"
    refused(tmp_path, text, ["a"], "line 3", "2 fields instead of 3", "short_rows: fill")
    (tmp_path / "x.csv").write_text(text, encoding="utf-8")
    source = Csv(path="x.csv", short_rows="fill")
    assert rows(source, tmp_path, ["a", "b", "c"]) == [("1", "2", "3"), ("4", "5", None), ("6", None, None)]
    assert source.notes == ["x.csv: 2 rows shorter than 3 fields, the first on line 3: filled with nothing"]
    refused(tmp_path, "a,b\n1,2,3\n", ["a"], "line 2", "3 fields instead of 2", short_rows="fill")


def test_header_cells_without_a_name_are_called_by_their_place(tmp_path):
    assert read(tmp_path, ",b,\n1,2,3\n", ["column_1", "b", "column_3"]) == [("1", "2", "3")]
    assert read(tmp_path, "column_2,\n1,2\n", ["column_2", ""]) == [("1", "2")]  # that name is taken: this one stays empty


def test_a_carriage_return_outside_quotes_cuts_no_row_in_silence(tmp_path):
    refused(tmp_path, "a\nx\ry\nz\n", ["a"], "line 2", "carriage return", "in quotes")
    refused(tmp_path, "a,b\r1,2\r3,4\n5,6\r", ["a"], "line 3", "carriage return")
    assert read(tmp_path, 'a,b\r1,2\r3,"x\ny"\r', ["a", "b"]) == [("1", "2"), ("3", "x\ny")]  # classic Mac line ends
    assert read(tmp_path, "a,b\r\r\n1,2\r\r\n", ["a", "b"]) == [("1", "2")]  # a text file written twice by Windows
    big = "a,b\r\n" + "1,2\r\n" * 2_000_000  # line ends that fall between two blocks
    assert sum(1 for _ in read(tmp_path, big, ["a"])) == 2_000_000


def test_a_zero_byte_is_a_character(tmp_path):
    assert read(tmp_path, "a,b\n\0,2\n", ["a", "b"]) == [("\0", "2")]


def test_another_delimiter_is_suggested_where_the_header_is_one_name(tmp_path):
    refused(tmp_path, "a;b;c\n1;2;3\n", ["a", "b"], "--reader delimiter=';'")


def test_a_quote_that_a_line_leaves_open_is_refused_between_runs_of_blanks(tmp_path):
    """A line break within quotes is not read as a blank without a word, and a blank that does not break stays in its cell."""
    refused(tmp_path, 'a b\n1 "two\n2" 3\n', ["a"], "line 2", "not closed", delimiter="whitespace")
    assert read(tmp_path, "a b\n1 x\xa0y\n", ["b"], delimiter="whitespace") == [("x\xa0y",)]
