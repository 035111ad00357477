"""Stage prepare: typed rows, accounting, faults with file and line, columns that carry nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet as pq

from mlpipe.errors import DataError
from mlpipe.stages.encoded import read_tensors
from tests.helpers import CASES, chain, small, small_settings, table_csv, write_pipeline


def case(tmp_path: Path, file: str, **changes: object) -> Path:
    """A pipeline on one file of a case."""
    target = tmp_path / Path(file).name
    target.write_bytes((CASES / file).read_bytes())
    return write_pipeline(tmp_path / "p.yaml", small_settings(prepare__source={"kind": "csv", "path": target.name}, **changes))


def rows_of(run: Path, *columns: str) -> dict[str, list[object]]:
    """The typed raw rows of all splits."""
    found: dict[str, list[object]] = {name: [] for name in columns}
    for split in ("train", "valid", "test"):
        table = pq.read_table(run / f"prepare/{split}.parquet", columns=list(columns))
        for name in columns:
            found[name] += table[name].to_pylist()
    return found


def test_infinite_cells_are_named_with_column_and_lines(tmp_path: Path) -> None:
    """R02a: `Infinity` and `-inf` are no numbers; both lines are told, nothing is written."""
    file = case(tmp_path, "R02/inf_cell.csv", prepare__features=[{"kind": "numeric", "columns": ["x1", "x2"]}])
    with pytest.raises(DataError, match="2 cells") as fault:
        chain(file, tmp_path / "runs", until="prepare")
    told = str(fault.value)
    assert "inf_cell.csv, line 6, column 'x2': 'Infinity'" in told
    assert "inf_cell.csv, line 35, column 'x2': '-inf'" in told
    assert not (tmp_path / "runs/small/prepare").exists()


def test_infinite_cells_may_count_as_missing(tmp_path: Path) -> None:
    """What the file lists as missing is missing."""
    source = {"kind": "csv", "path": "inf_cell.csv", "missing": ["", "Infinity", "-inf"]}
    (tmp_path / "inf_cell.csv").write_bytes((CASES / "R02/inf_cell.csv").read_bytes())
    features = [{"kind": "numeric", "columns": ["x1", "x2"]}]
    file = write_pipeline(tmp_path / "p.yaml", small_settings(prepare__source=source, prepare__features=features))
    chain(file, tmp_path / "runs", until="prepare")
    assert rows_of(tmp_path / "runs/small", "x2")["x2"].count(None) == 2


def test_long_identifiers_stay_whole_as_keys(tmp_path: Path) -> None:
    """T07: 59 ids of 19 digits, digit for digit, and one missing; as numbers they are refused with their line."""
    features = [{"kind": "numeric", "columns": ["x"]}]
    file = case(tmp_path, "T07/bigid.csv", prepare__keys=["order_id"], prepare__features=features)
    chain(file, tmp_path / "runs", until="prepare")
    ids = rows_of(tmp_path / "runs/small", "order_id")["order_id"]
    assert ids.count(None) == 1
    assert len(set(ids) - {None}) == 59
    assert "1582218195625938945" in ids
    file = case(tmp_path, "T07/bigid.csv", prepare__features=[{"kind": "numeric", "columns": ["x", "order_id"]}])
    with pytest.raises(DataError, match=r"line 2, column 'order_id': '1582218195625938945'"):
        chain(file, tmp_path / "runs", until="prepare")


def test_columns_that_carry_nothing_are_named_and_harmless(tmp_path: Path) -> None:
    """T13: constant, empty, one value a row: named with the reason; every encoded value finite, few columns."""
    features = [{"kind": "numeric", "columns": ["const", "empty", "x"]}, {"kind": "category", "columns": ["row_uid"]}]
    manifest = chain(case(tmp_path, "T13/useless.csv", prepare__features=features), tmp_path / "runs", until="prepare")["prepare"].manifest
    notes = "\n".join(manifest.results["notes"])
    for name, why in (("const", "constant"), ("empty", "no value"), ("row_uid", "different value in each")):
        assert any(line.startswith(f"{name}:") and why in line for line in manifest.results["notes"]), notes
    assert manifest.results["encoded_width"] < 50
    for split in ("train", "valid", "test"):
        tensors = read_tensors(manifest.path(f"encoded-{split}"))
        assert all(np.isfinite(tensor).all() for tensor in tensors.values())
    train = read_tensors(manifest.path("encoded-train"))["numeric"]
    assert np.array_equal(train[:, :2], np.zeros_like(train[:, :2]))


def test_fitted_numbers_come_from_train_rows_alone(tmp_path: Path) -> None:
    """E04: the mean is 6.4, not 200,005.12."""
    from mlpipe.schema import load_schema

    split = {"kind": "order", "valid": 0.0, "test": 0.2}
    features = [{"kind": "numeric", "columns": ["x"], "fill": "mean"}]
    file = case(tmp_path, "E04/outlier_at_end.csv", prepare__split=split, prepare__features=features)
    manifest = chain(file, tmp_path / "runs", until="prepare")["prepare"].manifest
    fitted = load_schema(manifest.path("schema")).features[0]
    lines = (CASES / "E04/outlier_at_end.csv").read_text().splitlines()[1:81]
    expected = np.array([float(line.split(",")[0]) for line in lines])
    assert fitted.mean == pytest.approx(expected.mean())  # type: ignore[union-attr]
    assert fitted.deviation == pytest.approx(expected.std())  # type: ignore[union-attr]
    assert abs(fitted.fill - 6.4) < 0.01  # type: ignore[union-attr]


def test_every_row_is_accounted_for(tmp_path: Path) -> None:
    """read = kept + dropped by reason; rows without a target end prepare unless they are dropped on purpose."""
    table_csv(tmp_path / "train.csv", 50)
    text = (tmp_path / "train.csv").read_text().replace(",no\n", ",\n", 3)
    (tmp_path / "train.csv").write_text(text)
    file = small(tmp_path)
    with pytest.raises(DataError, match="3 rows have no value in the target 'label'") as fault:
        chain(file, tmp_path / "runs", until="prepare")
    assert str(fault.value).count("train.csv, line ") == 3
    manifest = chain(file, tmp_path / "runs", until="prepare", overrides=["task.missing_target=drop"])["prepare"].manifest
    assert manifest.results["rows"] == {"read": 50, "kept": 47, "dropped": {"no target": 3}}
    assert sum(split["rows"] for split in manifest.results["splits"].values()) == 47


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "empty"),
        ("x1,x2,colour,label\n", "no rows"),
        ("x1,x2,colour,label\n1,2,red,no\n", "the split .* is empty: 1 rows"),
        ("\n\n\n", "empty"),
    ],
)
def test_tables_with_nothing_in_them_are_refused(tmp_path: Path, content: str, words: str) -> None:
    """Nothing, only a header, one row: a clean failure and no output that a later stage would accept (T15)."""
    file = small(tmp_path)
    (tmp_path / "train.csv").write_text(content)
    with pytest.raises(DataError, match=words):
        chain(file, tmp_path / "runs", until="prepare", overrides=["prepare.split.valid=0", "prepare.split.test=0"])
    assert not (tmp_path / "runs/small/prepare").exists()


def test_empty_split_is_refused_with_numbers(tmp_path: Path) -> None:
    """A table too small for its splits: the split is named, with the numbers found."""
    table_csv(tmp_path / "train.csv", 4)
    with pytest.raises(DataError, match=r"the split '(valid|test|train)' is empty: 4 rows"):
        chain(small(tmp_path), tmp_path / "runs", until="prepare")


def test_target_beyond_the_transform_is_placed(tmp_path: Path) -> None:
    """A logarithm of 0: file, line, column, value."""
    file = small(
        tmp_path,
        task={"kind": "regression", "target": "x1", "transform": "log"},
        prepare__features=[{"kind": "numeric", "columns": ["x2"]}],
    )
    with pytest.raises(DataError, match=r"train\.csv, line 2, column 'x1': 0\.0"):
        chain(file, tmp_path / "runs", until="prepare")


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "csv.bz2", "csv.xz", "csv.zst", "parquet", "jsonl"])
def test_every_source_gives_the_same_prepared_rows(tmp_path: Path, kind: str) -> None:
    """One table in every format: equal typed rows, equal encoded tensors."""
    import bz2
    import gzip
    import json
    import lzma

    import pyarrow as pa
    import zstandard

    table_csv(tmp_path / "train.csv")
    data = (tmp_path / "train.csv").read_bytes()
    pack = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zst": zstandard.compress, "csv": bytes}
    records = [dict(zip(("x1", "x2", "colour", "label"), line.split(","), strict=True)) for line in data.decode().splitlines()[1:]]
    if kind.startswith("csv"):
        (tmp_path / f"t.{kind}").write_bytes(pack[kind.split(".")[-1]](data))
    elif kind == "jsonl":
        rows = [{**r, "x1": float(r["x1"]), "x2": int(r["x2"]) if r["x2"] else None, "colour": r["colour"] or None} for r in records]
        (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        x2 = pa.array([int(r["x2"]) if r["x2"] else None for r in records], pa.int32())
        columns = {"x1": [float(r["x1"]) for r in records], "x2": x2, "colour": [r["colour"] or None for r in records]}
        pq.write_table(pa.table({**columns, "label": [r["label"] for r in records]}), tmp_path / "t.parquet")
    plain = chain(small(tmp_path), tmp_path / "runs", until="prepare")["prepare"].manifest
    source = {"kind": kind.split(".")[0], "path": f"t.{kind}"}
    other = chain(small(tmp_path, name="other", prepare__source=source), tmp_path / "runs", until="prepare")["prepare"].manifest
    assert plain.results["splits"] == other.results["splits"]
    for role in ("encoded-train", "encoded-test", "schema", "encoder"):
        assert plain.output(role)["digest"] == other.output(role)["digest"]


def test_a_table_in_several_files_is_one_table(tmp_path: Path) -> None:
    """A glob and a list read as one; columns may stand in another order; a file that lacks one is named."""
    table_csv(tmp_path / "train.csv")
    lines = (tmp_path / "train.csv").read_text().splitlines()
    (tmp_path / "part-1.csv").write_text("\n".join(lines[:61]) + "\n")
    turned = [",".join(reversed(line.split(","))) for line in [lines[0], *lines[61:]]]
    (tmp_path / "part-2.csv").write_text("\n".join(turned) + "\n")
    whole = chain(small(tmp_path), tmp_path / "runs", until="prepare")["prepare"].manifest
    for name, path in (("glob", "part-*.csv"), ("list", ["part-1.csv", "part-2.csv"])):
        parts = chain(small(tmp_path, name=name, prepare__source={"kind": "csv", "path": path}), tmp_path / "runs", until="prepare")
        assert parts["prepare"].manifest.results["splits"] == whole.results["splits"]
    (tmp_path / "part-3.csv").write_text("x1,label\n1,no\n")
    with pytest.raises(DataError, match=r"part-3\.csv"):
        chain(small(tmp_path, name="glob", prepare__source={"kind": "csv", "path": "part-*.csv"}), tmp_path / "runs", until="prepare")


@pytest.mark.parametrize("workers", [1, 2])
def test_ahead_and_mapped_keep_order_and_faults(workers: int) -> None:
    """What is made ahead comes in order; what the maker raises is raised where it is used."""
    from mlpipe.stages.ahead import ahead, mapped

    def items() -> object:
        yield from range(20)
        raise DataError("at the end")

    got: list[int] = []
    with pytest.raises(DataError, match="at the end"):
        got.extend(mapped(lambda i: i * 2, ahead(items(), depth=workers), workers))  # type: ignore[arg-type]
    assert got == [i * 2 for i in range(20)][: len(got)]
    assert len(got) >= 20 - workers


@pytest.mark.parametrize("twin", ["yes ", "yes\u00a0", "yes\u200b", "\uff59es"])
def test_labels_that_differ_only_in_blanks_are_refused(tmp_path: Path, twin: str) -> None:
    """T14: the spellings are shown with the blanks made visible."""
    table_csv(tmp_path / "train.csv")
    text = (tmp_path / "train.csv").read_text(encoding="utf-8").replace(",yes\n", f",{twin}\n", 9)
    (tmp_path / "train.csv").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match="differ only in blanks") as fault:
        chain(small(tmp_path), tmp_path / "runs", until="prepare")
    assert ascii(twin) in str(fault.value)
    if twin == "yes ":
        chain(small(tmp_path), tmp_path / "runs", until="prepare", overrides=["prepare.source.strip=true"])


def test_an_empty_text_is_missing_whatever_the_list_says(tmp_path: Path) -> None:
    """`missing: ["?"]` alone: an empty label is no class of its own, an empty colour is missing in file and graph alike."""
    table_csv(tmp_path / "train.csv")
    (tmp_path / "train.csv").write_text((tmp_path / "train.csv").read_text().replace(",no\n", ",\n", 5))
    features = [{"kind": "numeric", "columns": ["x1"]}, {"kind": "category", "columns": ["colour"]}]
    file = small(tmp_path, prepare__source={"kind": "csv", "path": "train.csv", "missing": ["?"]}, prepare__features=features)
    with pytest.raises(DataError, match="5 rows have no value in the target"):
        chain(file, tmp_path / "runs", until="prepare")
    manifest = chain(file, tmp_path / "runs", until="prepare", overrides=["task.missing_target=drop"])["prepare"].manifest
    assert set(manifest.results["target"]["classes"]) == {"no", "yes"}
    assert "" not in rows_of(tmp_path / "runs/small", "colour")["colour"]


def test_rows_without_a_group_are_refused(tmp_path: Path) -> None:
    """They would all land in one split together."""
    for split in ({"kind": "group", "by": ["colour"]}, {"kind": "random", "key": ["colour"]}):
        with pytest.raises(DataError, match="rows have no 'colour', by which they are split"):
            chain(small(tmp_path, prepare__split=split), tmp_path / "runs", until="prepare")


def test_times_that_mean_another_moment_elsewhere_are_refused(tmp_path: Path) -> None:
    """Zoned and bare times in one column; %Z, which knows only the machine's own zones."""
    from mlpipe.errors import SpecError

    rows = [f"2024-01-{i % 28 + 1:02d}T10:00:00{'+05:00' if i % 2 else ''},{'yes' if i % 3 else 'no'}" for i in range(60)]
    (tmp_path / "train.csv").write_text("t,label\n" + "\n".join(rows) + "\n")
    with pytest.raises(DataError, match="some times have a zone"):
        chain(small(tmp_path, prepare__features=[{"kind": "datetime", "columns": ["t"]}]), tmp_path / "runs", until="prepare")
    with pytest.raises(SpecError, match="%z"):
        chain(small(tmp_path, prepare__features=[{"kind": "datetime", "columns": ["t"], "format": "%Y %Z"}]), tmp_path / "runs")


