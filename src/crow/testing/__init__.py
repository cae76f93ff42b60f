"""Tools for tests of agents and extensions: a scripted model, a scripted endpoint, an editor.

Names are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crow.testing.chat import StrictChat as StrictChat
    from crow.testing.editor import FakeEditor as FakeEditor
    from crow.testing.endpoint import Endpoint as Endpoint
    from crow.testing.endpoint import Response as Response
    from crow.testing.gemini import StrictGemini as StrictGemini
    from crow.testing.messages import StrictMessages as StrictMessages
    from crow.testing.model import Line as Line
    from crow.testing.model import ScriptedCall as ScriptedCall
    from crow.testing.model import ScriptedModel as ScriptedModel
    from crow.testing.model import ScriptedText as ScriptedText
    from crow.testing.model import call as call
    from crow.testing.model import delay as delay
    from crow.testing.model import text as text
    from crow.testing.pilot import Pilot as Pilot
    from crow.testing.plugin import AgentOf as AgentOf
    from crow.testing.plugin import BuildAgent as BuildAgent
    from crow.testing.plugin import Scripted as Scripted
    from crow.testing.responses import StrictResponses as StrictResponses
    from crow.testing.user import ScriptedUser as ScriptedUser

HOMES = {
    "AgentOf": "plugin",
    "BuildAgent": "plugin",
    "Endpoint": "endpoint",
    "FakeEditor": "editor",
    "Line": "model",
    "Pilot": "pilot",
    "Response": "endpoint",
    "Scripted": "plugin",
    "ScriptedCall": "model",
    "ScriptedModel": "model",
    "ScriptedText": "model",
    "ScriptedUser": "user",
    "StrictGemini": "gemini",
    "StrictChat": "chat",
    "StrictMessages": "messages",
    "StrictResponses": "responses",
    "call": "model",
    "delay": "model",
    "text": "model",
}

__all__ = list(HOMES)  # pyright: ignore[reportUnsupportedDunderAll]


if not TYPE_CHECKING:  # a checker takes any name for there where it sees one

    def __getattr__(name: str) -> object:
        """Import a name's home when the name is first asked for."""
        if name not in HOMES:
            raise import_module("crow._lazy").missing(__name__, name, HOMES)
        return getattr(import_module(f"{__name__}.{HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
