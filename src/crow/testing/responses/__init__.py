"""A strict double of OpenAI's Responses, its rules, and the items that it says."""

from __future__ import annotations

from crow.testing.responses.endpoint import StrictResponses, stream
from crow.testing.responses.events import called, events, response, text_item, thought
from crow.testing.responses.rules import RULES

__all__ = [
    "RULES",
    "StrictResponses",
    "called",
    "events",
    "response",
    "stream",
    "text_item",
    "thought",
]
