"""A pipeline whose rows come from a database: asked once for each run, never by what comes after prepare, and no password anywhere."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from mlpipe.errors import DataError, NotReadyError
from mlpipe.run import RunFolder
from mlpipe.sources.sql import Sql
from mlpipe.spec import load_pipeline
from mlpipe.stages.base import Options
from mlpipe.stages.chain import run_stages, steps
from mlpipe.stages.check import check_sources
from mlpipe.stages.predict import predict
from mlpipe.stages.verify import verify
from tests.helpers import chain, clean_failure, mlpipe, small_settings, states, strict_json, table_csv, write_pipeline
from tests.postgres import PASSWORD, Server, free_port


def rows(folder: Path) -> list[list[Any]]:
    lines = table_csv(folder / "rows.csv").read_text().splitlines()[1:]
    return [[float(a), float(b) if b else None, c or None, d] for a, b, c, d in (line.split(",") for line in lines)]


def fill(folder: Path) -> None:
    session = sqlite3.connect(folder / "x.sqlite")
    with session:
        session.execute("create table t (x1 real, x2 real, colour text, label text)")
        session.executemany("insert into t values (?, ?, ?, ?)", rows(folder))
    session.close()


def change(folder: Path, statement: str) -> None:
    session = sqlite3.connect(folder / "x.sqlite")
    with session:
        session.execute(statement)
    session.close()


def pipeline(folder: Path, **source: Any) -> Path:
    settings = {"kind": "sql", "url": "sqlite:///x.sqlite", "table": "t", **source}
    return write_pipeline(folder / "small.yaml", small_settings(prepare__source={k: v for k, v in settings.items() if v is not None}))


@pytest.fixture
def counted(monkeypatch):
    """How often the database was asked."""
    asked: list[str] = []
    before = Sql.local

    def local(self, base, folder):
        asked.append(self.title)
        return before(self, base, folder)

    monkeypatch.setattr(Sql, "local", local)
    return asked


def test_a_run_asks_once_and_runs_again_only_when_rows_changed(tmp_path, counted):
    fill(tmp_path)
    file = pipeline(tmp_path)
    assert states(chain(file, tmp_path / "runs")) == dict.fromkeys(("prepare", "train", "evaluate", "export"), "ran")
    assert counted == ["table t"]
    assert states(chain(file, tmp_path / "runs")) == dict.fromkeys(("prepare", "train", "evaluate", "export"), "fresh")
    assert counted == ["table t"] * 2
    change(tmp_path, "update t set x1 = x1 + 1 where rowid = 5")
    outcomes = chain(file, tmp_path / "runs")
    assert states(outcomes)["prepare"] == "ran"
    assert outcomes["prepare"].reason == "source table t changed"
    assert len(list((tmp_path / "runs/small/.snapshots").iterdir())) == 1
    entry = outcomes["prepare"].manifest.identity["inputs"]
    assert [(item["role"], item["path"], list(item["digest"])) for item in entry] == [("source", "table t", ["table-v1"])]
    assert any("sorted by all columns" in note for note in outcomes["prepare"].manifest.results["notes"])


def test_the_same_rows_from_a_file_give_the_same_model_data(tmp_path):
    fill(tmp_path)
    first = chain(pipeline(tmp_path, query="select * from t order by rowid", table=None), tmp_path / "runs", until="prepare")
    other = write_pipeline(tmp_path / "csv.yaml", small_settings(prepare__source={"kind": "csv", "path": "rows.csv"}))
    second = chain(other, tmp_path / "other", until="prepare")
    assert first["prepare"].manifest.results["splits"] == second["prepare"].manifest.results["splits"]


def test_status_and_later_stages_never_ask(tmp_path, counted):
    fill(tmp_path)
    file = pipeline(tmp_path)
    chain(file, tmp_path / "runs", until="prepare")
    (tmp_path / "x.sqlite").rename(tmp_path / "gone")
    counted.clear()
    loaded = load_pipeline(file)
    told = steps(loaded, tmp_path / "runs")
    assert (told[0].state, told[0].reason) == ("fresh", "nothing changed; table t not asked for: a run does that")
    run_stages(loaded, tmp_path / "runs", ["train", "evaluate", "export"], Options())
    assert counted == []
    scored = predict(tmp_path / "runs/small/export", table_csv(tmp_path / "new.csv", 7), tmp_path / "out.csv")
    assert scored.rows == 7
    found = verify(tmp_path / "runs/small", tmp_path)
    assert "source: table t came from a database, which is not asked again" in found.lines
    changed = load_pipeline(pipeline(tmp_path, query="select * from t", table=None))
    assert steps(changed, tmp_path / "runs")[0].state == "stale"
    with pytest.raises(NotReadyError, match="other settings"):
        run_stages(changed, tmp_path / "runs", ["train"], Options())
    with pytest.raises(DataError, match="did you mean"):
        chain(pipeline(tmp_path, url="sqlite:///gome"), tmp_path / "runs")


def test_a_changed_query_file_is_seen_without_asking(tmp_path):
    fill(tmp_path)
    (tmp_path / "q.sql").write_text("select * from t order by rowid")
    file = pipeline(tmp_path, table=None, query_file="q.sql")
    outcome = chain(file, tmp_path / "runs", until="prepare")["prepare"]
    assert [item["role"] for item in outcome.manifest.identity["inputs"]] == ["source-query", "source"]
    assert verify(tmp_path / "runs/small", tmp_path).lines[-1] == "sources: 1 file holds"
    (tmp_path / "q.sql").write_text("select * from t where x1 > 1 order by rowid")
    told = steps(load_pipeline(file), tmp_path / "runs")[0]
    assert (told.state, told.reason.split(";")[0]) == ("stale", "source-query q.sql changed")


def test_faulty_cells_are_named_with_their_rows(tmp_path):
    fill(tmp_path)
    change(tmp_path, "update t set x2 = 'many' where rowid = 3")
    with pytest.raises(DataError, match=r"query, row 3, column 'x2': 'many' is not a number"):
        chain(pipeline(tmp_path, query="select * from t order by rowid", table=None), tmp_path / "runs", until="prepare")


def test_check_looks_at_the_columns_and_reads_no_row(tmp_path, counted):
    fill(tmp_path)
    assert check_sources(load_pipeline(pipeline(tmp_path))) == ["source: table t of the database, columns x1, x2, colour, label"]
    with pytest.raises(DataError, match="not as the pipeline file says") as caught:
        check_sources(load_pipeline(pipeline(tmp_path, table=None, query="select x1 as y1, x2, colour, label from t")))
    assert "'x1' is not in query" in str(caught.value)
    assert counted == []


def test_a_dry_run_changes_nothing(tmp_path):
    fill(tmp_path)
    result = mlpipe("run", pipeline(tmp_path), "--runs", tmp_path / "runs", "--dry-run")
    assert result.rc == 0, result.text
    assert "has not run; table t not asked for" in result.out
    assert not RunFolder(tmp_path / "runs/small").root.exists()


# ---- the password


def everything(folder: Path) -> bytes:
    return b"\n".join(path.name.encode() + path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


@pytest.fixture(scope="module")
def server(postgres: Server, tmp_path_factory) -> Server:
    folder = tmp_path_factory.mktemp("rows")
    values = ", ".join("(" + ", ".join("null" if v is None else repr(v) for v in row) + ")" for row in rows(folder))
    postgres.run(
        "drop table if exists t", "create table t (x1 numeric(6,2), x2 float, colour text, label text)", f"insert into t values {values}"
    )
    return postgres


def test_no_password_is_written_or_said(server, tmp_path):
    good, wrong, down = server.url(), server.url("hunter2/" + PASSWORD), server.url(port=free_port())
    file = pipeline(tmp_path, url="${env:DB_URL}")
    bad_table = write_pipeline(tmp_path / "bad.yaml", {**json.loads(file.read_text()), "name": "bad"})
    bad_table.write_text(bad_table.read_text().replace('"table": "t"', '"table": "tt"'))
    runs = tmp_path / "runs"
    told = []
    for url, arguments, code in (
        (good, ["run", file, "--runs", runs, "-v"], 0),
        (good, ["run", file, "--runs", runs, "--json", "-v"], 0),
        (good, ["check", file], 0),
        (good, ["status", file, "--runs", runs], 0),
        (good, ["prepare", bad_table, "--runs", runs, "-v"], 3),
        (wrong, ["prepare", file, "--runs", runs, "-v", "--force"], 3),
        (wrong, ["check", file, "--json"], 3),
        (down, ["prepare", file, "--runs", runs, "--json", "-v"], 3),
        (good.replace("postgresql:", "postgresql+nosuch:"), ["prepare", file, "--runs", runs, "-v"], 1),
        (good.replace("://", ":"), ["prepare", file, "--runs", runs, "-v"], 2),
    ):
        result = mlpipe(*arguments, env={"DB_URL": url})
        assert result.rc == code, (arguments, result.text)
        assert "Traceback" not in result.text, result.text
        told.append(result.text.encode())
    found = everything(tmp_path) + b"\n".join(told)
    from urllib.parse import quote

    for secret in (PASSWORD, quote(PASSWORD, safe=""), "hunter2", "s3cret"):
        assert secret.encode() not in found, secret
    manifest = strict_json(runs / "small/prepare/manifest.json")
    assert manifest["identity"]["config"]["source"]["url"] == "${env:DB_URL}"


def test_a_password_in_the_pipeline_file_is_refused_without_saying_it(tmp_path):
    file = pipeline(tmp_path, url="postgresql://me:hunter2@host/db")
    result = mlpipe("check", file)
    clean_failure(result, "prepare.source", "a password stands in it", "${env:NAME}")
    assert result.rc == 2
    assert "hunter2" not in result.text
