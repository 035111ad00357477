"""Source `sql`: a database's answer as a file, with every value as it is, in an order that does not depend on the database."""

from __future__ import annotations

import datetime as dt
import os
import sqlite3
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from mlpipe.errors import DataError, MachineError, SpecError
from mlpipe.sources import answers
from mlpipe.sources.base import Source
from mlpipe.sources.sql import Sql, ends_in_order
from tests.postgres import Server, free_port


def database(folder: Path, *statements: str) -> str:
    with sqlite3.connect(folder / "x.sqlite") as session:
        for statement in statements:
            session.execute(statement)
    session.close()
    return "sqlite:///x.sqlite"


@pytest.fixture(autouse=True)
def _no_address_stays(monkeypatch):
    monkeypatch.setenv("MLP_URL", "")


def asked(folder: Path, url: str = "sqlite:///x.sqlite", **settings: Any) -> Source:
    return of(url, **settings).local(folder, folder / "copies")


def of(url: str, **settings: Any) -> Sql:
    """A source whose address stands in an environment variable where it has a password."""
    if "@" in url:
        os.environ["MLP_URL"], url = url, "${env:MLP_URL}"
    return Sql(url=url, **settings)


def cells(source: Source, folder: Path) -> dict[str, list]:
    names = source.names(source.files(folder)[0][1])
    chunks = list(source.chunks(folder, names))
    return {name: [v for c in chunks for v in c.rows.column(name).to_pylist()] for name in names}


def digest(source: Source, folder: Path) -> dict[str, str]:
    (written, file) = source.files(folder)[0]
    return source.digest(written, file, lambda path: "the bytes do not matter")


def types(source: Source, folder: Path) -> dict[str, Any]:
    return source.types(source.files(folder)[0][1])


def refused(folder: Path, *words: str, error: type[Exception] = DataError, **settings: Any) -> str:
    before = sorted((folder / "copies").rglob("*"))
    with pytest.raises(error) as caught:
        asked(folder, **settings)
    for word in words:
        assert word in str(caught.value), str(caught.value)
    assert sorted((folder / "copies").rglob("*")) == before  # nothing half-done stays
    return str(caught.value)


def test_a_table_a_query_and_a_file_with_a_query_give_the_same(tmp_path):
    database(tmp_path, "create table t (a integer, b text)", "insert into t values (2, 'y'), (1, 'x'), (3, null)")
    (tmp_path / "q.sql").write_text("-- the rows\nselect * from t order by a;\n")
    wanted = {"a": [1, 2, 3], "b": ["x", "y", None]}
    for settings in (
        {"table": "t", "order_by": ["a"]},
        {"query": "select a, b from t", "order_by": ["a"]},
        {"query_file": "q.sql"},
        {"table": "t"},
    ):
        assert cells(asked(tmp_path, **settings), tmp_path) == wanted
    assert Sql(url="sqlite:///x.sqlite", query_file="q.sql").queries(tmp_path) == [("q.sql", tmp_path / "q.sql")]
    assert Sql(url="sqlite:///x.sqlite", table="t").columns(tmp_path) == ["a", "b"]
    assert Sql(url="sqlite:///x.sqlite", table="t").tables(tmp_path) == ["t"]


def test_the_order_does_not_depend_on_how_rows_were_put_in(tmp_path):
    one, other = tmp_path / "1", tmp_path / "2"
    for folder, rows in ((one, "(1, 'b'), (1, null), (0, 'z')"), (other, "(0, 'z'), (1, null), (1, 'b')")):
        folder.mkdir()
        database(folder, "create table t (a integer, b text)", f"insert into t values {rows}")
    first, second = asked(one, table="t"), asked(other, table="t")
    assert cells(first, one) == cells(second, other) == {"a": [0, 1, 1], "b": ["z", "b", None]}
    assert digest(first, one) == digest(second, other)
    assert first.notes == ["table t: no order is asked for; the 3 rows are sorted by all columns"]
    tied = asked(one, table="t", order_by=["a"])
    assert tied.notes == ["table t: 1 rows are equal to the row before in order_by; the database chooses their order"]


def test_one_changed_value_changes_the_digest_and_the_same_rows_do_not(tmp_path):
    database(tmp_path, "create table t (a integer, b text)", "insert into t values (1, 'x'), (2, 'y')")
    before = digest(asked(tmp_path, table="t"), tmp_path)
    assert digest(asked(tmp_path, table="t"), tmp_path) == before
    for change in ("update t set b = 'z' where a = 2", "update t set b = null where a = 2", "update t set b = '' where a = 2"):
        database(tmp_path, change)
        now = digest(asked(tmp_path, table="t"), tmp_path)
        assert now != before
        before = now


