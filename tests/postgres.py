"""A PostgreSQL server for tests, where the machine has the programs of one."""

from __future__ import annotations

import getpass
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

VERSIONS = Path("/usr/lib/postgresql")


def program(name: str) -> str | None:
    """One of PostgreSQL's programs; Debian keeps those of the server out of PATH."""
    found = sorted(VERSIONS.glob(f"*/bin/{name}")) if VERSIONS.exists() else []
    return str(found[-1]) if found else shutil.which(name)


def rows(address: str, sql: str) -> list[tuple[Any, ...]]:
    """Say something to a database that Crow does not say, and what comes of it."""
    import psycopg

    with psycopg.connect(address, autocommit=True) as connection:
        cursor = connection.execute(sql)  # type: ignore[arg-type]
        return cursor.fetchall() if cursor.description else []


class Server:
    """A PostgreSQL server of its own, on a socket, that no power cut has to find again.

    ``more`` are settings of it, as ``NAME=VALUE``.
    """

    def __init__(self, *more: str) -> None:
        self.user = getpass.getuser() if os.geteuid() else "postgres"
        self.folder = Path(tempfile.mkdtemp(prefix="crow-postgres-"))
        if not os.geteuid():
            shutil.chown(self.folder, self.user)
        data = str(self.folder / "data")
        self.run("initdb", "-D", data, "-N", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8")
        settings = "-F -c listen_addresses='' -c max_connections=300 -c full_page_writes=off"
        settings = " -c ".join([settings, *more])
        self.options = ("-D", data, "-o", f"{settings} -k {self.folder}")
        self.start()
        self.schemas = 0

    def run(self, name: str, *args: str) -> None:
        """Run one of its programs as the user that it may be run by."""
        user = None if os.geteuid() else pwd.getpwnam(self.user).pw_uid
        log = self.folder.with_suffix(".log")
        with log.open("a") as told:
            done = subprocess.run(
                (program(name) or name, *args),
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=told,
                stderr=told,
                check=False,
                user=user,
            )
        assert done.returncode == 0, log.read_text()

    def start(self) -> None:
        self.run("pg_ctl", *self.options, "-w", "start")

    def stop(self, mode: str = "immediate") -> None:
        self.run("pg_ctl", *self.options[:2], "-w", "-m", mode, "stop")

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.with_suffix(".log").unlink(missing_ok=True)

    def address(self, schema: str = "") -> str:
        """The address of the database, or of one of its schemas."""
        path = f"&options={quote(f'-csearch_path={schema}')}" if schema else ""
        return f"postgresql://{self.user}@/postgres?host={quote(str(self.folder))}{path}"

    def database(self) -> str:
        """The address of a schema that is new."""
        import psycopg

        self.schemas += 1
        schema = f"crow_{self.schemas}"
        with psycopg.connect(self.address(), autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {schema}")  # type: ignore[arg-type]
        return self.address(schema)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A running server; skips where there is none."""
    pytest.importorskip("psycopg")
    if program("initdb") is None:
        pytest.skip("there is no PostgreSQL server: apt-get install postgresql")
    server = Server()
    yield server
    server.remove()
