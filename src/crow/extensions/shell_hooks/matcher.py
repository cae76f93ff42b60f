"""Matchers: a list of exact names, or a JavaScript regular expression."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from crow.tools import ToolName

Test = Callable[[str], bool]

LISTED = re.compile(r"[A-Za-z0-9_\- ,|]*")
NAMES_ONLY = re.compile(r"[A-Za-z0-9_|]*")
FORMER = {
    "Task": "Agent",
    "KillShell": "TaskStop",
    "KillBash": "TaskStop",
    "ListPeers": "ListAgents",
    "Brief": "SendUserMessage",
    "ListMcpResources": "ListMcpResourcesTool",
    "ReadMcpResource": "ReadMcpResourceTool",
    "ReadMcpResourceDir": "ReadMcpResourceDirTool",
    "ProposeGoal": "SetGoal",
}
"""Names that tools had, and the ones that they have."""

TOOLS = frozenset(
    {"Bash", "Read", "Write", "Edit", "NotebookEdit", "Glob", "Grep", "LS", "WebFetch", "WebSearch"}
    | {"TodoWrite", "Agent", "Skill", "AskUserQuestion", "ExitPlanMode", "TaskOutput", "BashOutput"}
    | {"MultiEdit", *FORMER, *FORMER.values()}
)


def everything(value: str) -> bool:
    """Matches whatever it is."""
    return True


def matcher(text: str | None, *, names_only: bool = False) -> Test:
    """What a matcher means. Raises ValueError for a broken regular expression.

    ``names_only``: blanks, commas and hyphens make it a regular expression as well.
    """
    if not text or text == "*":
        return everything
    listed = NAMES_ONLY if names_only else LISTED
    if listed.fullmatch(text):
        names = {part.strip() for part in re.split("[|]" if names_only else "[|,]", text)}
        return lambda value: not names.isdisjoint(called(value))
    expression = _javascript(text)
    return lambda value: any(map(expression, called(value)))


def miswritten(text: str) -> str:
    """The tool's name that is meant by one in other letters, which matches nothing; else empty."""
    spelled = {name.lower(): name for name in TOOLS}
    for part in re.split("[|,]", text) if LISTED.fullmatch(text) else ():
        meant = spelled.get(part.strip().lower(), part.strip())
        if meant != part.strip():
            return f"there is no built-in tool {part.strip()!r}; did you mean {meant!r}?"
    return ""


def called(name: str) -> Iterable[str]:
    """A name and those that mean the same tool."""
    now = FORMER.get(name, name)
    others = name.others if isinstance(name, ToolName) else ()
    return {name, now, *others, *(old for old, new in FORMER.items() if new == now)}


def _javascript(text: str) -> Test:
    from regress import Regex, RegressError

    try:
        expression = Regex(text)
    except RegressError as error:
        raise ValueError(f"the matcher {text!r} is no regular expression: {error}") from None
    return lambda value: expression.find(value) is not None
