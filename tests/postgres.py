"""A PostgreSQL server of the tests' own, in a temporary folder and on a free port of this machine."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PASSWORD = "s3cret/Pa:ss@word"  # with signs that a URL must write otherwise


@dataclass(frozen=True)
class Server:
    """A server that is up."""

    port: int
    user: str = "mlp"

    def url(self, password: str = PASSWORD, *, port: int | None = None, driver: str = "postgresql") -> str:
        from urllib.parse import quote

        return f"{driver}://{self.user}:{quote(password, safe='')}@127.0.0.1:{port or self.port}/postgres"

    def run(self, *statements: str) -> None:
        import psycopg

        with psycopg.connect(
            host="127.0.0.1", port=self.port, user=self.user, password=PASSWORD, dbname="postgres", autocommit=True
        ) as session:
            for statement in statements:
                session.execute(statement)


def binaries() -> Path | None:
    """The folder with initdb and pg_ctl, or None."""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: int(re.sub(r"\D", "", p.parent.name) or 0), reverse=True)
    found = shutil.which("initdb")
    places += [Path(found).resolve().parent] if found else []
    return next((place for place in places if (place / "initdb").exists() and (place / "pg_ctl").exists()), None)


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _as_other_user() -> list[str] | None:
    """The words before a command that let it run as somebody else where we are root, which PostgreSQL refuses."""
    if os.geteuid() != 0:
        return []
    for user in ("postgres", "nobody"):
        if subprocess.run(["id", user], capture_output=True, check=False).returncode == 0 and shutil.which("runuser"):
            return ["runuser", "-u", user, "--"]
    return None


@contextmanager
def server() -> Iterator[Server | str]:
    """A server, or why there is none."""
    where, prefix = binaries(), _as_other_user()
    if where is None:
        yield "PostgreSQL is not installed (no initdb in PATH or /usr/lib/postgresql)"
        return
    if prefix is None:
        yield "PostgreSQL does not run as root, and there is no other user to run it as"
        return
    folder = Path(tempfile.mkdtemp(prefix="mlp-pg-"))
    try:
        if prefix:
            shutil.chown(folder, user=prefix[2])
        (folder / "password").write_text(PASSWORD + "\n")
        if prefix:
            shutil.chown(folder / "password", user=prefix[2])
        data, port = folder / "data", free_port()
        quiet = {"capture_output": True, "text": True, "cwd": folder, "stdin": subprocess.DEVNULL}
        made = subprocess.run(
            [
                *prefix,
                str(where / "initdb"),
                "-D",
                str(data),
                "-U",
                Server.user,
                f"--pwfile={folder / 'password'}",
                "-A",
                "scram-sha-256",
                "-E",
                "UTF8",
                "--locale=C",
                "-N",
            ],
            check=False,
            **quiet,
        )
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off -c max_connections=10"
        if made.returncode == 0:
            command = [*prefix, str(where / "pg_ctl"), "-D", str(data), "-o", options, "-l", str(folder / "log"), "-w", "-t", "60"]
            made = subprocess.run(
                [*command, "start"],
                check=False,
                **{**quiet, "capture_output": False, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL},
            )
        assert made.returncode == 0, f"PostgreSQL did not start: {made.stderr or (folder / 'log').read_text()}"
        try:
            yield Server(port)
        finally:
            subprocess.run([*prefix, str(where / "pg_ctl"), "-D", str(data), "-m", "immediate", "-w", "stop"], check=False, **quiet)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
