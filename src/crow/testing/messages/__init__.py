"""An endpoint of Anthropic's Messages protocol that is as strict as the published rules."""

from __future__ import annotations

from crow.testing.messages.endpoint import StrictMessages
from crow.testing.messages.replies import redacted, search, thought, use
from crow.testing.messages.rules import RULES

__all__ = ["RULES", "StrictMessages", "redacted", "search", "thought", "use"]
