"""Source `sql`: the answer of a database to one query, taken once for each run and kept beside it as a Parquet file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from mlpipe.base import expand
from mlpipe.console import console
from mlpipe.errors import DataError, did_you_mean, listed
from mlpipe.sources import remote
from mlpipe.sources.answers import write_answer
from mlpipe.sources.base import RawRows, Source
from mlpipe.sources.database import Session, Value, connected
from mlpipe.sources.parquet import Parquet

FOLDER, ANSWER = "sql", "answer.parquet"


class Sql(RawRows):
    """The answer of a database to one query. SQLAlchemy reads SQLite, PostgreSQL (`mlpipe[postgres]`) and others with their driver.

    Exactly one of `query`, `table` and `query_file`. The query is read in a transaction that cannot write, in chunks, once for each
    run; the answer is kept in the run folder, and its content decides whether anything runs again. Its order must be the same each
    time: `order_by`, or an ORDER BY at the end of the query, over columns that tell rows apart; without one the rows are sorted by
    all their columns, in memory. Decimals and whole numbers keep all digits; NULL is missing. `url` keeps `${env:NAME}`: a password
    in the pipeline file is refused. `sqlite:///sales.sqlite` is relative to the pipeline file.
    """

    kind: Literal["sql"] = "sql"
    url: str
    query: str | None = None
    table: str | None = None
    query_file: str | None = None
    params: dict[str, Value] = {}
    order_by: tuple[str, ...] = ()
    connect_timeout: int = Field(default=30, ge=1)

    @classmethod
    def locations(cls) -> frozenset[str]:
        """The address keeps `${env:NAME}`, and so does the path of the query."""
        return frozenset({"url", "query_file"})

    @model_validator(mode="after")
    def _consistent(self) -> Sql:
        given = [name for name in ("query", "table", "query_file") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"exactly one of query, table and query_file is needed, not {' and '.join(given) or 'none'}")
        remote.refuse_secrets(self.url)
        if "://" not in self.url and "${env:" not in self.url:
            raise ValueError("url is no address of a database; sqlite:///FILE or ${env:NAME} are examples")
        if self.table is not None and self.params:
            raise ValueError("params belong to a query; a table has none")
        if self.query is not None and not self.query.strip():
            raise ValueError("query is empty")
        return self

    @property
    def title(self) -> str:
        """What is read, for people: it never holds what an environment variable says."""
        if self.table is not None:
            return f"table {self.table}"
        return "query" if self.query is not None else f"query {self.query_file}"

    def reader(self) -> dict[str, Any]:
        """Rows in a file are read as the answer is: as Parquet, with the same words for what is missing."""
        cleaning = {name: getattr(self, name) for name in RawRows.model_fields}
        return Parquet(path=ANSWER, **cleaning).reader()

    def listing(self, base: Path) -> list[tuple[str, Path | None]]:
        """One answer, which lies in the database."""
        return [(self.title, None)]

    def queries(self, base: Path) -> list[tuple[str, Path]]:
        """The file that holds the query."""
        return [(self.query_file, base / expand(self.query_file))] if self.query_file is not None else []

    def digest(self, written: str, file: Path, hashed: Callable[[Path], str]) -> dict[str, str]:
        """An answer has a digest once it is there."""
        raise DataError(f"{self.title} has not been asked for yet")

    def local(self, base: Path, folder: Path) -> Source:
        """Asks the query and writes the answer into `folder`."""
        notes: list[str] = []
        key = f"{FOLDER}-{remote.key_of(repr(self.model_dump(mode='json')))}"
        with remote.fresh_folder(folder, key) as aside, self._connected(base) as session:
            text, ordered = self._statement(base, session)
            console.say(f"  asks the database: {self.title}")
            names, rows = session.rows(text, self.params)
            self._check(names)
            ties = _Ties([names.index(name) for name in self.order_by])
            digest, count = write_answer(names, _counted(ties.watched(rows)), aside / ANSWER, self.title, ordered=ordered)
        if not ordered:
            notes.append(f"{self.title}: no order is asked for; the {count:,} rows are sorted by all columns")
        if ties.count:
            notes.append(f"{self.title}: {ties.count:,} rows are equal to the row before in order_by; the database chooses their order")
        final = folder / key / ANSWER
        here = Answer(path=self.title, **{name: getattr(self, name) for name in RawRows.model_fields})
        here.found(self.title, final, digest, notes)
        return here

    def columns(self, base: Path) -> list[str]:
        """The names of the answer's columns; no row is read. Raises DataError as `local` does."""
        with self._connected(base) as session:
            names, _ = session.rows(self._statement(base, session)[0], self.params)
            self._check(names)
            return names

    def tables(self, base: Path) -> list[str]:
        """The names of the database's tables and views."""
        with self._connected(base) as session:
            return session.tables()

    def _check(self, names: list[str]) -> None:
        """Raises DataError when a name stands twice, or the order names a column that is not there (SQLite takes it for a text)."""
        _refuse_twice(names, self.title)
        if absent := [name for name in self.order_by if name not in names]:
            raise DataError(
                f"{self.title} has no column {absent[0]!r} to be ordered by (it has: {listed(names)})",
                hint=did_you_mean(absent[0], names) or "correct `order_by`",
            )

    def _statement(self, base: Path, session: Session) -> tuple[str, bool]:
        """The SQL to send, and whether it says in which order the rows come."""
        if self.table is not None:
            known = session.tables()
            if self.table not in known:
                raise DataError(
                    f"there is no table {self.table!r} in the database (it has: {listed(known)})",
                    hint=did_you_mean(self.table, known) or "a table of another schema is written SCHEMA.TABLE",
                )
            text = f"SELECT * FROM {'.'.join(map(session.quoted, self.table.split('.')))}"  # noqa: S608 (a name that the database has)
        else:
            text = self.query if self.query is not None else self._from_file(base)
            text = text.strip().rstrip(";").rstrip()
            word = re.match(r"[A-Za-z]*", _bare(text).strip(" (\n\t\r"))
            if word is not None and word[0].upper() not in ("SELECT", "WITH", "VALUES", "TABLE"):
                raise DataError(
                    f"{self.title} begins with {word[0] or text[:10]!r}: only a query that reads will do", hint="write one SELECT"
                )
        if not self.order_by:
            return text, self.table is None and ends_in_order(text)
        order = ", ".join(map(session.quoted, self.order_by))
        return f"SELECT * FROM ({text}\n) AS answer ORDER BY {order}", True  # noqa: S608 (the query is the user's own)

    def _from_file(self, base: Path) -> str:
        written, path = self.queries(base)[0]
        try:
            return path.read_text(encoding="utf-8-sig")
        except FileNotFoundError:
            raise DataError(f"there is no file {written} (relative to the pipeline file's folder)", hint="correct `query_file`") from None
        except (OSError, UnicodeDecodeError) as fault:
            raise DataError(f"{written} cannot be read: {fault}") from None

    def _connected(self, base: Path) -> AbstractContextManager[Session]:
        return connected(self.url, base, self.title, self.connect_timeout)


