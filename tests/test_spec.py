"""spec.py: a pipeline file is read as it is written; every fault is shown at once, each with its line."""

from __future__ import annotations

import textwrap

import pytest

from mlpipe.errors import SpecError
from mlpipe.spec import PipelineSpec, json_schema, load_pipeline
from mlpipe.yamlfile import apply_override, parse_yaml, plain

GOOD = """\
name: adult
seed: 7
task: {kind: classification, target: income}
prepare:
  source:
    kind: csv
    path: data.csv
  features:
    - {kind: numeric, columns: [age, hours]}
    - {kind: category, columns: [work], min_count: 10}
train:
  epochs: 3
"""


@pytest.fixture
def load(tmp_path):
    def loader(text: str, *overrides: str):
        file = tmp_path / "p.yaml"
        file.write_text(textwrap.dedent(text), encoding="utf-8")
        return load_pipeline(file, overrides).spec

    return loader


def faults(load, text: str, *overrides: str) -> list[str]:
    with pytest.raises(SpecError) as caught:
        load(text, *overrides)
    assert caught.value.exit_code == 2
    return caught.value.faults or [caught.value.message]


def test_a_small_file_is_whole_by_its_defaults(load):
    spec = load(GOOD)
    assert (spec.name, spec.seed, spec.train.epochs, spec.train.batch_size) == ("adult", 7, 3, 256)
    assert spec.feature_columns() == ("age", "hours", "work")
    assert {name: column.type for name, column in spec.raw_columns().items()} == {
        "age": "number",
        "hours": "number",
        "work": "text",
        "income": "text",
    }
    assert spec.metrics == ("accuracy", "f1", "roc_auc", "log_loss")


def test_all_faults_are_shown_at_once_each_with_its_line(load):
    found = faults(
        load,
        """\
        name: "two words"
        seed: -1
        tsk: {}
        task: {kind: clasification, target: income}
        prepare:
          source: {kind: csv, path: data.csv, delimeter: ";"}
          features:
            - {kind: numeric, columns: [age], scale: standrad}
            - {columns: [work]}
        train:
          epochs: 0
          optimiser: {lr: fast}
        """,
    )
    expected = [
        ("p.yaml, line 1: name:", "match pattern"),
        ("p.yaml, line 2: seed:", "-1"),
        ("p.yaml, line 3: tsk: unknown name 'tsk'", "did you mean 'task'?"),
        ("p.yaml, line 4: task", "did you mean 'classification'?"),
        ("p.yaml, line 6: prepare.source.delimeter", "did you mean 'delimiter'?"),
        ("p.yaml, line 8: prepare.features.0.scale", "did you mean 'standard'?"),
        ("p.yaml, line 9: prepare.features.1", "`kind` is missing"),
        ("p.yaml, line 11: train.epochs", "greater than or equal to 1"),
        ("p.yaml, line 12: train.optimiser.lr", "fast"),
    ]
    for start, words in expected:
        assert [f for f in found if f.startswith(start) and words in f], (start, found)
    assert len(found) == len(expected), found


def test_a_missing_section_is_named(load):
    (fault,) = faults(load, "name: a\ntask: {kind: regression, target: y}\n")
    assert fault.endswith("prepare: 'prepare' is missing")


@pytest.mark.parametrize("word", ["no", "yes", "on", "off", "NO", "y"])
def test_words_that_yaml_1_1_took_for_truth_values_stay_text(load, word):
    spec = load(GOOD.replace("income", word).replace("[age, hours]", f"[age, {word}x]"), f"prepare.source.missing=[{word}]")
    assert (spec.task.target, spec.prepare.source.missing) == (word, (word,))


@pytest.mark.parametrize("date", ["2020-01-01", "1900-01-01 00:00:00", "2020-01-01T10:00:00+02:00", "2001-12-14t21:59:43.10-05:00"])
def test_dates_stay_the_text_that_they_are(load, date):
    """A missing token that looks like a date is compared with text, digit for digit."""
    assert load(GOOD + f"export: {{description: {date}}}\n").export.description == date


def test_a_key_that_stands_twice_is_refused_with_its_line(load):
    (fault,) = faults(load, GOOD.replace("  epochs: 3", "  epochs: 3\n  epochs: 4"))
    assert "line 13" in fault
    assert "duplicate" in fault


