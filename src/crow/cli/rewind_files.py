"""The rewind of files to before a prompt, as a terminal asks it of the extension that keeps them.

It is any `crow.ports.FileKeeper`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

from crow.core.ports.client import Question
from crow.core.support.validation import first_implementing, implements
from crow.ports.extensions import FileKeeper, RewindOutcome, RewindPlan, RewindStep

if TYPE_CHECKING:
    from crow.core.agent import Agent
    from crow.core.ports.tool import SlashCommand
    from crow.core.session import Session

UNTOUCHED = "files are not touched"
BOTH, FILES, TALK = "files and conversation", "files alone", "conversation alone"
OVER, NOTHING = "both, and over what others changed", "nothing"
NOBODY = "nobody keeps files: the extension rewind is not in use"
UNDO = "bring them back"
BACK = "back"
"""The word that undoes the last rewind of files."""
MOST = 40
"""Paths that are shown."""


class Asking(Protocol):
    """A face that the person is asked in."""

    async def ask(self, session_id: str, question: Question) -> Any:
        """Ask something."""
        ...


def keeper_of(agent: Agent, session: Session | None = None) -> FileKeeper | None:
    """The extension that keeps files; None where none does."""
    used = agent.extensions if session is None else agent.extensions_of(session)
    return first_implementing(used.values(), FileKeeper)


def is_keepers(command: SlashCommand) -> bool:
    """True for the command by which such an extension asks clients that have no list."""
    return implements(getattr(command.run, "__self__", None), FileKeeper)


def plan_lines(plan: RewindPlan, cwd: str) -> list[str]:
    """What would change, a path a line."""
    lines = plan.lines(cwd)
    more = len(lines) - MOST
    return [*lines[:MOST], *([f"… and {more} more"] if more > 0 else [])]


def count_of(steps: Iterable[RewindStep]) -> int:
    """How many of them are files, as the plan shows them."""
    return sum(not step.is_folder for step in steps)


def outcome_line(outcome: RewindOutcome) -> str:
    """What came of it, in a line."""
    count = count_of(outcome.done)
    text = f"{count} {'file was' if count == 1 else 'files were'} brought back"
    failed = "; ".join(f"{path} was not: {reason}" for path, reason in outcome.failed)
    return f"{text}; {failed}" if failed else text


class RewindDialog:
    """One way back: what the person wants of it. ``talks`` is for the conversation."""

    def __init__(self, keeper: FileKeeper | None, session: Session, face: Asking) -> None:
        self.talks = True
        self._keeper = keeper
        self._session = session
        self._face = face
        self._plan: RewindPlan | None = None
        self._overwrite = False

    async def choose(self, since: float) -> bool:
        """Show what would change and ask; False where nothing is to happen."""
        if self._keeper is None:
            return True
        plan = await self._keeper.plan_rewind(self._session, since)
        if not plan.steps and not plan.notes:
            return True
        ready = (BOTH, FILES) if any(step.action != "leave" for step in plan.steps) else ()
        offered = [*ready, TALK, *([OVER] if plan.foreign else []), NOTHING]
        chosen = await self._ask(plan, "Bring back what?", offered)
        self.talks = chosen != FILES
        return chosen in offered[:-1]

    async def undo(self) -> str:
        """Bring files back to before the last rewind, if the person agrees; what came of it."""
        if self._keeper is None:
            return NOBODY
        rewinds = await self._keeper.rewinds(self._session)
        if not rewinds:
            return "no files were brought back in this session"
        plan = await self._keeper.plan_rewind(self._session, rewinds[-1])
        if not plan.steps:
            return "the files are as they were before the last rewind"
        await self._ask(plan, "The files as before the last rewind?", [UNDO, NOTHING])
        return await self.bring_back()

    async def _ask(self, plan: RewindPlan, text: str, offered: list[str]) -> str:
        """Show a plan, and ask; it is carried out where the answer is not about talk alone."""
        detail = "\n".join(plan_lines(plan, self._session.cwd))
        question = Question(text, "select", tuple(offered), NOTHING, detail=detail)
        chosen: str = await self._face.ask(self._session.id, question)
        self._overwrite = chosen == OVER
        self._plan = plan if chosen in (BOTH, FILES, OVER, UNDO) else None
        return chosen

    async def bring_back(self) -> str:
        """Bring the files back that were chosen; what came of it, in words."""
        if self._plan is None or self._keeper is None:
            return UNTOUCHED
        session, plan = self._session, self._plan
        outcome = await self._keeper.carry_out_rewind(session, plan, overwrite=self._overwrite)
        return outcome_line(outcome) + (f" (/rewind {BACK} undoes that)" if outcome.done else "")
