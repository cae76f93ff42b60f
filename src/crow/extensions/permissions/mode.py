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
QUIET = frozenset({"TodoWrite", "Agent", "TaskStop", "BashOutput", "TaskOutput"})