def test_a_missing_token_takes_no_neighbours_of_a_long_identifier(tmp_path: Path) -> None:
    """A typed column of 19-digit integers: exactly the one listed is missing."""
    import pyarrow as pa

    first = 1582218195625938945
    columns = {"id": [first + i for i in range(160)], "x": [float(i % 7) for i in range(160)], "label": ["no", "yes"] * 80}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    source = {"kind": "parquet", "path": "t.parquet", "missing": [str(first)]}
    file = small(tmp_path, prepare__source=source, prepare__keys=["id"], prepare__features=[{"kind": "numeric", "columns": ["x"]}])
    chain(file, tmp_path / "runs", until="prepare")
    ids = rows_of(tmp_path / "runs/small", "id")["id"]
    assert ids.count(None) == 1
    assert len(set(ids)) == 160


def test_test_rows_none_of_whose_classes_train_has_are_refused(tmp_path: Path) -> None:
    """Labels spelt in two ways in two files: every test row would count as wrong, so prepare says so at once."""
    table_csv(tmp_path / "train.csv")
    table_csv(tmp_path / "test.csv", 30, classes=("NO", "YES"))
    with pytest.raises(DataError, match="none of the 30 test rows has a class of the train rows") as fault:
        chain(small(tmp_path, prepare__test={"kind": "csv", "path": "test.csv"}), tmp_path / "runs", until="prepare")
    assert "YES" in str(fault.value)
    assert "yes" in str(fault.value)


