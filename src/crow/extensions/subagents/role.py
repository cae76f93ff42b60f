"""What hangs on every sub-agent: who it is, and the modes of the session that it works for."""

from __future__ import annotations

from crow.core.contexts import ToolContext, TurnContext
from crow.core.messages import Message


class Role:
    """Puts a prompt as the system message in front of every request that has none."""

    name = "role"

    def __init__(self, prompt: str) -> None:
        self.prompt = prompt

    def before_llm_request(self, ctx: TurnContext) -> list[Message] | None:
        """Put it first."""
        messages = ctx.messages
        if messages and messages[0]["role"] in ("system", "developer"):
            return None
        return [{"role": "system", "content": self.prompt}, *messages]


class Leash:
    """Lets calls be judged in the mode that the user has chosen by now."""

    name = "leash"

    def before_tool(self, ctx: ToolContext) -> None:
        """Take over the mode and the directories of the session that a person talks to."""
        root = ctx.session.root
        ctx.session.mode, ctx.session.directories = root.mode, root.directories
