"""`mlpipe init`: what it guesses, what it refuses to guess, and that what it writes loads."""

from __future__ import annotations

import gzip
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from mlpipe.errors import DataError, SpecError
from mlpipe.spec import Pipeline, load_pipeline
from mlpipe.stages.init import InitReport, init
from mlpipe.stages.init.writer import flow, scalar
from mlpipe.stages.look.dialect import dialect
from tests.helpers import CASES, chain


def looked(tmp_path: Path, file: Path, target: str = "label", task: str | None = None) -> tuple[InitReport, Pipeline]:
    """Runs init on a copy of `file`."""
    data = tmp_path / file.name
    if not data.exists():
        shutil.copy(file, data)
    report = init([data], target, task=task, output=tmp_path / "made.yaml")
    assert report.text == (tmp_path / "made.yaml").read_text(encoding="utf-8")
    return report, load_pipeline(report.pipeline)


def table(tmp_path: Path, header: str, rows: list[str], name: str = "data.csv") -> Path:
    """Writes a small table."""
    path = tmp_path / name
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def columns(pipeline: Pipeline, kind: str) -> list[str]:
    """The columns of all features of a kind."""
    return [name for feature in pipeline.spec.prepare.features if feature.kind == kind for name in feature.columns]


def said(report: InitReport) -> str:
    """The summary as one text."""
    return "\n".join(report.summary)


# the cases from public reports


def test_a_country_code_that_spells_na_stays_a_category(tmp_path: Path, cases: Path) -> None:
    """T01: no token but the empty cell is missing in a text column; the count is told, and how to say otherwise."""
    report, pipeline = looked(tmp_path, cases / "T01" / "countries.csv")
    assert columns(pipeline, "category") == ["country"]
    assert pipeline.spec.prepare.source.missing == ("",)
    assert not pipeline.spec.prepare.source.missing_by_column
    assert '10 of 60 cells are "NA"' in report.text and 'missing_by_column: {country: ["NA"]}' in report.text
    assert '"NA" is kept as a value in country (10)' in said(report)


@pytest.mark.parametrize("name", ["clients.csv", "clients.jsonl"])
def test_numbers_that_begin_with_a_zero_stay_text(tmp_path: Path, cases: Path, name: str) -> None:
    """T02: postcodes are a category and account numbers are carried, in CSV as in JSON Lines."""
    _, pipeline = looked(tmp_path, cases / "T02" / name)
    assert columns(pipeline, "category") == ["client_zip"]
    assert columns(pipeline, "numeric") == ["spend"]
    assert pipeline.spec.prepare.keys == ("account",)


def test_quoted_json_is_never_retyped(tmp_path: Path) -> None:
    """T02: a JSON string is text, whatever it looks like; the remark says how to have it otherwise."""
    rows = [f'{{"size": "{i % 7}", "width": {i % 7}, "label": "{"ab"[i % 2]}"}}' for i in range(40)]
    path = tmp_path / "data.jsonl"
    path.write_text("\n".join(rows), encoding="utf-8")
    report, pipeline = looked(tmp_path, path)
    assert (columns(pipeline, "category"), columns(pipeline, "numeric")) == (["size"], ["width"])
    assert "written in quotes" in report.text


@pytest.mark.parametrize(
    ("name", "encoding"),
    [("bom_target_first.csv", "utf-8"), ("double_bom.csv", "utf-8"), ("utf16.tsv", "utf-16"), ("cp1252.csv", "cp1252")],
)
def test_encodings_are_found_and_stated(tmp_path: Path, cases: Path, name: str, encoding: str) -> None:
    """T03: marks never stick to a name; a guess is called one, with its line; no letter changes."""
    report, pipeline = looked(tmp_path, cases / "T03" / name)
    source = pipeline.spec.prepare.source
    assert source.kind == "csv" and source.encoding == encoding
    assert source.delimiter == ("\t" if name.endswith("tsv") else ",")
    towns = {v for chunk in source.chunks(tmp_path, ["town"]) for v in chunk.rows.column(0).to_pylist()}
    assert towns == {"München", "Köln", "Orléans", "Málaga", "Besançon"}
    if encoding == "cp1252":
        assert "a guess: line 2 is not UTF-8" in report.text and "a guess" in said(report)


