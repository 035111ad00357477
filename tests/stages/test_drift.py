"""drift: the same rows show none, a column that moved is named with exit code 6, few rows are not judged."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from mlpipe.errors import DataError, IntegrityError, NotReadyError, SpecError
from mlpipe.manifest import load
from mlpipe.stages.drift import ColumnDrift, Limits, drift
from mlpipe.stages.verify import verify
from tests.helpers import chain, mlpipe, small, small_settings, write_pipeline

HEAD = "id,x,c,day,y"


def rows(count: int, seed: int, **shift: Any) -> list[str]:
    """x uniform with 5% gaps, c one of three texts and `?`, a day, and y that depends on both."""
    dice = random.Random(seed)
    found = []
    for i in range(count):
        x = dice.random() + shift.get("x", 0.0)
        gap = dice.random() < shift.get("gaps", 0.05)
        c = dice.choices(shift.get("values", ["M", "F", "D"]), shift.get("weights"))[0] if dice.random() > 0.1 else "?"
        y = "Y" if (c == "M") != (x > 0.9) else "N"
        found.append(f"{i},{'' if gap else f'{x:.4f}'},{c},{shift.get('year', 2024)}-{1 + i % 12:02d}-{1 + i % 28:02d},{y}")
    return found


def file_of(folder: Path, lines: list[str], name: str = "new.csv", head: str = HEAD) -> Path:
    path = folder / name
    path.write_text("\n".join([head, *lines]) + "\n")
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An export trained on 1,500 rows, all of them train or valid but a few; its source replaces spellings."""
    folder = tmp_path_factory.mktemp("drift")
    file_of(folder, rows(1500, 1), "r.csv")
    replace = {"c": {"M": "male", "F": "female"}, "y": {"Y": "yes", "N": "no"}}
    settings = small_settings(
        task={"kind": "classification", "target": "y"},
        prepare__source={"kind": "csv", "path": "r.csv", "missing": ["", "?"], "replace": replace},
        prepare__keys=["id"],
        prepare__features=[
            {"kind": "numeric", "columns": ["x"]},
            {"kind": "category", "columns": ["c"]},
            {"kind": "datetime", "columns": ["day"]},
        ],
    )
    chain(write_pipeline(folder / "r.yaml", settings), folder / "runs")
    return folder


def export_of(run: Path) -> Path:
    return run / "runs/small/export"


def by_name(found: list[ColumnDrift]) -> dict[str, ColumnDrift]:
    return {column.column: column for column in found}


def test_the_export_carries_the_profile(run: Path, tmp_path: Path) -> None:
    """The same bytes as prepare's, an input of the export's id, and verify looks at it, also where the export is alone."""
    manifest = load(export_of(run))
    assert manifest is not None
    assert manifest.path("profile").read_bytes() == (run / "runs/small/prepare/profile.json").read_bytes()
    assert "profile" in [entry["role"] for entry in manifest.identity["inputs"]]
    assert "profile.json" in (export_of(run) / "card.md").read_text()
    alone = Path(shutil.copytree(export_of(run), tmp_path / "alone"))
    verify(alone)
    (alone / "profile.json").write_text("{}")
    with pytest.raises(IntegrityError):
        verify(alone)


def test_the_train_rows_themselves_have_not_drifted(run: Path, tmp_path: Path) -> None:
    """PSI 0, distance 0, p 1, in every column, the target too: read through the recorded reader."""
    from pyarrow import parquet as pq

    kept = set(pq.read_table(run / "runs/small/prepare/train.parquet", columns=["id"])["id"].to_pylist())
    lines = [line for line in (run / "r.csv").read_text().splitlines()[1:] if line.split(",")[0] in kept]
    found = drift(export_of(run), file_of(tmp_path, lines))
    assert (found.rows, found.train_rows, found.drifted) == (len(kept), len(kept), [])
    assert sorted(by_name(found.columns)) == ["c", "day", "x", "y"]
    for column in found.columns:
        assert (column.psi, column.statistic, column.p) == (0.0, 0.0, 1.0)
        assert column.missing_then == column.missing_now
        assert column.unseen_now == 0.0


def test_rows_of_the_same_kind_have_not_drifted(run: Path, tmp_path: Path) -> None:
    """Another draw, without a target."""
    lines = [line.rpartition(",")[0] for line in rows(600, 2)]
    found = drift(export_of(run), file_of(tmp_path, lines, head=HEAD.rpartition(",")[0]))
    assert found.drifted == []
    assert sorted(by_name(found.columns)) == ["c", "day", "x"]
    assert all(column.p is None or column.p > 0.001 for column in found.columns)


