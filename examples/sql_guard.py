"""A tool for a database: what only reads runs unasked, and what changes something is asked about.

    crow run --extension examples/sql_guard.py "Which customers have no orders?"

SQLite itself says what a statement does (its authorizer): a search for words misses a `WITH` before
`DELETE` and finds `SELECT 'delete'`. What was judged as reading runs where nothing can be written.
"""

import sqlite3
from contextlib import closing
from dataclasses import dataclass

from crow import Agent, Allow, Ask, ToolContext, ToolEnvironment, tool

READS = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}


@dataclass
class SqlGuard:
    database: str = "data.db"

    def init_agent(self, agent: Agent) -> None:
        agent.add_tool(tool(name="Sql")(self.sql))

    def before_tool(self, ctx: ToolContext) -> Allow | Ask | None:
        if ctx.name != "Sql":
            return None
        statement = ctx.args["statement"]
        return Allow() if self.reads(statement, ctx.cwd) else Ask(f"this changes data: {statement}")

    def sql(self, statement: str, ctx: ToolEnvironment) -> str:
        """Run one SQL statement on the project's SQLite database; at most 100 rows come back."""
        mode = "ro" if self.reads(statement, ctx.cwd) else "rw"
        with closing(self.open(ctx.cwd, mode)) as database, database:
            return "\n".join(map(repr, database.execute(statement).fetchmany(100))) or "no rows"

    def reads(self, statement: str, folder: str) -> bool:
        actions: set[int] = set()
        with closing(self.open(folder, "ro")) as database:

            def see(action: int, *_: object) -> int:
                actions.add(action)
                return sqlite3.SQLITE_OK

            database.set_authorizer(see)
            database.execute(f"EXPLAIN {statement}")
        return actions <= READS

    def open(self, folder: str, mode: str) -> sqlite3.Connection:
        return sqlite3.connect(f"file:{folder}/{self.database}?mode={mode}", uri=True)