def test_polish_text_is_not_taken_for_western(tmp_path: Path) -> None:
    """T03: where windows-1252 gives nonsense, the better code page is taken."""
    words = ["Zażółć gęślą jaźń", "miłego dnia życzę", "Łódź i Kraków", "są pięknymi miastami", "źdźbło trawy"]
    text = "word,x,label\n" + "".join(f"{words[i % 5]},{i}.5,{'ab'[i % 2]}\n" for i in range(60))
    path = tmp_path / "polish.csv"
    path.write_bytes(text.encode("cp1250"))
    _, pipeline = looked(tmp_path, path)
    assert pipeline.spec.prepare.source.encoding == "cp1250"  # type: ignore[union-attr]


def test_decimal_commas_and_thousands_marks_are_found(tmp_path: Path, cases: Path) -> None:
    """T04: the convention stands in the file; both columns are numbers."""
    report, pipeline = looked(tmp_path, cases / "T04" / "german.csv")
    source = pipeline.spec.prepare.source
    assert source.kind == "csv" and (source.delimiter, source.decimal, source.thousands) == (";", ",", None)
    assert "betrag" in columns(pipeline, "numeric") and "0.25 to 13.15" in report.text
    (tmp_path / "made.yaml").unlink()
    report, pipeline = looked(tmp_path, cases / "T04" / "thousands.csv")
    source = pipeline.spec.prepare.source
    assert source.kind == "csv" and (source.decimal, source.thousands) == (".", ",")
    assert "price" in columns(pipeline, "numeric") and "500 to 13400" in report.text


def test_a_comma_that_can_be_read_two_ways_is_not_guessed(tmp_path: Path) -> None:
    """T04: "1,234" between semicolons may be 1234 or 1.234: the column is left out and the options are named."""
    rows = [f"{1 + i % 9},{100 + i};{i % 3};{'ab'[i % 2]}" for i in range(40)]
    report, pipeline = looked(tmp_path, table(tmp_path, "v;n;label", rows))
    assert "v" in pipeline.spec.prepare.ignore and "decimal" in pipeline.spec.prepare.ignore["v"]
    assert "can be read two ways" in said(report)


def test_a_leading_zero_settles_the_comma(tmp_path: Path) -> None:
    """T04: "0,125" can only be a decimal comma."""
    rows = [f"{i % 9},{100 + i};{i % 3};{'ab'[i % 2]}" for i in range(40)]
    _, pipeline = looked(tmp_path, table(tmp_path, "v;n;label", rows))
    assert pipeline.spec.prepare.source.decimal == ","  # type: ignore[union-attr]
    assert "v" in columns(pipeline, "numeric")


@pytest.mark.parametrize(("name", "line"), [("first_row_trailing.csv", 2), ("all_rows_trailing.csv", 2), ("one_extra_mid.csv", 32)])
def test_ragged_rows_are_refused_with_their_line(tmp_path: Path, cases: Path, name: str, line: int) -> None:
    """T05: no column ever holds another's values; no file is written."""
    with pytest.raises(DataError, match=rf"{name}, line {line}:"):
        looked(tmp_path, cases / "T05" / name)
    assert not (tmp_path / "made.yaml").exists()


def test_even_rows_are_read(tmp_path: Path, cases: Path) -> None:
    """T05: the table without the flaw."""
    _, pipeline = looked(tmp_path, cases / "T05" / "good.csv")
    assert columns(pipeline, "numeric") == ["A", "B", "C"]


@pytest.mark.parametrize(("name", "column"), [("dup_feature.csv", "age"), ("dup_target.csv", "label"), ("mangled_collision.csv", "a")])
def test_a_name_that_stands_twice_is_refused(tmp_path: Path, cases: Path, name: str, column: str) -> None:
    """T06: with both positions."""
    with pytest.raises(DataError) as fault:
        looked(tmp_path, cases / "T06" / name)
    assert f"{column!r} stands in columns 1 and 3" in str(fault.value)


def test_large_integers_are_carried_digit_for_digit(tmp_path: Path, cases: Path) -> None:
    """T07: 19 digits are no number here; the column is a key even with a cell missing."""
    report, pipeline = looked(tmp_path, cases / "T07" / "bigid.csv")
    assert pipeline.spec.prepare.keys == ("order_id",)
    assert "cannot hold 19 digits" in report.text


