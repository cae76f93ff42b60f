"""The two events of servers' questions to the user."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Literal, cast

from crow import Context
from crow.hooks import Point

Action = Literal["accept", "decline", "cancel"]
Answer = tuple[Action, "dict[str, Any] | None"]

ASKED = ("mcp_server_name", "message", "mode", "url", "elicitation_id", "requested_schema")
ELICITATION = Point("on_elicitation", "gate", ASKED, aliases=("Elicitation",))
RESULT = Point(
    "on_elicitation_result",
    "gate",
    (*ASKED, "action", "content"),
    changes=("action", "content"),
    aliases=("ElicitationResult",),
)


class ElicitationContext(Context):
    """A server asks the user; a hook can answer or decline for the user.

    ``mode`` is ``form`` (``requested_schema`` says what is wanted) or ``url`` (the user is to visit
    ``url``). An `Answer` is ``{"action": "accept", "content": {...}}``.
    """

    __slots__ = ("elicitation_id", "mcp_server_name", "message", "mode", "requested_schema", "url")

    def __init__(self, ctx: Context, server: str, asked: Mapping[str, Any]) -> None:
        super().__init__(ctx.agent, ctx.session, ctx.run)
        self.owner = ctx.owner
        self.mcp_server_name = server
        self.message: str = asked["message"]
        self.mode: Literal["form", "url"] = asked["mode"]
        self.url: str | None = asked.get("url")
        self.elicitation_id: str | None = asked.get("elicitation_id")
        self.requested_schema: dict[str, Any] = asked.get("requested_schema") or {}


def json_content(value: Any) -> bool:
    """an object of JSON, or None"""  # noqa: D400, D403 - a noun for sentences
    if value is None:
        return True
    try:
        json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return False
    return isinstance(value, dict) and all(
        isinstance(key, str) for key in cast(Iterable[Any], value)
    )


class ElicitationResultContext(ElicitationContext):
    """A question was answered; a hook may change ``action`` and ``content``."""

    __slots__ = ("action", "content")
    shapes = {"action": Action, "content": json_content}  # noqa: RUF012 - a table
    kept = ("content",)

    def __init__(self, ctx: Context, server: str, asked: Mapping[str, Any], answer: Answer) -> None:
        super().__init__(ctx, server, asked)
        self.action, self.content = answer
