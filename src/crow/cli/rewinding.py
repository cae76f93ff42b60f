"""Files as they were before a prompt: what a terminal asks of the extension that keeps them.

It is any extension with ``plan_rewind(session, since)``, ``carry_out_rewind(session, plan,
overwrite=)`` and ``rewinds(session)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from crow.core.ports import Question

if TYPE_CHECKING:
    from crow.core.agent import Agent
    from crow.core.ports import SlashCommand
    from crow.core.session import Session

UNTOUCHED = "files are not touched"
BOTH, FILES, TALK = "files and conversation", "files alone", "conversation alone"
OVER, NOTHING = "both, and over what others changed", "nothing"
MOST = 40
"""Paths that are shown."""


class Asking(Protocol):
    """Where the person is asked."""

    async def ask(self, session_id: str, question: Question) -> Any:
        """Ask something."""
        ...


def keeper_of(agent: Agent, session: Session | None = None) -> Any:
    """The extension that keeps files; None where none does."""
    used = agent.extensions if session is None else agent.extensions_of(session)
    return next((each for each in used.values() if hasattr(each, "plan_rewind")), None)


def is_keepers(command: SlashCommand) -> bool:
    """True for the command by which such an extension asks clients that have no list."""
    return hasattr(getattr(command.run, "__self__", None), "plan_rewind")


def shown(plan: Any, cwd: str) -> list[str]:
    """What would change, a path a line."""
    lines: list[str] = plan.lines(cwd)
    more = len(lines) - MOST
    return [*lines[:MOST], *([f"… and {more} more"] if more > 0 else [])]


def told(outcome: Any) -> str:
    """What came of it, in a line."""
    count = len(outcome.done)
    text = f"{count} {'file was' if count == 1 else 'files were'} brought back"
    failed = "; ".join(f"{path} was not: {reason}" for path, reason in outcome.failed)
    return f"{text}; {failed}" if failed else text


class Going:
    """One way back: what the person wants of it. ``talks`` is for the conversation."""

    def __init__(self, keeper: Any, session: Session, face: Asking) -> None:
        self.talks = True
        self._keeper = keeper
        self._session = session
        self._face = face
        self._plan: Any = None
        self._overwrite = False

    async def choose(self, since: float) -> bool:
        """Show what would change and ask; False where nothing is to happen."""
        if self._keeper is None:
            return True
        plan = await self._keeper.plan_rewind(self._session, since)
        if not plan.steps and not plan.notes:
            return True
        detail = "\n".join(shown(plan, self._session.cwd))
        ready = (BOTH, FILES) if any(step.action != "leave" for step in plan.steps) else ()
        offered = [*ready, TALK, *([OVER] if plan.foreign else []), NOTHING]
        question = Question("Bring back what?", "select", tuple(offered), NOTHING, detail=detail)
        chosen = await self._face.ask(self._session.id, question)
        self.talks = chosen != FILES
        self._overwrite = chosen == OVER
        self._plan = plan if chosen in (BOTH, FILES, OVER) else None
        return chosen in offered[:-1]

    async def bring_back(self) -> str:
        """Bring the files back that were chosen; what came of it, in words."""
        if self._plan is None:
            return UNTOUCHED
        session, plan = self._session, self._plan
        outcome = await self._keeper.carry_out_rewind(session, plan, overwrite=self._overwrite)
        return told(outcome)