@pytest.mark.parametrize(
    ("shift", "column", "reason"),
    [
        ({"x": 0.4}, "x", "PSI"),
        ({"x": 0.4}, "x", "beyond the range of the train rows"),
        ({"gaps": 0.4}, "x", "missing "),
        ({"weights": [8, 1, 1]}, "c", "PSI"),
        ({"values": ["M", "F", "K"]}, "c", "values without a code of their own"),
    ],
)
def test_a_column_that_moved_is_named_first(run: Path, tmp_path: Path, shift: dict[str, Any], column: str, reason: str) -> None:
    """With the limit that it broke."""
    found = drift(export_of(run), file_of(tmp_path, rows(600, 3, **shift)))
    assert column in [c.column for c in found.drifted]
    assert found.columns[0].verdict == "drift"
    assert any(reason in said for said in by_name(found.columns)[column].reasons)


def test_figures_by_hand(run: Path, tmp_path: Path) -> None:
    """The PSI over the stored ranges, worked out from the raw numbers; the distance as scipy has it within what the knots leave."""
    from math import log

    import numpy as np
    from pyarrow import parquet as pq
    from scipy import stats

    then = pq.read_table(run / "runs/small/prepare/train.parquet", columns=["x"])["x"].drop_null().to_numpy()
    lines = rows(600, 4, x=0.1)
    now = np.array([float(line.split(",")[1]) for line in lines if line.split(",")[1]])
    cuts = [sorted(then)[int(i / 10 * (len(then) - 1))] for i in range(1, 10)]
    ranges = list(zip([-9, *cuts], [*cuts, 9], strict=True))
    shares = [[max(0.5, ((v > low) & (v <= high)).sum()) / len(v) for low, high in ranges] for v in (then, now)]
    expected = sum((q - p) * log(q / p) for p, q in zip(*shares, strict=True))
    found = by_name(drift(export_of(run), file_of(tmp_path, lines)).columns)["x"]
    assert found.psi == pytest.approx(expected)
    assert found.statistic == pytest.approx(stats.ks_2samp(then, now).statistic, abs=1 / 256 + 1e-9)


def test_times_move_on(run: Path, tmp_path: Path) -> None:
    """The next year is shown and not judged."""
    found = drift(export_of(run), file_of(tmp_path, rows(600, 5, year=2025)))
    day = by_name(found.columns)["day"]
    assert (day.verdict, day.unseen_now) == ("moves on", 1.0)
    assert "day" not in [column.column for column in found.drifted]


def test_limits_are_limits(run: Path, tmp_path: Path) -> None:
    """A higher one lets the same rows pass."""
    file = file_of(tmp_path, rows(600, 3, x=0.4))
    assert drift(export_of(run), file, limits=Limits(psi=99, unseen=1, missing=1)).drifted == []
    assert drift(export_of(run), file, limits=Limits(psi=99, unseen=0.05, missing=1)).columns[0].column == "x"


