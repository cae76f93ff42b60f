"""Settings of permissions: rules as they are written, the modes, limits on all calls."""

from __future__ import annotations

from typing import Literal, NamedTuple

from crow.dataclasses import frozen

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


class RuleText(NamedTuple):
    """A rule as it was written: ``source`` names the settings, ``root`` is what ``/`` means."""

    text: str
    source: str = "session"
    root: str | None = None


@frozen
class Limits:
    """``never_asks``: where a question would be asked, the call is denied.

    ``blocks_reads`` and ``blocks_writes`` deny what is outside of the working directories, of
    which ``excluded`` are no part: directories, relative ones below each of them. ``no_bypass``
    takes sessions out of the mode bypassPermissions.
    """

    never_asks: bool = False
    blocks_reads: bool = False
    blocks_writes: bool = False
    excluded: tuple[str, ...] = ()
    no_bypass: bool = False


NO_LIMITS = Limits()


def unknown_mode(name: str) -> str:
    """What to tell of a mode that there is not."""
    if name == "auto":
        return (
            "the mode auto is not part of Crow, which lets no model decide for you; default is used"
        )
    return f"there is no mode {name!r}, so default is used; there are: {', '.join(MODES)}"