def test_ambiguous_dates_are_left_out(tmp_path: Path, cases: Path) -> None:
    """T09: both formats are named, and where to set one."""
    report, pipeline = looked(tmp_path, cases / "T09" / "ambiguous.csv")
    why = pipeline.spec.prepare.ignore["day"]
    assert "ambiguous" in why and "%d/%m/%Y" in why and "%m/%d/%Y" in why and "format" in why
    assert "ambiguous" in said(report)


def test_days_beyond_twelve_settle_the_format(tmp_path: Path, cases: Path) -> None:
    """T09: read day first, all rows."""
    _, pipeline = looked(tmp_path, cases / "T09" / "dayfirst.csv")
    (feature,) = [f for f in pipeline.spec.prepare.features if f.kind == "datetime"]
    assert feature.kind == "datetime" and feature.format == "%d/%m/%Y" and "hour" not in feature.parts


def test_contradicting_dates_name_both_lines(tmp_path: Path, cases: Path) -> None:
    """T09: line 9 fits only day first, line 10 only month first."""
    with pytest.raises(DataError) as fault:
        looked(tmp_path, cases / "T09" / "conflict.csv")
    text = str(fault.value)
    assert "'day'" in text and "conflict.csv, line 9:" in text and "conflict.csv, line 10:" in text


def test_missing_targets_are_counted_and_not_dropped(tmp_path: Path, cases: Path) -> None:
    """T10: two classes; prepare will stop unless told otherwise."""
    report, pipeline = looked(tmp_path, cases / "T10" / "missing_target.csv")
    assert pipeline.spec.task.missing_target == "fail"
    assert "3 of 60 cells of the target are missing" in report.text and "3 rows have no label" in said(report)


def test_a_single_class_is_refused(tmp_path: Path, cases: Path) -> None:
    """T10: with its name."""
    with pytest.raises(DataError, match="only one class: yes"):
        looked(tmp_path, cases / "T10" / "single_class.csv")


def test_a_rare_class_is_named_and_not_stratified(tmp_path: Path, cases: Path) -> None:
    """T10: `rare` has one row, which cannot be in three splits."""
    report, pipeline = looked(tmp_path, cases / "T10" / "singleton_class.csv")
    assert pipeline.spec.prepare.split.stratify is False  # type: ignore[union-attr]
    assert '"rare" (1 row)' in report.text and '"rare" (1 row)' in said(report)


def test_columns_that_carry_nothing_are_left_out_by_name(tmp_path: Path, cases: Path) -> None:
    """T13: a constant, an empty column, and one value a row."""
    report, pipeline = looked(tmp_path, cases / "T13" / "useless.csv")
    prepare = pipeline.spec.prepare
    assert pipeline.spec.feature_columns() == ("x",)
    assert set(prepare.ignore) == {"const", "empty"} and prepare.keys == ("row_uid",)
    assert all(name in said(report) for name in ("const", "empty", "row_uid"))


def test_labels_that_differ_in_blanks_are_one_class(tmp_path: Path, cases: Path) -> None:
    """T14: `strip` settles it, and what was merged is told with the blanks made visible."""
    report, pipeline = looked(tmp_path, cases / "T14" / "labels.csv")
    assert pipeline.spec.prepare.source.strip is True
    assert '"yes " (10 rows)' in report.text and '"yes\\u00a0" (10 rows)' in report.text
    assert any(line.strip() == '"yes": 30 rows, 50.0%' for line in report.summary)


def test_labels_that_differ_in_inner_blanks_are_replaced(tmp_path: Path) -> None:
    """T14: what `strip` cannot settle, `replace` does."""
    rows = [f"{i}.5,{['not  sure', 'not sure', 'sure'][i % 3]}" for i in range(30)]
    report, pipeline = looked(tmp_path, table(tmp_path, "x,label", rows))
    assert pipeline.spec.prepare.source.replace == {"label": {"not  sure": "not sure"}}
    assert "differ in blanks alone" in report.text


