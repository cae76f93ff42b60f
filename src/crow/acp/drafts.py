"""Parameters of draft methods and fields that the official library does not know yet.

They follow the unstable schema in release 2.4 of ``@agentclientprotocol/sdk``; what is added to a
message of either version is one dictionary for both.
"""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict


class Nothing(TypedDict):
    """The parameters of a method that takes none."""


class OfSession(TypedDict):
    """The parameters of a method that takes a session's id."""

    sessionId: str


class OfProvider(TypedDict):
    """The parameters of ``providers/disable``."""

    providerId: str


class SetProvider(OfProvider):
    """The parameters of ``providers/set``."""

    apiType: str
    baseUrl: str
    headers: NotRequired[dict[str, str] | None]


class SetTitle(OfSession):
    """The parameters of ``session/set_title``, and of ``_session/rename``, which is older."""

    title: str


class SetModel(OfSession):
    """The parameters of ``session/set_model``, which came before the option of that name."""

    modelId: str


class Archived(TypedDict):
    """A field of ``session/list``: whether archived sessions are wanted."""

    archived: NotRequired[str]


class SystemPrompt(TypedDict):
    """A client's own words in the system message: behind the agent's, or in their place."""

    mode: str
    content: list[dict[str, Any]]


class Prompted(TypedDict):
    """A field of requests that open a session: the client's system prompt."""

    systemPrompt: NotRequired[SystemPrompt]
