"""Source `sql`: the answer of a database to one query, taken once for each run and kept beside it as a Parquet file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, unquote

from pydantic import Field, model_validator

from mlpipe.base import expand
from mlpipe.console import console
from mlpipe.errors import DataError, MachineError, SpecError, did_you_mean, listed
from mlpipe.sources import remote
from mlpipe.sources.answers import CHUNK_ROWS, write_answer
from mlpipe.sources.base import Rows, Source
from mlpipe.sources.parquet import Parquet

Value = str | int | float | bool | None

DRIVERS = {"postgresql": "psycopg", "mysql": "pymysql", "mariadb": "pymysql", "mssql": "pyodbc", "oracle": "oracledb"}
EXTRAS = {"psycopg": "'mlpipe[postgres]'"}
FOLDER, ANSWER = "sql", "answer.parquet"


class Sql(Rows):
    """The answer of a database to one query, by SQLAlchemy: SQLite, PostgreSQL (`mlpipe[postgres]`), others with their driver.

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
        cleaning = {name: getattr(self, name) for name in Rows.model_fields}
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
            _refuse_twice(names, self.title)
            ties = _Ties([names.index(name) for name in self.order_by if name in names])
            digest, count = write_answer(names, _counted(ties.watched(rows)), aside / ANSWER, self.title, ordered=ordered)
        if not ordered:
            notes.append(f"{self.title}: no order is asked for; the {count:,} rows are sorted by all columns")
        if ties.count:
            notes.append(f"{self.title}: {ties.count:,} rows are equal to the row before in order_by; the database chooses their order")
        final = folder / key / ANSWER
        here = Answer(path=self.title, **{name: getattr(self, name) for name in Rows.model_fields})
        here.found(self.title, final, digest, notes)
        return here

    def columns(self, base: Path) -> list[str]:
        """The names of the answer's columns; no row is read. Raises DataError as `local` does."""
        with self._connected(base) as session:
            names, _ = session.rows(self._statement(base, session)[0], self.params)
            _refuse_twice(names, self.title)
            return names

    def tables(self, base: Path) -> list[str]:
        """The names of the database's tables and views."""
        with self._connected(base) as session:
            return session.tables()

    def _statement(self, base: Path, session: _Session) -> tuple[str, bool]:
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

    @contextmanager
    def _connected(self, base: Path) -> Iterator[_Session]:
        """A transaction that can only read; whatever the database says is told without the address."""
        try:
            import sqlalchemy
        except ImportError:
            raise MachineError("sql needs the package sqlalchemy, which is not installed", hint="pip install sqlalchemy") from None
        address = expand(self.url)
        secrets: list[str] = [address]
        try:
            url = sqlalchemy.make_url(re.sub(r"^postgres(ql)?://", "postgresql+psycopg://", address))
        except (sqlalchemy.exc.ArgumentError, ValueError):
            raise SpecError(
                f"url ({self.url}) is no address of a database", hint="such as postgresql://USER:PASSWORD@HOST/DATABASE"
            ) from None
        if url.password:
            secrets += [str(url.password), quote(str(url.password), safe=""), unquote(str(url.password))]
        told = _Told(self, secrets)
        engine = told.engine(url, base)
        try:
            with told.faults("connect"):
                connection = engine.connect()
            try:
                session = _Session(connection, told)
                session.begin_reading()
                yield session
            finally:
                with suppress(sqlalchemy.exc.SQLAlchemyError):  # what went wrong before is what is told
                    connection.rollback()
                    connection.close()
        finally:
            engine.dispose()


class Answer(Parquet):
    """A database's answer, as it lies in the run folder. It is made by `Sql.local` and stands in no pipeline file."""

    def found(self, written: str, file: Path, digest: str, notes: list[str]) -> None:
        """Where the answer lies, its digest by content, and what there is to say of it."""
        self._copies, self._digests = {written: file}, {written: {"table-v1": digest}}
        self._notes = dict.fromkeys(notes)


class _Session:
    """One connection in one transaction."""

    def __init__(self, connection: Any, told: _Told) -> None:
        self._connection, self._told = connection, told
        self._dialect = connection.dialect.name

    def begin_reading(self) -> None:
        """Begins the transaction: read-only, and one view of the data, where the database has such a thing."""
        with self._told.faults("connect"):
            if self._dialect == "postgresql":
                self._connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            elif self._dialect in ("mysql", "mariadb"):
                self._connection.exec_driver_sql("SET TRANSACTION READ ONLY")

    def tables(self) -> list[str]:
        """Tables and views; those of other schemas with the schema before the name."""
        import sqlalchemy

        with self._told.faults("look at the tables of"):
            look = sqlalchemy.inspect(self._connection)
            found = [*look.get_table_names(), *look.get_view_names()]
            own = look.default_schema_name
            for schema in look.get_schema_names() if self._dialect == "postgresql" else []:
                if schema not in (own, "information_schema"):
                    found += [f"{schema}.{name}" for name in (*look.get_table_names(schema), *look.get_view_names(schema))]
                elif schema == own:
                    found += [f"{schema}.{name}" for name in look.get_table_names(schema)]
        return found

    def quoted(self, name: str) -> str:
        """A name as the database wants it, in its own quotes."""
        return str(self._connection.dialect.identifier_preparer.quote_identifier(name))

    def rows(self, text: str, params: dict[str, Value]) -> tuple[list[str], Iterator[Any]]:
        """The names of the answer's columns, and its rows, a chunk at a time from a cursor of the server."""
        import sqlalchemy

        connection = self._connection.execution_options(stream_results=True, yield_per=CHUNK_ROWS)
        with self._told.faults("ask", self):
            if params:
                result = connection.execute(sqlalchemy.text(text), params)
            else:  # sent as it stands: a colon or a percent sign is no placeholder
                result = connection.execution_options(no_parameters=True).exec_driver_sql(text)
            if not result.returns_rows:
                raise DataError(f"{self._told.title} gives no rows", hint="write one SELECT")
            names = list(result.keys())

        def flow() -> Iterator[Any]:
            with self._told.faults("ask", self):
                yield from result

        return names, flow()