NUMBERS = st.none() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text("01.ae-", max_size=4)


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=7))
def test_whatever_sqlite_holds_in_a_column_comes_back_as_it_is(tmp_path_factory, table):
    """SQLite has types for values, not for columns: what one type cannot hold becomes exact text."""
    folder = tmp_path_factory.mktemp("sql")
    session = sqlite3.connect(folder / "x.sqlite")
    with session:
        session.execute("create table t (n integer, a, b)")
        session.executemany("insert into t values (?, ?, ?)", [(i, *row) for i, row in enumerate(table)])
    session.close()
    found = cells(asked(folder, query="select a, b from t order by n", missing=()), folder)
    for name, column in (("a", [row[0] for row in table]), ("b", [row[1] for row in table])):
        for got, put in zip(found[name], column, strict=True):
            assert got == put or (isinstance(got, str) and got == (put if isinstance(put, str) else repr(put)))


@pytest.mark.parametrize(
    ("query", "ordered"),
    [
        ("select 1 order by 1", True),
        ("SELECT a FROM t\nORDER  BY a DESC LIMIT 3", True),
        ("select * from (select 1 order by 1) as x", False),
        ("select row_number() over (order by a) from t", False),
        ("select 'order by' from t", False),
        ("select 1 -- order by 1", False),
        ("select 1 /* order by 1 */", False),
        ('select "order by" from t', False),
        ("select a from t where b = $x$ order by $x$", False),
        ("with q as (select a from t order by a) select a from q order by a", True),
    ],
)
def test_an_order_counts_at_the_outermost_level_only(query, ordered):
    assert ends_in_order(query) is ordered


def test_parameters_are_values_and_signs_in_a_query_without_them_are_text(tmp_path):
    database(tmp_path, "create table t (a text)", "insert into t values ('50% off'), ('x:y'), ('o''clock')")
    assert cells(asked(tmp_path, query="select a from t where a = :v", params={"v": "o'clock"}), tmp_path) == {"a": ["o'clock"]}
    assert cells(asked(tmp_path, query="select a from t where a like '50%' or a = 'x:y'"), tmp_path) == {"a": ["50% off", "x:y"]}
    refused(tmp_path, "`params`", query="select a from t where a = :v")
    refused(tmp_path, "`params`", query="select a from t where a = :v and a <> :w", params={"v": "x"})


def test_what_cannot_be_read_is_refused_with_what_to_do(tmp_path):
    database(tmp_path, "create table invoice (a integer)", "insert into invoice values (1)")
    refused(tmp_path, "no table 'invoise'", "did you mean 'invoice'?", table="invoise")
    refused(tmp_path, "no such table: invoise", "did you mean 'invoice'?", query="select * from invoise")
    refused(tmp_path, 'near "frm": syntax error', query="select * frm invoice")
    refused(tmp_path, "begins with 'drop'", query="drop table invoice")
    refused(tmp_path, "begins with 'insert'", query="/* select */ insert into invoice values (2)")
    refused(tmp_path, "'b' twice", query="select 1 as b, 2 as b")
    refused(tmp_path, "'a' holds bytes", query="select x'00' as a")
    refused(tmp_path, "no column 'A' to be ordered by (it has: a)", table="invoice", order_by=["A"])
    refused(tmp_path, "no file q.sql", query_file="q.sql")
    refused(tmp_path, "no database sqlite:///y.sqlite", "did you mean 'x.sqlite'?", url="sqlite:///y.sqlite", table="t")
    refused(tmp_path, "names no file", url="sqlite://", table="t", error=SpecError)
    refused(tmp_path, "'nosuch'", url="nosuch://host/x", table="t", error=MachineError)
    refused(tmp_path, "oracle needs the package", "pip install", url="oracle://host/x", table="t", error=MachineError)
    (tmp_path / "z.sqlite").write_text("this is no database, this is a text of some length" * 50)
    refused(tmp_path, "not a database", url="sqlite:///z.sqlite", table="t")


