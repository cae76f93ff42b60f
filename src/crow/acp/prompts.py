"""Prompts on their way into the conversation: each is answered as soon as it stands there."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from crow.acp.errors import Refusal
from crow.acp.jsonrpc import REQUEST_CANCELLED, Message
from crow.acp.message_ids import at_work
from crow.core.hooks.run_context import Reply
from crow.core.session import Session

SHORT = 100
"""Characters of what can be a command: a prompt can have millions."""

if TYPE_CHECKING:
    from crow.acp.v2.outgoing import ContentBlock
    from crow.acp.words import Update


class Prompt:
    """One prompt as the client sent it; ``inserted`` becomes the id of its message.

    ``is_off`` is set where it was cancelled before anybody began to work on it.
    """

    def __init__(self, session: Session, blocks: list[ContentBlock]) -> None:
        self.session = session
        self.blocks = blocks
        self.is_off = False
        self.inserted: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def insert(self, message_id: str) -> Update | None:
        """It stands in the conversation: the update that shows it; None where it was shown."""
        if self.inserted.done():
            return None
        self.inserted.set_result(message_id)
        return {"sessionUpdate": "user_message", "messageId": message_id, "content": self.blocks}

    def withdraw(self, reply: Reply | None) -> None:
        """It will not come into the conversation any more, if it has not; None: nobody waits."""
        if self.inserted.done():
            return
        if reply is None:
            self.inserted.cancel()
        else:
            refusal = Refusal(REQUEST_CANCELLED, "Request cancelled", details=reply.detail)
            self.inserted.set_exception(refusal)


class Prompts:
    """The prompts of a connection by the task that works on each."""

    def __init__(self) -> None:
        self._by_task: dict[asyncio.Task[Any], Prompt] = {}

    def expect(self, task: asyncio.Task[Any], prompt: Prompt) -> None:
        """Know a prompt until its task is done."""
        self._by_task[task] = prompt
        task.add_done_callback(lambda done: self._by_task.pop(done, None))

    def call_off(self, session: Session) -> None:
        """Let nobody begin with what is expected; what has begun is not concerned."""
        for prompt in self._by_task.values():
            prompt.is_off = prompt.is_off or prompt.session is session

    def current(self, session: Session) -> Prompt | None:
        """The prompt that a session works on; None where it was not the client's."""
        run = at_work(session)
        return None if run is None or run.caller is None else self._by_task.get(run.caller)


def is_command(params: Message, name: str) -> bool:
    """True for a prompt that is this slash command and nothing else."""
    blocks = params["prompt"]
    text = str(blocks[0].get("text")) if len(blocks) == 1 else ""
    return len(text) < SHORT and text.strip() == f"/{name}"
