"""The resumption of a turn that was cut short, because its process died."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crow.acp.turn import explain, over

if TYPE_CHECKING:
    from crow.acp.client import AcpClient
    from crow.core.agent import Agent
    from crow.core.session import Session

GO_ON = "Go on with what you were doing. It was interrupted: what ran then has an unknown outcome."


async def resume_turn(agent: Agent, session: Session, editor: AcpClient) -> None:
    """Let the model go on, and tell when it has ended; nothing where all had been said."""
    if session.busy or has_said_all(session):
        return
    editor.begin_turn()
    editor.tell(editor.projection.running())
    reply = await agent.prompt(session, GO_ON, shown=False)
    await explain(reply)
    editor.end_turn()
    editor.release()
    editor.tell(editor.projection.idle(reply))
    editor.post(over())


def has_said_all(session: Session) -> bool:
    """True where the last thing that was said is an answer, and wants no tool."""
    if not session.messages:
        return True
    last = session.messages[-1]
    return last["role"] == "assistant" and not last.get("tool_calls")
