"""A folder of notes, searched with every prompt: what fits best is put behind it.

    crow run --extension examples/search_notes.py "How do we deploy?"

SQLite's full-text search (FTS5) in memory; files that changed are read again. What was found stands
at the tail of the conversation, never in its beginning, so that the provider's cache holds; it is
marked as context, and says from where it is: a note is data, and no instruction.
"""

import re
import sqlite3
from pathlib import Path

from crow import RunContext
from crow.messages import text_of


class SearchNotes:
    def __init__(self, folder: str = "docs", count: int = 3) -> None:
        self.folder, self.count = folder, count
        self.database = sqlite3.connect(":memory:")
        self.database.execute("CREATE VIRTUAL TABLE notes USING fts5(path UNINDEXED, part)")
        self.read: dict[Path, float] = {}

    def before_run(self, ctx: RunContext) -> str | None:
        root = Path(ctx.cwd, self.folder)
        self.index(root)
        words = " OR ".join(f'"{word}"' for word in re.findall(r"\w{3,}", text_of(ctx.prompt)))
        found = self.database.execute(
            "SELECT path, part FROM notes WHERE notes MATCH ? AND path LIKE ?"
            " ORDER BY rank LIMIT ?",
            (words or '""', f"{root}%", self.count),
        )
        parts = [f"From {path}:\n{part}" for path, part in found]
        return "Notes that may help:\n\n" + "\n\n".join(parts) if parts else None

    def index(self, root: Path) -> None:
        for path in root.rglob("*.md"):
            changed = path.stat().st_mtime
            if self.read.get(path) == changed:
                continue
            self.read[path] = changed
            self.database.execute("DELETE FROM notes WHERE path = ?", (str(path),))
            parts = re.split(r"^(?=#)", path.read_text(errors="replace"), flags=re.MULTILINE)
            rows = [(str(path), part.strip()) for part in parts if part.strip()]
            self.database.executemany("INSERT INTO notes VALUES (?, ?)", rows)
