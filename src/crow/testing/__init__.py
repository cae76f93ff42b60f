"""Tools for tests of agents and extensions: a scripted model, a scripted endpoint, an editor.

Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crow._lazy import lazy

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

_ROOMS = {
    "crow.testing.chat": "StrictChat",
    "crow.testing.editor": "FakeEditor",
    "crow.testing.endpoint": "Endpoint Response",
    "crow.testing.gemini": "StrictGemini",
    "crow.testing.messages": "StrictMessages",
    "crow.testing.model": "Line ScriptedCall ScriptedModel ScriptedText call delay text",
    "crow.testing.pilot": "Pilot",
    "crow.testing.plugin": "AgentOf BuildAgent Scripted",
    "crow.testing.responses": "StrictResponses",
    "crow.testing.user": "ScriptedUser",
}

if not TYPE_CHECKING:  # a checker takes any name for there where it sees one
    __all__, __getattr__, __dir__ = lazy(__name__, _ROOMS)
