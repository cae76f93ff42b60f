"""Models, each an LLM. Names are imported when they are first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

HOMES = {
    "AnthropicMessages": "messages",
    "ChatCompletions": "chat",
    "ClientModel": "client",
    "Gemini": "gemini",
    "HttpModel": "http",
    "Rehearsal": "rehearsal",
    "Responses": "responses",
    "Retries": "http",
    "Routed": "routing",
    "Timeouts": "http",
    "from_environment": "model_names",
    "resolve": "model_names",
}

__all__ = [  # pyright: ignore[reportUnsupportedDunderAll]
    "AnthropicMessages",
    "ChatCompletions",
    "ClientModel",
    "Gemini",
    "HttpModel",
    "Rehearsal",
    "Responses",
    "Retries",
    "Routed",
    "Timeouts",
    "from_environment",
    "resolve",
]


def __getattr__(name: str) -> Any:
    """Import a name's home when the name is first asked for."""
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{HOMES[name]}"), name)