def test_windows_line_ends_are_no_part_of_labels(tmp_path: Path, cases: Path) -> None:
    """T14: `yes` and `no`, nothing with a carriage return."""
    report, pipeline = looked(tmp_path, cases / "T14" / "labels_crlf.csv")
    assert pipeline.spec.prepare.source.strip is False
    assert "\\r" not in report.text and '"yes": 30 rows' in report.text


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("empty.csv", "empty.csv is empty"),
        ("blank_lines.csv", "blank_lines.csv is empty"),
        ("header_only.csv", "no rows"),
        ("one_row.csv", "has 1 row;"),
        ("two_rows.csv", "has 2 rows;"),
    ],
)
def test_tiny_files_are_refused_with_the_number_found(tmp_path: Path, cases: Path, name: str, what: str) -> None:
    """T15: and nothing is written."""
    with pytest.raises(DataError, match=what):
        looked(tmp_path, cases / "T15" / name)
    assert not (tmp_path / "made.yaml").exists()


# guesses beyond the cases


def test_tokens_are_missing_in_columns_of_numbers_alone(tmp_path: Path) -> None:
    """NA among numbers is missing there; the same NA among words stays; "?" is missing everywhere."""
    rows = [f"{'NA' if i % 5 == 0 else i * 1.5},{['NA', 'b', '?'][i % 3]},{'ab'[i % 2]}" for i in range(40)]
    report, pipeline = looked(tmp_path, table(tmp_path, "x,word,label", rows))
    source = pipeline.spec.prepare.source
    assert source.missing == ("", "?") and source.missing_by_column == {"x": ("NA",)}
    assert 'x: 8 of 40 cells are "NA"' in report.text and '13 cells are "?"' in report.text


def test_a_file_without_header_gets_names(tmp_path: Path) -> None:
    """The first line is data: columns are numbered, and the user is told to name them."""
    path = tmp_path / "data.data"
    path.write_text("".join(f"{i}.5, {'xyz'[i % 3]}, {'ab'[i % 2]}\n" for i in range(40)), encoding="utf-8")
    with pytest.raises(DataError, match="looks like data, not names") as fault:
        looked(tmp_path, path)
    assert "--target column_3" in str(fault.value)
    report, pipeline = looked(tmp_path, path, "column_3")
    source = pipeline.spec.prepare.source
    assert source.kind == "csv" and source.header == ("column_1", "column_2", "column_3") and source.strip
    assert "put the right names here" in report.text


def test_blanks_round_the_targets_name_are_taken_off(tmp_path: Path) -> None:
    """A header written `x, label` has the column `label`."""
    _, pipeline = looked(tmp_path, table(tmp_path, "x, label", [f"{i}.5, {'ab'[i % 2]}" for i in range(30)]))
    assert pipeline.spec.task.target == "label" and pipeline.spec.prepare.source.strip


def test_an_archive_of_one_file_is_read_and_a_broken_one_refused(tmp_path: Path) -> None:
    """A zip with one file in it is that file."""
    path = table(tmp_path, "x,label", [f"{i}.5,{'ab'[i % 2]}" for i in range(30)])
    with zipfile.ZipFile(tmp_path / "data.csv.zip", "w") as archive:
        archive.write(path, "inside.csv")
    _, pipeline = looked(tmp_path, tmp_path / "data.csv.zip")
    assert pipeline.spec.prepare.source.path == "data.csv.zip"
    (tmp_path / "data.csv.zip").write_bytes(b"PK\x03\x04rest")
    with pytest.raises(DataError, match=r"data\.csv\.zip is no whole zip file"):
        init([tmp_path / "data.csv.zip"], "label", output=tmp_path / "other.yaml")


def test_a_target_that_is_not_there_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    """And the columns that are there."""
    path = table(tmp_path, "x,label", [f"{i}.5,{'ab'[i % 2]}" for i in range(30)])
    with pytest.raises(DataError, match="has: x, label") as fault:
        looked(tmp_path, path, "lable")
    assert "did you mean 'label'" in str(fault.value)


def test_numbers_are_a_regression_and_few_whole_ones_are_classes(tmp_path: Path) -> None:
    """`task` decides where it is given; a skewed target above 0 is learned as its logarithm."""
    rows = [f"{i % 13}.5,{i % 4},{1.3 ** (i % 37):.3f}" for i in range(120)]
    path = table(tmp_path, "x,grade,price", rows)
    _, pipeline = looked(tmp_path, path, "price")
    assert pipeline.spec.task.kind == "regression" and pipeline.spec.task.transform == "log"
    (tmp_path / "made.yaml").unlink()
    _, pipeline = looked(tmp_path, path, "grade")
    assert pipeline.spec.task.kind == "classification"
    (tmp_path / "made.yaml").unlink()
    _, pipeline = looked(tmp_path, path, "grade", task="regression")
    assert pipeline.spec.task.kind == "regression"
    with pytest.raises(SpecError, match="there is no task 'regresion'"):
        init([path], "grade", task="regresion", output=tmp_path / "other.yaml")


