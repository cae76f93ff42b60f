"""The protocols of `crow.ports` tell checkers what an object has, and what is wrong with one.

Checked by `make check`: a line with an ignore comment must be an error, or the comment is one.
"""

# pyright: strict, reportUnnecessaryTypeIgnoreComment=true

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_type

from crow import Mode, Session, Tool, ToolEnvironment, ToolResult, tool
from crow.ports import (
    MentionProvider,
    ModeProvider,
    PreviewTool,
    SessionKeeper,
    first_implementing,
    implementing,
    implements,
)


class Planner:
    modes: Sequence[Mode] = (Mode("sketch", "Sketch"),)

    def mentions(self, session: Session) -> list[str]:
        return [f"sketch:{session.id}"]

    async def forget_session(self, session_id: str) -> None: ...


class Wrong:
    def modes(self) -> list[Mode]:
        return []

    def mentions(self) -> list[str]:
        return []

    def forget_session(self, session_id: str) -> None: ...


providers: tuple[ModeProvider, MentionProvider, SessionKeeper] = (Planner(), Planner(), Planner())
modes: ModeProvider = Wrong()  # pyright: ignore[reportAssignmentType]
mentions: MentionProvider = Wrong()  # pyright: ignore[reportAssignmentType]
keeper: SessionKeeper = Wrong()  # pyright: ignore[reportAssignmentType]


def modes_of(extension: object) -> list[str]:
    return [mode.id for mode in extension.modes] if implements(extension, ModeProvider) else []


def listed(extensions: list[object], session: Session) -> list[str]:
    assert_type(implementing(extensions, MentionProvider), list[MentionProvider])
    assert_type(first_implementing(extensions, MentionProvider), MentionProvider | None)
    found = implementing(extensions, MentionProvider)
    return [each for provider in found for each in provider.mentions(session)]


@tool
async def sketch(what: str) -> str:
    """Draw something."""
    return what


async def looked_at(given: Tool, ctx: ToolEnvironment) -> ToolResult | None:
    return await given.preview({}, ctx) if implements(given, PreviewTool) else None
