"""The prompts of a program by their ids, and files as they were before one of them.

Who brings files back is any extension with ``plan_rewind`` and ``carry_out_rewind``.
"""

from __future__ import annotations

import time
import uuid

from crow.core.agent import Agent
from crow.core.events import Notice
from crow.core.messages import Content
from crow.core.session import Session
from crow.core.support.frozen import frozen
from crow.core.support.validation import first_implementing
from crow.ports.extensions import FileKeeper, RewindPlan
from crow.stream_json.content import content_of
from crow.stream_json.lines import ControlError, Message

STATE = "stream_json"
"""Where a session has the times of its prompts, in seconds of the epoch, by their ids."""


@frozen
class Prompt:
    """A prompt: ``id`` is the program's, or a new one; ``message`` is what the program sent."""

    id: str
    content: Content
    message: Message

    def replayed(self, session: Session) -> Message:
        """The prompt as it is told back."""
        return {
            "type": "user",
            "message": {"role": "user", **self.message["message"]},
            "session_id": session.id,
            "parent_tool_use_id": None,
            "uuid": self.id,
            "isReplay": True,
        }

    def note(self, session: Session) -> None:
        """Write down when it was said."""
        session.state.setdefault(STATE, {}).setdefault(self.id, time.time())


def prompt_of(message: Message) -> Prompt:
    """The prompt that a line has. Raises `ControlError` for what cannot be read."""
    return Prompt(str(message.get("uuid") or uuid.uuid4()), content_of(message), message)


async def rewind(agent: Agent, session: Session, request: Message) -> Message:
    """Bring files back to before a prompt, or say what that would change (``dry_run``).

    What somebody else changed is left alone, and told. Raises `ControlError` where nothing can be
    brought back.
    """
    is_dry = request.get("dry_run") is True
    try:
        keeper, plan = await _planned(agent, session, str(request.get("user_message_id")))
    except (ControlError, OSError) as error:
        if is_dry:
            return {"canRewind": False, "error": str(error)}
        raise
    left = [step for step in plan.steps if step.action == "leave"]
    answer = {"canRewind": True, "left": [{"path": s.path, "reason": s.reason} for s in left]}
    if is_dry:
        return {**answer, "filesChanged": [s.path for s in plan.steps if s.action != "leave"]}
    outcome = await keeper.carry_out_rewind(session, plan)
    for text in [*plan.notes, *(f"{step.path} is left alone: {step.reason}" for step in left)]:
        await session.client.update(session.id, Notice(text, "warning", "rewind"))
    if outcome.failed:
        told = "; ".join(f"{path}: {reason}" for path, reason in outcome.failed)
        raise ControlError(f"not all files were brought back ({told})")
    return {**answer, "filesChanged": sorted(step.path for step in outcome.done)}


async def _planned(agent: Agent, session: Session, prompt: str) -> tuple[FileKeeper, RewindPlan]:
    """The extension that keeps files, and its plan. Raises `ControlError`."""
    used = agent.extensions_of(session).values()
    keeper = first_implementing(used, FileKeeper)
    if keeper is None:
        raise ControlError("nobody keeps files here: the extension rewind is switched off")
    since = session.state.get(STATE, {}).get(prompt)
    if since is None:
        raise ControlError(
            f"no prompt of this session has the id {prompt!r} (--replay-user-messages tells them)"
        )
    return keeper, await keeper.plan_rewind(session, since)