def test_a_file_that_is_no_yaml_is_refused_with_its_line(load):
    (fault,) = faults(load, "name: a\n  task: [\n")
    assert "line 2" in fault


@pytest.mark.parametrize("text", ["", "just words", "- a\n- b\n", "5"])
def test_a_file_without_sections_is_refused(load, text):
    assert "no sections" in faults(load, text)[0]


def test_a_file_that_is_not_there_hints_at_its_neighbour(tmp_path):
    (tmp_path / "adult.yaml").write_text(GOOD)
    with pytest.raises(SpecError, match=r"did you mean 'adult.yaml'"):
        load_pipeline(tmp_path / "adlut.yaml")


def test_bytes_that_are_not_utf8_are_refused(tmp_path):
    (tmp_path / "p.yaml").write_bytes(b"name: \xff\n")
    with pytest.raises(SpecError, match="cannot be read"):
        load_pipeline(tmp_path / "p.yaml")


@pytest.mark.parametrize(
    ("override", "get", "value"),
    [
        ("train.epochs=5", lambda s: s.train.epochs, 5),
        ("train.optimiser.lr=1e-2", lambda s: s.train.optimiser.lr, 0.01),
        ("train.patience=null", lambda s: s.train.patience, None),
        ("task.target=no", lambda s: s.task.target, "no"),
        ("prepare.split.stratify=true", lambda s: s.prepare.split.stratify, True),
        ("prepare.features.1.min_count=3", lambda s: s.prepare.features[1].min_count, 3),
        ("prepare.features.0.columns=[a, b]", lambda s: s.prepare.features[0].columns, ("a", "b")),
        ("prepare.source.path=a=b.csv", lambda s: s.prepare.source.path, "a=b.csv"),
        ('train.class_weights={"1": 2.5}', lambda s: s.train.class_weights, {"1": 2.5}),
        ("train.precision=16", lambda s: s.train.precision, "16"),
        ("export.description=", lambda s: s.export.description, ""),
        ('export.description="5"', lambda s: s.export.description, "5"),
    ],
)
def test_set_takes_a_value_of_the_type_that_yaml_gives_it(load, override, get, value):
    found = get(load(GOOD, override))
    assert found == value
    assert type(found) is type(value)


def test_a_fault_of_a_set_value_is_told_of_the_option_and_not_of_a_line(load):
    found = faults(load, GOOD, "train.epochs=0", "train.optimizer.lr=1")
    assert any(f.startswith("--set train.epochs:") for f in found)
    assert any("'optimizer'" in f and "did you mean 'optimiser'?" in f for f in found)


@pytest.mark.parametrize(
    "override", ["train.epochs", "=5", ".a=1", "a..b=1", "prepare.features.7.min_count=1", "name.x=1", "train.epochs=["]
)
def test_a_set_option_of_no_use_is_refused(load, override):
    with pytest.raises(SpecError, match="--set"):
        load(GOOD, override)


def test_later_set_options_win_and_leave_the_rest_alone():
    tree = parse_yaml("a: {b: 1, c: 2}", "x")
    apply_override(tree, "a.b=3")
    apply_override(tree, "a.b=4")
    assert plain(tree) == {"a": {"b": 4, "c": 2}}


def test_variables_are_expanded_except_where_something_lies(load, monkeypatch):
    """No path or password of this machine may enter a manifest."""
    monkeypatch.setenv("MLPIPE_TEST_WHERE", "/secret")
    text = GOOD.replace("data.csv", "'${env:MLPIPE_TEST_WHERE}/data.csv'") + "export: {description: '${env:MLPIPE_TEST_WHERE}'}\n"
    spec = load(text)
    assert spec.prepare.source.path == "${env:MLPIPE_TEST_WHERE}/data.csv"
    assert spec.export.description == "/secret"
    assert "/secret" not in spec.prepare.model_dump_json()


def test_a_variable_that_is_not_set_is_a_fault_with_its_line(load, monkeypatch):
    monkeypatch.delenv("MLPIPE_TEST_WHERE", raising=False)
    (fault,) = faults(load, GOOD + "export: {description: '${env:MLPIPE_TEST_WHERE}'}\n")
    assert "line 13" in fault
    assert "MLPIPE_TEST_WHERE is not set" in fault


