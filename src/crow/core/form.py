"""A form for the user, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from crow.core.frozen import frozen


@frozen
class Form:
    """What a user is asked as a whole: several things at once, or to visit a page.

    ``schema`` is JSON Schema of an object whose properties are texts, numbers, booleans, choices
    (``enum``, or ``oneOf`` with titles) and arrays of choices, as MCP's elicitation has it. With a
    ``url`` it is that page instead, and ``page_id`` names it, for `UI.complete`. ``call_id`` is
    the tool call that it belongs to, where it is one.
    """

    text: str
    schema: Mapping[str, Any] = field(default_factory=dict[str, Any])
    url: str = ""
    page_id: str = ""
    call_id: str = ""


@frozen
class Filled:
    """A user's answer to a `Form`.

    ``content`` is what they filled in, as their client sent it: to be held against the schema. To
    ``accept`` a page is to be willing to visit it.
    """

    action: Literal["accept", "decline", "cancel"]
    content: Mapping[str, Any] = field(default_factory=dict[str, Any])


LEFT = Filled("cancel")
"""Nobody has answered."""
