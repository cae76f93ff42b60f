"""A strict double of OpenAI's Responses, its rules, and the items that it says."""

from __future__ import annotations

from crow.testing.responses.endpoint import StrictResponses, stream
from crow.testing.responses.events import called, events, response, said, thought
from crow.testing.responses.rules import RULES, Rule

__all__ = [
    "RULES",
    "Rule",
    "StrictResponses",
    "called",
    "events",
    "response",
    "said",
    "stream",
    "thought",
]