def test_a_database_is_not_written_to(tmp_path):
    database(tmp_path, "create table t (a integer)", "insert into t values (1)")
    before = (tmp_path / "x.sqlite").read_bytes()
    refused(tmp_path, "readonly database", query="with n as (select 2 as a) insert into t select a from n returning a")
    assert (tmp_path / "x.sqlite").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["x.sqlite"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "exactly one of query, table and query_file is needed, not none"),
        ({"table": "t", "query": "select 1"}, "not query and table"),
        ({"query": " "}, "query is empty"),
        ({"table": "t", "params": {"a": 1}}, "params belong to a query"),
        ({"table": "t", "url": "postgresql://me:hunter2@host/db"}, "a password stands in it"),
        ({"table": "t", "url": "postgresql://host/db?user=me&password=hunter2"}, "a password stands in it"),
        ({"table": "t", "url": "x.sqlite"}, "no address of a database"),
    ],
)
def test_settings_that_contradict_are_refused(settings, words):
    with pytest.raises(ValidationError) as caught:
        Sql(**{"url": "sqlite:///x.sqlite", **settings})
    assert words in str(caught.value)


def test_an_address_keeps_its_variables(tmp_path, monkeypatch):
    source = Sql(url="${env:KIND}://me:${env:PW}@host/db", table="t")
    assert source.model_dump()["url"] == "${env:KIND}://me:${env:PW}@host/db"
    monkeypatch.delenv("NO_SUCH", raising=False)
    refused(tmp_path, "the environment variable NO_SUCH is not set", url="${env:NO_SUCH}", table="t", error=SpecError)


def test_rows_in_files_are_read_with_the_same_words_for_missing():
    source = Sql(url="sqlite:///x.sqlite", table="t", missing=["", "?"], strip=True, replace={"a": {"x": "y"}})
    assert source.reader() == {
        "kind": "parquet",
        "missing": ["", "?"],
        "missing_by_column": {},
        "strip": True,
        "replace": {"a": {"x": "y"}},
    }


def test_an_empty_answer_has_names_and_no_rows(tmp_path):
    database(tmp_path, "create table t (a integer, b text)")
    assert cells(asked(tmp_path, table="t"), tmp_path) == {"a": [], "b": []}


def test_large_answers_come_in_chunks_and_keep_their_order(tmp_path, monkeypatch):
    monkeypatch.setattr(answers, "CHUNK_ROWS", 100)
    database(
        tmp_path,
        "create table t (a integer, b)",
        "with recursive n(i) as (select 1 union all select i + 1 from n where i < 1000) insert into t select i, i from n",
    )
    database(tmp_path, "update t set b = 'x' where a = 950")
    found = cells(asked(tmp_path, query="select a, b from t order by a desc"), tmp_path)
    assert found["a"] == list(range(1000, 0, -1))
    assert found["b"][:51] == [*map(str, range(1000, 950, -1)), "x"]


def test_a_real_database(shared_data):
    source = Sql(
        url="sqlite:///chinook/Chinook_Sqlite.sqlite", query="select t.*, g.Name as Genre from Track t join Genre g using (GenreId)"
    )
    columns = source.columns(shared_data)
    assert columns[0] == "TrackId"
    assert columns[-1] == "Genre"
    assert "InvoiceLine" in source.tables(shared_data)


# ---- PostgreSQL

VALUES = """
create table if not exists kinds (
  id bigint primary key, exact numeric(30,10), free numeric, big bigint, small smallint, real8 double precision,
  moment timestamptz, plain timestamp, day date, yes boolean, name text, code char(3), clock time, mark uuid)
"""
ROWS = """
insert into kinds values
 (1, 12345678901234567890.0123456789, 1.5, 9223372036854775807, 1, 0.1, '2024-02-29 12:00:00.000001+02', '2024-02-29 12:00', '2024-02-29',
  true, 'žluťoučký 🐎', 'ab', '10:00', '00000000-0000-0000-0000-000000000001'),
 (2, 'NaN', 1.25, -9223372036854775808, 2, 'NaN', '1969-12-31 23:59:59Z', '0001-01-01', '9999-12-31', false, '', 'xyz', '10:00:00.5', null),
 (3, null, null, null, null, null, null, null, null, null, null, null, null, null)
"""


@pytest.fixture(scope="module")
def filled(postgres: Server) -> Server:
    postgres.run("drop table if exists kinds", VALUES, ROWS)
    return postgres