def test_a_text_target_is_no_regression(tmp_path: Path) -> None:
    """The value that is not a number is shown."""
    path = table(tmp_path, "x,label", [f"{i}.5,{'ab'[i % 2]}" for i in range(30)])
    with pytest.raises(DataError, match='holds "a", which is not a number'):
        looked(tmp_path, path, task="regression")


def test_copies_of_the_target_are_warned_of(tmp_path: Path) -> None:
    """A column that stands for the target, one to one, is named in the file and in the summary."""
    rows = [f"{i}.5,{['no', 'yes'][i % 2]},{i % 2},{'ab'[i % 3 == 0]}" for i in range(40)]
    report, _ = looked(tmp_path, table(tmp_path, "x,label,flag,other", rows))
    assert "flag stands for the target one to one" in said(report)
    assert "WARNING: stands for the target one to one" in report.text
    assert "other stands" not in said(report)


def test_free_text_is_learned_from_and_running_numbers_are_left_out(tmp_path: Path) -> None:
    """With the evidence, and the reason."""
    rows = [f"{i},it was the {i}th of many long days,{i % 7}.25,{'ab'[i % 2]}" for i in range(60)]
    report, pipeline = looked(tmp_path, table(tmp_path, "line,story,x,label", rows))
    texts = [feature for feature in pipeline.spec.prepare.features if feature.kind == "text"]
    assert [(feature.columns, feature.characters, feature.min_count) for feature in texts] == [(("story",), 4, 1)]
    assert "free text: 8 words a cell on average, at most 33 characters" in report.text
    assert "running number" in pipeline.spec.prepare.ignore["line"]
    assert pipeline.spec.train.model.kind == "mlp"


def test_a_table_of_texts_gets_a_model_of_texts(tmp_path: Path) -> None:
    """Long ones by their words alone; what has no blanks between words is text too."""
    rows = [f"{'sehr ' * 500}lang {i},我要听音乐第{i}首,{'ab'[i % 2]}" for i in range(60)]
    _, pipeline = looked(tmp_path, table(tmp_path, "story,wish,label", rows))
    texts = {feature.columns: feature for feature in pipeline.spec.prepare.features}
    assert texts[("story",)].characters == 0
    assert texts[("story",)].max_characters == 2507
    assert texts[("wish",)].characters == 4
    assert pipeline.spec.train.model.kind == "text_bag"


def test_almost_numbers_are_not_made_categories(tmp_path: Path) -> None:
    """A few words among many numbers: left out, with the words and what to do."""
    rows = [f"{'unknown' if i == 33 else i * 3.7:},{i % 7}.25,{'ab'[i % 2]}" for i in range(90)]
    report, pipeline = looked(tmp_path, table(tmp_path, "size,x,label", rows))
    assert '"unknown"' in pipeline.spec.prepare.ignore["size"] and "missing_by_column" in pipeline.spec.prepare.ignore["size"]
    assert "size:" in said(report)


def test_an_output_name_of_the_graph_is_left_out(tmp_path: Path) -> None:
    """A feature called `probability` would clash with the exported graph's output."""
    rows = [f"{i}.5,{i % 7}.25,{'ab'[i % 2]}" for i in range(40)]
    _, pipeline = looked(tmp_path, table(tmp_path, "probability,x,kind", rows), "kind")
    assert "name of an output" in pipeline.spec.prepare.ignore["probability"]


def test_nothing_left_to_learn_from_is_an_error(tmp_path: Path) -> None:
    """Each column with its reason."""
    rows = [f"{i},same,{'ab'[i % 2]}" for i in range(40)]
    with pytest.raises(DataError, match="no column is left") as fault:
        looked(tmp_path, table(tmp_path, "line,const,label", rows))
    assert "line:" in str(fault.value) and "const:" in str(fault.value)


