"""A model for sub-agents, each of which is a conversation of its own."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence

from crow.core.ports.llm import Completion, Delta, Request
from crow.testing import ScriptedModel
from crow.testing.model import Line


class Branching:
    """A model that plays a script of its own in every conversation, made from its first prompt."""

    model = "branching"
    context_window: int | None = None

    def __init__(self, script: Callable[[str], Sequence[Line]]) -> None:
        self.script = script
        self.conversations: dict[str, ScriptedModel] = {}

    def stream(self, request: Request) -> AsyncGenerator[Delta | Completion, None]:
        if request.session_id not in self.conversations:
            prompt = next(m for m in request.messages if m["role"] == "user")
            script = self.script(str(prompt.get("content")))
            self.conversations[request.session_id] = ScriptedModel(*script, leftover="allow")
        return self.conversations[request.session_id].stream(request)
