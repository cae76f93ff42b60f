"""The modes that permissions can be judged in, and the tools that need no question in any."""

from __future__ import annotations

from typing import Literal

Mode = Literal["default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"]
MODES: dict[str, Mode] = {
    "default": "default",
    "manual": "default",
    "acceptEdits": "acceptEdits",
    "plan": "plan",
    "dontAsk": "dontAsk",
    "bypassPermissions": "bypassPermissions",
}
OFFERED = {
    "default": ("Ask", "Asks before it changes files or runs commands that no rule allows"),
    "acceptEdits": ("Accept edits", "Changes files in the project without asking"),
    "plan": ("Plan", "Reads and thinks, and changes nothing"),
    "dontAsk": ("Do not ask", "Does what rules allow, and refuses the rest without a question"),
}
"""What users can choose; ``bypassPermissions`` is for whoever begins with it, by settings."""
QUIET = frozenset(
    {"TodoWrite", "Agent", "TaskStop", "BashOutput", "TaskOutput", "StructuredOutput"}
    | {"ToolSearch"}
)


def unknown_mode(name: str) -> str:
    """What to tell of a mode that there is not."""
    if name == "auto":
        return (
            "the mode auto is not part of Crow, which lets no model decide for you; default is used"
        )
    return f"there is no mode {name!r}, so default is used; there are: {', '.join(MODES)}"