def test_values_of_a_server_lose_nothing(filled, tmp_path):
    source = asked(tmp_path, url=filled.url(), table="kinds", order_by=["id"], missing=())
    found = {name: [str(value) if value is not None else None for value in column] for name, column in cells(source, tmp_path).items()}
    kinds = types(source, tmp_path)
    assert kinds["exact"] == pa.decimal128(38, 10)
    assert found["exact"] == ["12345678901234567890.0123456789", None, None]
    assert found["free"] == ["1.5", "1.25", None]  # without a scale of its own: the digits that each has
    assert kinds["big"] == pa.int64()
    assert found["big"] == ["9223372036854775807", "-9223372036854775808", None]
    assert kinds["real8"] == pa.float64()
    assert found["real8"] == ["0.1", "nan", None]
    assert kinds["moment"] == pa.timestamp("us", tz="UTC")
    assert found["moment"] == ["2024-02-29 10:00:00.000001+00:00", "1969-12-31 23:59:59+00:00", None]
    assert kinds["plain"] == pa.timestamp("us")
    assert found["plain"] == ["2024-02-29 12:00:00", "0001-01-01 00:00:00", None]
    assert kinds["day"] == pa.date32()
    assert found["day"] == ["2024-02-29", "9999-12-31", None]
    assert kinds["yes"] == pa.bool_()
    assert found["yes"] == ["True", "False", None]
    assert found["name"] == ["žluťoučký 🐎", "", None]
    assert found["code"] == ["ab ", "xyz", None]
    assert found["clock"] == ["10:00:00", "10:00:00.500000", None]
    assert found["mark"] == ["00000000-0000-0000-0000-000000000001", None, None]


def test_without_an_order_the_rows_of_a_server_are_sorted(filled, tmp_path):
    filled.run("update kinds set small = small where id = 1")  # moves the row to the end of the table
    found = cells(
        asked(tmp_path, url=filled.url(driver="postgres"), query="select id::int as id, name from kinds where name like '%' or true"),
        tmp_path,
    )
    assert found["id"] == [1, 2, 3]


def test_a_server_is_not_written_to_and_its_lists_are_refused(filled, tmp_path):
    url = filled.url()
    refused(tmp_path, "must not contain data-modifying", url=url, query="with gone as (delete from kinds returning id) select * from gone")
    filled.run("create sequence if not exists counter")
    refused(tmp_path, "read-only transaction", url=url, query="select nextval('counter') as a")
    refused(tmp_path, "'a' holds lists or arrays", "cast", url=url, query="select array[1,2] as a")
    refused(tmp_path, "'a' holds JSON objects", url=url, query="""select '{"x": 1}'::json as a""")
    refused(tmp_path, "'a' holds bytes", url=url, query="select '\\x00'::bytea as a")
    refused(tmp_path, "'a' holds intervals", url=url, query="select interval '1 day' as a")
    refused(tmp_path, 'relation "kind" does not exist', "did you mean 'kinds'?", url=url, query="select * from kind")
    refused(tmp_path, "no table 'kinda'", "did you mean 'kinds'?", url=url, table="kinda")
    refused(tmp_path, 'syntax error at or near "frm"', url=url, query="select * frm kinds")
    assert cells(asked(tmp_path, url=url, table="public.kinds", order_by=["id"]), tmp_path)["id"] == [1, 2, 3]
    assert of(url, table="kinds").columns(tmp_path)[:2] == ["id", "exact"]


def test_a_server_that_is_down_or_refuses_is_told_without_the_address(filled, tmp_path):
    for url, words in ((filled.url("wrong-hunter2"), "password authentication failed"), (filled.url(port=free_port()), "refused")):
        text = refused(tmp_path, "the database (${env:MLP_URL}) cannot be reached", words, url=url, table="t")
        assert "hunter2" not in text
        assert "s3cret" not in text


def test_one_answer_is_one_view_of_the_data(filled, tmp_path):
    """A row that comes while rows are read is not in the answer: the transaction sees what was there when it began."""
    source = of(filled.url(), query="select id from kinds order by id")
    with source._connected(tmp_path) as session:
        _, rows = session.rows("select count(*) from kinds", {})
        before = next(iter(rows))[0]
        filled.run("insert into kinds (id) values (99)")
        _, rows = session.rows("select count(*) from kinds", {})
        assert next(iter(rows))[0] == before
    filled.run("delete from kinds where id = 99")


def test_moments_of_a_server_are_those_of_the_world(filled, tmp_path):
    source = asked(tmp_path, url=filled.url(), query="select moment from kinds where id = 1")
    assert cells(source, tmp_path)["moment"] == [dt.datetime(2024, 2, 29, 10, 0, 0, 1, tzinfo=dt.UTC)]
