"""A connection to a database that only reads, and whose faults are told without its address.

SQLite is opened for reading, PostgreSQL reads in a read-only transaction with one view of the data, MySQL in a read-only one;
with others whatever a query does is rolled back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from mlpipe.base import expand
from mlpipe.errors import DataError, MachineError, SpecError, did_you_mean, listed
from mlpipe.sources.answers import CHUNK_ROWS

Value = str | int | float | bool | None

DRIVERS = {"postgresql": "psycopg", "mysql": "pymysql", "mariadb": "pymysql", "mssql": "pyodbc", "oracle": "oracledb"}
EXTRAS = {"psycopg": "'mlpipe[postgres]'"}


@contextmanager
def connected(written: str, base: Path, title: str, timeout: int) -> Iterator[Session]:
    """A transaction that can only read; whatever the database says is told without the address."""
    try:
        import sqlalchemy
    except ImportError:
        raise MachineError("sql needs the package sqlalchemy, which is not installed", hint="pip install sqlalchemy") from None
    address = expand(written)
    secrets: list[str] = [address]
    try:
        url = sqlalchemy.make_url(re.sub(r"^postgres(ql)?://", "postgresql+psycopg://", address))
    except (sqlalchemy.exc.ArgumentError, ValueError):
        raise SpecError(f"url ({written}) is no address of a database", hint="such as postgresql://USER:PASSWORD@HOST/DATABASE") from None
    if url.password:
        secrets += [str(url.password), quote(str(url.password), safe=""), unquote(str(url.password))]
    secrets += [value for values in url.normalized_query.values() for value in values if len(value) > 3]
    told = _Told(title, written, timeout, secrets)
    engine = told.engine(url, base)
    try:
        with told.faults("connect"):
            connection = engine.connect()
        try:
            session = Session(connection, told)
            session.begin_reading()
            yield session
        finally:
            with suppress(sqlalchemy.exc.SQLAlchemyError):  # what went wrong before is what is told
                connection.rollback()
                connection.close()
    finally:
        engine.dispose()


class Session:
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

    def __init__(self, title: str, written: str, timeout: int, secrets: list[str]) -> None:
        self.title, self._written, self._timeout = title, written, timeout
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
    def faults(self, doing: str, session: Session | None = None) -> Iterator[None]:
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

    def _hint(self, said: str, session: Session | None) -> str:
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
        if "locked" in said:
            return "another program is writing to it; try again when it is done"
        if "syntax" in said:
            return "try the query in the database's own shell first"
        return "correct the query"
