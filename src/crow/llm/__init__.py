"""Models, each an LLM. Names are imported when they are first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crow._lazy import lazy

if TYPE_CHECKING:
    from crow.llm.chat import ChatCompletions as ChatCompletions
    from crow.llm.client import ClientModel as ClientModel
    from crow.llm.gemini import Gemini as Gemini
    from crow.llm.http import HttpModel as HttpModel
    from crow.llm.http import Retries as Retries
    from crow.llm.http import Timeouts as Timeouts
    from crow.llm.messages import AnthropicMessages as AnthropicMessages
    from crow.llm.model_names import from_environment as from_environment
    from crow.llm.model_names import resolve as resolve
    from crow.llm.rehearsal import Rehearsal as Rehearsal
    from crow.llm.responses import Responses as Responses
    from crow.llm.routing import Routed as Routed

_ROOMS = {
    "crow.llm.chat": "ChatCompletions",
    "crow.llm.client": "ClientModel",
    "crow.llm.gemini": "Gemini",
    "crow.llm.http": "HttpModel Retries Timeouts",
    "crow.llm.messages": "AnthropicMessages",
    "crow.llm.model_names": "from_environment resolve",
    "crow.llm.rehearsal": "Rehearsal",
    "crow.llm.responses": "Responses",
    "crow.llm.routing": "Routed",
}

if not TYPE_CHECKING:  # a checker takes any name for there where it sees one
    __all__, __getattr__, __dir__ = lazy(__name__, _ROOMS)