def test_chunks_do_not_matter(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts add up."""
    from mlpipe.sources import csv

    file = file_of(tmp_path, rows(3000, 6, x=0.1))
    whole = drift(export_of(run), file).as_dict()
    monkeypatch.setattr(csv, "BLOCK_BYTES", 5000)
    assert drift(export_of(run), file).as_dict() == whole


def test_a_column_without_enough_values_is_not_judged(run: Path, tmp_path: Path) -> None:
    """Its gaps are."""
    lines = [",".join(["1", "" if i % 60 else "9.5", "M", "2024-01-01", "Y"]) for i in range(600)]
    x = by_name(drift(export_of(run), file_of(tmp_path, lines)).columns)["x"]
    assert x.verdict == "drift"
    assert len(x.reasons) == 1
    assert x.reasons[0].startswith("missing")


def test_what_cannot_be_compared_is_said(run: Path, tmp_path: Path) -> None:
    """No export, no rows, no column, a bad cell, a damaged profile, none."""
    file = file_of(tmp_path, rows(300, 7))
    with pytest.raises(NotReadyError, match="is no export"):
        drift(tmp_path, file)
    with pytest.raises(DataError, match="has no rows"):
        drift(export_of(run), file_of(tmp_path, [], "none.csv"))
    with pytest.raises(DataError, match="column 'x' is not in"):
        drift(export_of(run), file_of(tmp_path, ["1,M,2024-01-01,Y"], "few.csv", head="id,c,day,y"))
    with pytest.raises(DataError, match=r"bad\.csv, line 2, column 'x': 'many'"):
        drift(export_of(run), file_of(tmp_path, ["1,many,M,2024-01-01,Y"], "bad.csv"))
    export = Path(shutil.copytree(export_of(run), tmp_path / "export"))
    text = (export / "profile.json").read_text()
    (export / "profile.json").write_text(text.replace('"rows"', '"lines"', 1))
    with pytest.raises(IntegrityError, match="not what its manifest says"):
        drift(export, file)
    (export / "manifest.json").unlink()
    for damage in ("{", "[]", '{"columns": {}}', text.replace('"counts"', '"count"'), text.replace('"kind": "text"', '"kind": "number"')):
        (export / "profile.json").write_text(damage)
        with pytest.raises(IntegrityError, match=r"profile\.json"):
            drift(export, file)
    (export / "profile.json").unlink()
    with pytest.raises(NotReadyError, match="older mlpipe"):
        drift(export, file)


def test_the_command_line(run: Path, tmp_path: Path) -> None:
    """0 and a sentence; 6, the column first and one JSON object; 3 for few rows; 2 for a bad option."""
    same = mlpipe("drift", export_of(run), file_of(tmp_path, rows(600, 2)))
    assert same.rc == 0, same.text
    assert "600 rows look like the" in same.out
    assert same.out.splitlines()[0].split()[:3] == ["column", "kind", "rows"]
    moved = file_of(tmp_path, rows(600, 3, x=0.4))
    plain = mlpipe("drift", export_of(run), moved)
    assert plain.rc == 6
    assert plain.out.splitlines()[1].startswith("x ")
    assert "drift: PSI" in plain.out.splitlines()[1]
    assert "drifted: x" in plain.err
    done = mlpipe("drift", export_of(run), moved, "--json", "-q")
    told = json.loads(done.out)
    assert (done.rc, told["status"], told["exit_code"], told["columns"][0]["column"]) == (6, "drift", 6, "x")
    assert "x" in told["drifted"]
    few = mlpipe("drift", export_of(run), file_of(tmp_path, rows(50, 3, x=0.4)), "--json")
    assert (few.rc, json.loads(few.out)["status"], json.loads(few.out)["drifted"]) == (3, "too few rows", [])
    assert "50 rows are too few to judge (--min-rows 100)" in few.err
    assert mlpipe("drift", export_of(run), file_of(tmp_path, rows(50, 3, x=0.4)), "--min-rows", "40").rc == 6
    wrong = mlpipe("drift", export_of(run), moved, "--psi", "much")
    assert wrong.rc == 2


def test_neither_torch_nor_pandas_nor_a_model_is_loaded(run: Path, tmp_path: Path) -> None:
    """It reads rows and a JSON file."""
    import subprocess
    import sys

    code = (
        "import sys; from pathlib import Path; from mlpipe.stages.drift import drift; "
        f"drift(Path({str(export_of(run))!r}), Path({str(file_of(tmp_path, rows(300, 2)))!r})); "
        "print([m for m in ('torch', 'onnxruntime') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_rows_that_training_had_do_not_drift_whatever_is_rare(tmp_path: Path) -> None:
    """A category with hundreds of values, most below min_count: rows that did not choose the codes have more without one."""
    rng = random.Random(5)

    def write(name: str, values: int) -> Path:
        lines = [f"c{rng.randrange(values)},{rng.random():.3f},{rng.choice('pn')}" for _ in range(1000)]
        (tmp_path / name).write_text("\n".join(["hc,v,lab", *lines]) + "\n", encoding="utf-8")
        return tmp_path / name

    data = write("hc.csv", 300)
    features = [{"kind": "numeric", "columns": ["v"]}, {"kind": "category", "columns": ["hc"], "min_count": 3}]
    source = {"kind": "csv", "path": "hc.csv"}
    file = small(tmp_path, task__target="lab", prepare__source=source, prepare__features=features)
    export = chain(file, tmp_path / "runs")["export"].manifest.folder
    assert drift(export, data).drifted == []
    assert drift(export, write("again.csv", 300)).drifted == []
    assert [column.column for column in drift(export, write("other.csv", 900)).drifted] == ["hc"]


@pytest.mark.parametrize("limits", [{"psi": float("nan")}, {"missing": float("inf")}, {"unseen": -1.0}])
def test_limits_that_are_none(run: Path, limits: dict[str, float]) -> None:
    with pytest.raises(SpecError, match="is no limit"):
        drift(export_of(run), Path("rows.csv"), limits=Limits(**limits))


def test_free_texts_are_compared_by_their_words_and_lengths(tmp_path):
    """Whole texts all differ, in training as well: other words, and longer texts, are what has moved."""
    texts = [f"the parcel {i} from the shop was {word} and late" for i in range(120) for word in ("red", "blue")]
    lines = [f"{text},{'ab'[i % 2]}" for i, text in enumerate(texts)]
    (tmp_path / "train.csv").write_text("\n".join(["text,label", *lines]) + "\n", encoding="utf-8")
    settings = small_settings(
        prepare__features=[{"kind": "text", "columns": ["text"]}], train__model={"kind": "text_bag", "width": 4}, train__epochs=1
    )
    chain(write_pipeline(tmp_path / "small.yaml", settings), tmp_path / "runs")
    export = tmp_path / "runs/small/export"
    made = {
        "same": texts[::-1],
        "other words": [f"das Paket {i} aus dem Laden war {word} und zu spät dran" for i in range(120) for word in ("rot", "blau")],
        "longer": [f"{text} {text} {text}" for text in texts],
        "signs": [f"我要听音乐第{i}首 我要听音乐第首" for i in range(240)],
    }
    verdicts = {}
    for name, rows in made.items():
        (tmp_path / f"{name}.csv").write_text("\n".join(["text", *rows]) + "\n", encoding="utf-8")
        (column,) = drift(export, tmp_path / f"{name}.csv").columns
        verdicts[name] = column.verdict
    assert verdicts == {"same": "steady", "other words": "drift", "longer": "drift", "signs": "drift"}
