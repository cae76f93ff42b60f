"""The database of a fleet: its pool of connections, its tables in this version, and the queue."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Self, TypeVar

from crow.fleet.procrastinate_queue import ProcrastinateQueue
from crow.fleet.schema import LOCK, MIGRATIONS
from crow.fleet.task import FleetError

if TYPE_CHECKING:
    from psycopg import AsyncConnection
    from psycopg_pool import AsyncConnectionPool

T = TypeVar("T")
CONNECTION: Mapping[str, Any] = {
    "connect_timeout": 3,
    "keepalives_idle": 10,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 4000,
    "application_name": "crow fleet",
}
TABLES = (
    "SELECT relname FROM pg_catalog.pg_class WHERE relnamespace = current_schema()::regnamespace"
    " AND relname IN ('fleet_version', 'procrastinate_jobs')"
)


class Database:
    """A PostgreSQL database; ``async with`` opens it.

    ``patience`` is for how many seconds a database that is not there is waited for.
    """

    def __init__(self, address: str, *, size: int = 4, patience: float = 0.0) -> None:
        self.address = address
        self.patience = patience
        self._size = size
        self._pool: AsyncConnectionPool[Any] | None = None
        self._queue: ProcrastinateQueue | None = None

    async def __aenter__(self) -> Self:
        from psycopg import Error
        from psycopg.conninfo import make_conninfo
        from psycopg_pool import AsyncConnectionPool, PoolTimeout

        self._pool = AsyncConnectionPool(
            make_conninfo(self.address, **CONNECTION),
            kwargs={"autocommit": True, "prepare_threshold": None},
            min_size=1,
            max_size=self._size,
            open=False,
        )
        try:
            await retried(self._reach, patience=self.patience)
            await self._pool.open(wait=True, timeout=5)
            await retried(self._bring_up, patience=self.patience)
            self._queue = ProcrastinateQueue(self._pool)
            await retried(self._queue.open, patience=self.patience)
        except (Error, PoolTimeout) as error:
            await self.__aexit__()
            why = str(error).strip().partition("\n")[0]
            raise FleetError(f"the database of the fleet cannot be used: {why}") from error
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._pool is not None:
            await self._pool.close(timeout=1)

    @property
    def queue(self) -> ProcrastinateQueue:
        """The engine that offers go through."""
        assert self._queue is not None
        return self._queue

    @asynccontextmanager
    async def connection(self) -> AsyncGenerator[AsyncConnection[Any]]:
        """A connection of the pool, in a transaction."""
        assert self._pool is not None
        async with self._pool.connection() as connection, connection.transaction():
            yield connection

    async def rows(self, sql: str, values: Any = None) -> list[dict[str, Any]]:
        from psycopg.rows import dict_row

        assert self._pool is not None
        async with self._pool.connection() as connection:
            cursor = connection.cursor(row_factory=dict_row)
            await cursor.execute(sql.encode(), values)
            return await cursor.fetchall() if cursor.description else []

    async def _reach(self) -> None:
        """Connect once: a pool does not say why it could not."""
        from psycopg import AsyncConnection
        from psycopg.conninfo import make_conninfo

        await (await AsyncConnection.connect(make_conninfo(self.address, **CONNECTION))).close()

    async def _bring_up(self) -> None:
        """Bring the tables to this version; others that begin wait for it."""
        async with self.connection() as connection:
            await connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
            found = await connection.execute(TABLES)
            tables = {row[0] for row in await found.fetchall()}
            version = 0
            if "fleet_version" in tables:
                found = await connection.execute("SELECT number FROM fleet_version")
                version = (await found.fetchone() or (0,))[0]
            if version > len(MIGRATIONS):
                raise FleetError("the fleet's tables are of a newer Crow: update crow-acp")
            for script in MIGRATIONS[version:]:
                await connection.execute(script.encode())
            if version == 0:
                await connection.execute("CREATE TABLE fleet_version (number bigint)")
                await connection.execute("INSERT INTO fleet_version VALUES (0)")
            await connection.execute("UPDATE fleet_version SET number = %s", (len(MIGRATIONS),))
            if "procrastinate_jobs" not in tables:
                await connection.execute(ProcrastinateQueue.tables().encode())


async def retried(work: Callable[[], Awaitable[T]], *, patience: float) -> T:
    """Do something with the database, again where it is not reached, for so many seconds."""
    from psycopg import OperationalError
    from psycopg_pool import PoolTimeout

    until, pause = time.monotonic() + patience, 0.1
    while True:
        try:
            return await work()
        except (OperationalError, PoolTimeout):
            if time.monotonic() > until:
                raise
            await asyncio.sleep(pause)
            pause = min(2 * pause, 2)