def test_keys_twice_and_a_target_left_out_are_faults(tmp_path: Path) -> None:
    """Both are shown, with their places."""
    from mlpipe.errors import SpecError

    with pytest.raises(SpecError, match="2 faults") as fault:
        chain(small(tmp_path, prepare__keys=["x1", "x1"], prepare__ignore=["label"]), tmp_path / "runs")
    assert "'x1' stands twice" in str(fault.value)
    assert "cannot be left out" in str(fault.value)


def test_zoned_and_bare_times_in_different_chunks_do_not_mix(tmp_path: Path) -> None:
    """Two files are two chunks at least: the column is looked at as a whole."""
    for name, zone in (("a", ""), ("b", "Z")):
        rows = [f"2024-01-{i % 28 + 1:02d}T10:00:00{zone},{'yes' if i % 3 else 'no'}" for i in range(60)]
        (tmp_path / f"{name}.csv").write_text("t,label\n" + "\n".join(rows) + "\n")
    source = {"kind": "csv", "path": ["a.csv", "b.csv"]}
    with pytest.raises(DataError, match=r"b\.csv, column 't': some times have a zone"):
        chain(small(tmp_path, prepare__source=source, prepare__features=[{"kind": "datetime", "columns": ["t"]}]), tmp_path / "runs")