@pytest.mark.parametrize(
    ("change", "line", "words"),
    [
        (("[age, hours]", "[age, income]"), 9, "is the target; as a feature it would give the answer away"),
        (("[age, hours]", "[age, age]"), 9, "stands in two features"),
        (("[work]", "[age]"), 10, "stands in two features"),
        (("[work]", "[probability]"), 10, "name of an output"),
        (("train:\n", "train:\n  monitor: acuracy\n"), 12, "did you mean 'accuracy'?"),
        (("train:\n", "train:\n  monitor: rmse\n"), 12, "no metric of classification"),
        (("train:\n", "evaluate: {metrics: [r2]}\ntrain:\n"), 11, "no metric of classification"),
        (("train:\n", "evaluate: {gates: [{metric: roc_auc}]}\ntrain:\n"), 11, "at_least"),
        (("train:\n", "evaluate: {gates: [{metric: roc_auc, at_least: .nan}]}\ntrain:\n"), 11, "finite"),
        (("classification", "regression"), None, None),
    ],
)
def test_faults_between_sections_have_their_lines(load, change, line, words):
    text = GOOD.replace(*change)
    if words is None:
        assert load(text).metrics == ("rmse", "mae", "r2")
        return
    found = faults(load, text)
    assert [f for f in found if f"line {line}:" in f and words in f], found


def test_only_classes_are_stratified_and_weighted(load):
    text = GOOD.replace("classification", "regression")
    found = faults(load, text, "prepare.split.stratify=true", "train.class_weights=balanced")
    assert len(found) == 2


def test_a_split_by_time_reads_its_column_as_a_time(load):
    spec = load(GOOD.replace("  features:", "  split: {kind: time, by: when, format: '%d/%m/%Y'}\n  features:"))
    column = spec.raw_columns()["when"]
    assert (column.type, column.format) == ("timestamp", "%d/%m/%Y")
    found = faults(load, GOOD.replace("  features:", "  split: {kind: time, by: age}\n  features:"))
    assert "not a datetime column" in found[0]


def test_a_split_by_a_column_of_values_needs_a_column_of_text(load):
    found = faults(load, GOOD.replace("  features:", "  split: {kind: column, by: age}\n  features:"))
    assert [f for f in found if "line 8" in f and "'age'" in f], found


def test_ignored_columns_may_be_a_list(load):
    spec = load(GOOD.replace("  features:", "  ignore: [id]\n  features:"))
    assert spec.prepare.ignore == {"id": "named under prepare.ignore"}


@pytest.mark.parametrize("key", ["true", "1.50", "007", "1e3", "null"])
def test_names_of_which_yaml_loses_the_spelling_are_asked_for_in_quotes(load, key):
    """`replace: {income: {true: yes}}` would match no cell and say nothing."""
    text = GOOD.replace("  features:", f"  source_note: x\n  ignore: {{{key}: why}}\n  features:")
    assert "line 9: the name" in faults(load, text)[0]
    quoted = load(GOOD.replace("  features:", f"  ignore: {{'{key}': why, 7: why}}\n  features:"))
    assert quoted.prepare.ignore == {key: "why", "7": "why"}


def test_anchors_and_merges_are_read(load):
    spec = load(
        GOOD.replace("{kind: numeric, columns: [age, hours]}", "&n {kind: numeric, columns: [age]}\n    - {<<: *n, columns: [hours]}")
    )
    assert [f.columns for f in spec.prepare.features] == [("age",), ("hours",), ("work",)]


def test_settings_survive_a_dump_and_a_second_reading(load):
    spec = load(GOOD)
    assert PipelineSpec.model_validate(spec.model_dump(mode="json")) == spec


def test_the_json_schema_is_a_valid_schema_that_admits_good_files_and_refuses_others(load):
    jsonschema = pytest.importorskip("jsonschema")
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    assert not list(validator.iter_errors(plain(parse_yaml(GOOD, "x"))))
    assert list(validator.iter_errors({"name": "a", "tsk": {}}))
    assert list(validator.iter_errors({**plain(parse_yaml(GOOD, "x")), "seed": -1}))


def test_tags_make_no_objects(tmp_path):
    """A tag that asks Python's YAML for an object runs nothing: the value stays what it is, and is refused as a setting."""
    marker = tmp_path / "marker"
    file = tmp_path / "p.yaml"
    file.write_text(f"name: !!python/object/apply:os.system ['touch {marker}']\n", encoding="utf-8")
    with pytest.raises(SpecError):
        load_pipeline(file)
    assert not marker.exists()