def test_an_existing_file_is_kept_unless_forced(tmp_path: Path) -> None:
    """Work on a pipeline file is never lost."""
    path = table(tmp_path, "x,label", [f"{i}.5,{'ab'[i % 2]}" for i in range(30)])
    mine = tmp_path / "mine.yaml"
    mine.write_text("mine", encoding="utf-8")
    with pytest.raises(SpecError, match="is there already"):
        init([path], "label", output=mine)
    assert mine.read_text(encoding="utf-8") == "mine"
    init([path], "label", output=mine, force=True)
    assert load_pipeline(mine).spec.name == "data"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data.csv", "mine.yaml"]


def test_paths_are_relative_to_the_pipeline_file(tmp_path: Path) -> None:
    """Wherever the command starts."""
    (tmp_path / "data").mkdir()
    (tmp_path / "pipes").mkdir()
    path = table(tmp_path / "data", "x,label", [f"{i}.5,{'ab'[i % 2]}" for i in range(30)])
    report = init([path], "label", output=tmp_path / "pipes" / "p.yaml")
    assert load_pipeline(report.pipeline).spec.prepare.source.path == "../data/data.csv"
    assert str(tmp_path) not in report.text


def test_compressed_and_parquet_files_are_read(tmp_path: Path) -> None:
    """By ending; a column of a typed file keeps its type."""
    import pyarrow as pa
    from pyarrow import parquet as pq

    text = "x,label\n" + "".join(f"{i}.5,{'ab'[i % 2]}\n" for i in range(30))
    (tmp_path / "data.csv.gz").write_bytes(gzip.compress(text.encode()))
    _, pipeline = looked(tmp_path, tmp_path / "data.csv.gz")
    assert columns(pipeline, "numeric") == ["x"]
    typed = pa.table(
        {
            "when": pa.array([1_700_000_000_000_000 + i * 86_400_000_000 for i in range(30)], pa.timestamp("us")),
            "n": pa.array([None if i == 3 else i % 5 for i in range(30)], pa.int64()),
            "tags": pa.array([["a"]] * 30),
            "label": [["a", "b"][i % 2] for i in range(30)],
        }
    )
    pq.write_table(typed, tmp_path / "data.parquet")
    (tmp_path / "made.yaml").unlink()
    _, pipeline = looked(tmp_path, tmp_path / "data.parquet")
    assert (columns(pipeline, "datetime"), columns(pipeline, "numeric")) == (["when"], ["n"])
    assert "list" in pipeline.spec.prepare.ignore["tags"]


def test_a_delimiter_is_not_a_decimal_comma(tmp_path: Path) -> None:
    """Without a header to go by, the cut that gives numbers is taken."""
    path = tmp_path / "data.csv"
    path.write_text("".join(f"{i},5;{i % 3},25;{'ab'[i % 2]}\n" for i in range(40)), encoding="utf-8")
    found = dialect([path], "column_3", tmp_path)
    assert found.settings["delimiter"] == ";" and found.headless


def test_quotes_that_are_letters_are_found(tmp_path: Path) -> None:
    """A lone sign " in running text does not enclose a field."""
    rows = [f"{i % 7}.5\t{'12 x ' + chr(34) if i == 3 else 'word'}\t{'ab'[i % 2]}" for i in range(30)]
    rows[4] = '1.5\t"tall\ta'
    _, pipeline = looked(tmp_path, table(tmp_path, "x\tsize\tlabel", rows, "data.tsv"))
    assert pipeline.spec.prepare.source.quote is None  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "text",
    ["no", "a: b", "- x", "#", "", " lead", 'quote"d', "50%", "<=50K", "tab\there", "yes\u00a0", "naïve", "{a}", "1", "true", "\x85", "😀"],
)
def test_every_text_survives_the_way_through_yaml(text: str) -> None:
    """As a scalar, and in a list in brackets."""
    from mlpipe.yamlfile import parse_yaml, plain

    assert plain(parse_yaml(f"a: {scalar(text)}\nb: {flow([text, 'x'] * 30, 3)}\n", "f")) == {"a": text, "b": [text, "x"] * 30}


