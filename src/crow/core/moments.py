"""The contexts of the moments around a run: sessions, commands, settings, notices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crow.core.reach import Context
from crow.core.session import SHAPES, Session
from crow.core.shapes import fits, json_object

if TYPE_CHECKING:
    from crow.core.agent import Agent
    from crow.core.context import RunContext


def is_changes(value: Any) -> bool:
    """new values by name, texts for model and mode"""  # noqa: D400, D403 - a noun for sentences
    return json_object(value) and all(
        fits(SHAPES[name])(value[name]) for name in ("model", "mode") if name in value
    )


class SessionContext(Context):
    """A session begins or ends.

    ``source`` is ``new``, ``load``, ``resume``, ``fork`` or ``subagent``; ``reason`` says why it
    ends: ``closed``, ``replaced``, ``prompt_input_exit`` (a person went) or ``exit``.
    """

    __slots__ = ("reason", "source")

    def __init__(
        self, agent: Agent, session: Session, *, source: str = "", reason: str = ""
    ) -> None:
        super().__init__(agent, session)
        self.source = source
        self.reason = reason


class CommandContext(Context):
    """A slash command: ``command`` is its name without the slash, ``args`` the rest of the line."""

    __slots__ = ("args", "command")

    shapes = {"args": str}  # noqa: RUF012 - a table

    def __init__(self, run: RunContext, command: str, args: str) -> None:
        super().__init__(run.agent, run.session, run)
        self.command = command
        self.args = args


class ConfigContext(Context):
    """Model, mode or options are about to change; ``changes`` maps names to new values.

    Where a settings file was edited, ``source`` says whose it is (``user_settings``,
    ``project_settings``, ``local_settings`` or ``policy_settings``), ``path`` which one, and
    ``changes["settings"]`` is what it says now. ``skills`` is for a skill's file. The two are empty
    for what a person chose.
    """

    __slots__ = ("changes", "path", "source")

    shapes = {"changes": is_changes}  # noqa: RUF012 - a table
    kept = ("changes",)

    def __init__(
        self,
        agent: Agent,
        session: Session,
        changes: dict[str, Any],
        *,
        source: str = "",
        path: str = "",
    ) -> None:
        super().__init__(agent, session)
        self.changes = changes
        self.source = source
        self.path = path


class NotificationContext(Context):
    """The user's attention is wanted; ``kind`` says for what, ``message`` in words."""

    __slots__ = ("kind", "message")

    def __init__(
        self, agent: Agent, session: Session, run: RunContext | None, kind: str, message: str
    ) -> None:
        super().__init__(agent, session, run)
        self.kind = kind
        self.message = message