class _Told:
    """Puts what a database, its driver or SQLAlchemy says into our words, with nothing of the address in them."""

    def __init__(self, settings: Sql, secrets: list[str]) -> None:
        self.title, self._written, self._timeout = settings.title, settings.url, settings.connect_timeout
        self._secrets = sorted({secret for secret in secrets if secret}, key=len, reverse=True)

    def clean(self, fault: BaseException) -> str:
        """The message of a fault, without secrets, in one line."""
        text = " ".join(str(getattr(fault, "orig", None) or fault).split())
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text or type(fault).__name__

    def engine(self, url: Any, base: Path) -> Any:
        """An engine for an address. SQLite is opened so that it cannot write."""
        import sqlalchemy
        from sqlalchemy.pool import NullPool

        name = url.get_backend_name()
        if name == "sqlite":
            return self._sqlite(url, base)
        if name not in DRIVERS and not re.fullmatch(r"[a-z0-9_]+", name):
            raise SpecError(f"url ({self._written}) names no kind of database")
        options = {"connect_timeout": self._timeout} if name in ("postgresql", "mysql", "mariadb") else {}
        try:
            return sqlalchemy.create_engine(url, poolclass=NullPool, connect_args=options, hide_parameters=True)
        except (ImportError, sqlalchemy.exc.NoSuchModuleError) as fault:
            driver = url.drivername.partition("+")[2] or DRIVERS.get(name, name)
            if isinstance(fault, sqlalchemy.exc.NoSuchModuleError) and name not in DRIVERS:
                raise MachineError(
                    f"no package for databases of the kind {name!r} is installed",
                    hint="install SQLAlchemy's dialect for it, or correct url",
                ) from None
            raise MachineError(
                f"{name} needs the package {driver}, which is not installed", hint=f"pip install {EXTRAS.get(driver, driver)}"
            ) from None
        except Exception as fault:  # noqa: BLE001 (a driver's own; its message may hold the address)
            raise SpecError(f"url ({self._written}): {self.clean(fault)}") from None

    def _sqlite(self, url: Any, base: Path) -> Any:
        import sqlite3

        import sqlalchemy
        from sqlalchemy.pool import NullPool

        if not url.database or url.database == ":memory:":
            raise SpecError(f"url ({self._written}) names no file", hint="sqlite:///FILE is relative to the pipeline file")
        file = base / url.database
        if not file.is_file():
            names = [path.name for path in file.parent.glob("*") if path.is_file()] if file.parent.is_dir() else []
            raise DataError(
                f"there is no database {self._written} (relative to the pipeline file's folder)",
                hint=did_you_mean(file.name, names) or (f"the folder holds: {listed(names)}" if names else "correct url"),
            )

        def opened() -> Any:
            connection = sqlite3.connect(
                f"file:{quote(str(file.resolve()))}?mode=ro", uri=True, timeout=self._timeout, check_same_thread=False
            )
            connection.execute("PRAGMA query_only = ON")
            return connection

        return sqlalchemy.create_engine("sqlite://", creator=opened, poolclass=NullPool, hide_parameters=True)

    @contextmanager
    def faults(self, doing: str, session: _Session | None = None) -> Iterator[None]:
        """Turns faults of the database into a DataError."""
        import sqlalchemy

        try:
            yield
        except (DataError, MachineError, SpecError):
            raise
        except (sqlalchemy.exc.SQLAlchemyError, OSError, ValueError) as fault:
            said = self.clean(fault)
            if doing == "connect":
                raise DataError(
                    f"the database ({self._written}) cannot be reached: {said}",
                    hint="is the server up, and are the address and password right?",
                ) from None
            if isinstance(fault, sqlalchemy.exc.StatementError) and "bind parameter" in said:
                raise DataError(f"{self.title}: {said}", hint="give each :name of the query a value under `params`") from None
            raise DataError(f"{self.title}: the database says: {said}", hint=self._hint(said, session)) from None

    def _hint(self, said: str, session: _Session | None) -> str:
        missing = re.search(r"""no such table: "?([^"\s]+)"?|relation "([^"]+)" does not exist""", said)
        if missing and session is not None:
            try:
                session._connection.rollback()  # noqa: SLF001 (after a fault PostgreSQL answers nothing more in this transaction)
                known = session.tables()
            except DataError:
                known = []
            name = missing[1] or missing[2]
            return did_you_mean(name, known) or f"there are: {listed(known)}"
        if "binding" in said or 'near ":"' in said:
            return "give each :name of the query a value under `params`"
        if "syntax" in said:
            return "try the query in the database's own shell first"
        return "correct the query"


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