@pytest.mark.data
@pytest.mark.parametrize(
    ("file", "target"),
    [
        ("adult/adult-train.csv", "column_15"),
        ("ames_housing/ames.csv", "price"),
        ("california_housing/housing.csv", "median_house_value"),
        ("bike_sharing/hour.csv", "cnt"),
        ("telco_churn/Telco-Customer-Churn.csv", "Churn"),
        ("titanic/titanic.csv", "Survived"),
        ("penguins/penguins.csv", "species"),
        ("wine_quality/winequality-red.csv", "column_12"),
    ],
)
def test_real_tables_give_a_file_that_loads(tmp_path: Path, shared_data: Path, file: str, target: str) -> None:
    """Every column of the table has its place in it."""
    report = init([shared_data / file], target, output=tmp_path / "made.yaml")
    spec = load_pipeline(report.pipeline).spec
    source = spec.prepare.source
    names = source.names(shared_data / file)
    placed = [*spec.feature_columns(), *spec.prepare.keys, *spec.prepare.ignore, target]
    assert sorted(placed) == sorted(names)
    if file.startswith("adult"):
        assert source.strip and source.missing == ("", "?") and "1,836 in column_2" in report.text
    if file.startswith("telco"):
        assert "TotalCharges" in columns(load_pipeline(report.pipeline), "numeric") and spec.prepare.keys == ("customerID",)


def test_infinite_cells_leave_a_column_of_numbers_one(tmp_path: Path, cases: Path) -> None:
    """R02a: a column with `Infinity` and `-inf` among its numbers is numeric, with a remark; prepare refuses those cells."""
    report = init([cases / "R02/inf_cell.csv"], "label", output=tmp_path / "p.yaml")
    spec = load_pipeline(report.pipeline).spec
    assert {feature.kind for feature in spec.prepare.features if "x2" in feature.columns} == {"numeric"}
    assert any('"Infinity"' in line and "refuses" in line for line in report.summary)


def test_texts_with_gaps_and_a_category_called_nan(tmp_path: Path) -> None:
    """Case T17: `colour` is a category with 7 missing cells, `nan` stays a value, and no gap is left after encoding."""
    shutil.copy(CASES / "T17" / "strings.csv", tmp_path / "strings.csv")
    report = init([tmp_path / "strings.csv"], "label", output=tmp_path / "strings.yaml")
    spec = load_pipeline(tmp_path / "strings.yaml").spec
    kinds = {column: feature.kind for feature in spec.prepare.features for column in feature.columns}
    assert kinds == {"colour": "category", "size": "category", "x": "numeric"}
    assert any(line.startswith("colour") and " 7 " in line for line in report.summary)
    outcome = chain(tmp_path / "strings.yaml", tmp_path / "runs", until="prepare")
    prepared = outcome["prepare"].manifest
    rows = pa.concat_tables([pq.read_table(prepared.path(f"{name}-rows")) for name in ("train", "valid", "test")])
    assert rows["colour"].null_count == 7
    assert "nan" in rows["size"].to_pylist()
    for split in ("train", "valid", "test"):
        for file in prepared.path(f"encoded-{split}").glob("*.npy"):
            assert np.isfinite(np.load(file)).all()


def test_a_folder_of_documents_has_its_folders_for_classes(tmp_path: Path) -> None:
    """Nothing is converted to say so; the file runs as it is written."""
    for i in range(16):
        path = tmp_path / "post" / ("bills" if i % 2 else "notes") / f"{i}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{'pay' if i % 2 else 'read'} this {i}", encoding="utf-8")
    (tmp_path / "post" / "loose.html").write_text("<p>x</p>", encoding="utf-8")
    report = init([tmp_path / "post"], "folder", output=tmp_path / "made.yaml")
    spec = load_pipeline(tmp_path / "made.yaml").spec
    assert (spec.prepare.source.kind, spec.prepare.source.path) == ("documents", "post")
    assert spec.prepare.split.stratify is True
    assert spec.task.missing_target == "drop"
    assert "bills: 8 documents" in report.text and "1 files lie in no folder" in report.text
    assert report.summary[-1].startswith("next: look through it")
    with pytest.raises(DataError, match="no column 'kind' to learn"):
        init([tmp_path / "post"], "kind", output=tmp_path / "other.yaml")
    with pytest.raises(DataError, match="has 0 folders with documents"):
        init([tmp_path / "post" / "bills"], "folder", output=tmp_path / "other.yaml")
