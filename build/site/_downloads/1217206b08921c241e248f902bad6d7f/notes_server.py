"""An MCP server in this process: tools written with the MCP library, without another program.

    crow run --extension examples/notes_server.py "Note that I want short answers"

`python examples/notes_server.py` serves the same tools to any other agent. Rules name them as those
of every server: `mcp__notes__add`. What runs in this process is in no sandbox, and one for all
sessions: it knows no folder, so the notes are the user's.
"""

from pathlib import Path

from mcp.server import MCPServer

server = MCPServer("notes", instructions="Notes on the user, which outlive a conversation.")
mcp_servers = {"notes": server}  # Crow looks for this name


def file() -> Path:
    return Path.home() / ".crow" / "notes.md"


@server.tool()
def add(text: str) -> str:
    """Add a note, a line of text."""
    file().parent.mkdir(exist_ok=True)
    with file().open("a") as notes:
        notes.write(f"- {' '.join(text.split())}\n")
    return "Noted."


@server.tool()
def find(words: str = "") -> str:
    """Find the notes in which all these words are."""
    notes = file().read_text().splitlines() if file().exists() else []
    return "\n".join(note for note in notes if all(word in note for word in words.split()))


def on_session_start() -> str | None:
    notes = find()
    return f"Notes on the user:\n{notes}" if notes else None


if __name__ == "__main__":
    server.run()