class Answer(Parquet):
    """A database's answer, as it lies in the run folder. It is made by `Sql.local` and stands in no pipeline file."""

    def found(self, written: str, file: Path, digest: str, notes: list[str]) -> None:
        """Where the answer lies, its digest by content, and what there is to say of it."""
        self._copies, self._digests = {written: file}, {written: {"table-v1": digest}}
        self._notes = dict.fromkeys(notes)


def ends_in_order(text: str) -> bool:
    """Whether a query's outermost level has an ORDER BY, comments and quoted text aside."""
    bare = _bare(text)
    depth, outer = 0, []
    for sign in bare:
        depth += (sign == "(") - (sign == ")")
        outer.append(sign if depth == 0 and sign != ")" else " ")
    return re.search(r"\border\s+by\b", "".join(outer), re.IGNORECASE) is not None


def _bare(text: str) -> str:
    """SQL without comments, quoted text and quoted names."""
    quoted = r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|\$([A-Za-z_]*)\$.*?\$\1\$"
    return re.sub(quoted, " ", text, flags=re.DOTALL)


class _Ties:
    """Counts rows that are equal to the row before them in some columns: of what is ordered by those, the order is not told."""

    def __init__(self, columns: list[int]) -> None:
        self._columns, self.count = columns, 0

    def watched(self, rows: Iterator[Any]) -> Iterator[Any]:
        """The rows."""
        before: Any = None
        for row in rows:
            now = [row[i] for i in self._columns]
            self.count += bool(now) and now == before
            before = now
            yield row


def _refuse_twice(names: list[str], title: str) -> None:
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise DataError(f"{title} gives the column {twice[0]!r} twice", hint=f"name them apart: ... AS {twice[0]}_2")


def _counted(rows: Iterator[Any]) -> Iterator[Any]:
    """The rows, with a progress bar."""
    with console.progress("reading rows") as bar:
        for count, row in enumerate(rows, 1):
            if count % 10_000 == 0:
                bar.advance(10_000, f"rows {count:,}")
            yield row
