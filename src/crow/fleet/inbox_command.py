"""The inbox in a session: ``/inbox`` asks what waits for a person, in whatever client shows it."""

from __future__ import annotations

import json
import os
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

from crow.core.catalog import Command
from crow.core.verdicts import Answer
from crow.fleet.job_filter import JobFilter
from crow.fleet.task import FleetError

if TYPE_CHECKING:
    from crow.core.agent import Agent
    from crow.core.hooks.contexts import CommandContext
    from crow.core.ports.client import OptionKind
    from crow.fleet.board import Board

LATER = "later"
KINDS: dict[str, OptionKind] = {
    "allow_always": "allow_always",
    "reject_once": "reject_once",
    "reject_always": "reject_always",
    "no": "reject_once",
    LATER: "reject_once",
}
"""What the answers of a question permit; the others allow once."""


@dataclass(eq=False)
class InboxHook:
    """Adds `/inbox`, which asks what sessions of a fleet wait for, one question after the other.

    Each answer lets its session go on, on any machine.
    """

    name = "fleet"
    order = 195

    _: KW_ONLY
    store: str = ""
    """The fleet's database (``postgresql://...``); where it is empty: ``CROW_STORE``."""

    def init_agent(self, agent: Agent) -> None:
        """Add the command."""
        agent.add_command(Command("inbox", "Answer what sessions of the fleet wait for", self.run))

    async def run(self, ctx: CommandContext) -> Answer:
        """Ask all that waits, or what the job waits for whose id begins as the text behind it."""
        from crow.fleet.board import Board
        from crow.fleet.inbox import waiting
        from crow.fleet.queue import chosen_queue

        address = self.store or os.environ.get("CROW_STORE", "")
        if not address.startswith(("postgresql://", "postgres://")):
            return Answer("A fleet needs a PostgreSQL database: CROW_STORE=postgresql://...")
        try:
            async with Board(address, size=2, queue=chosen_queue()) as board:
                rows = await waiting(board, JobFilter(job=ctx.args))
                said = [line for row in rows if (line := await self._ask(ctx, board, row))]
        except (FleetError, ImportError) as error:
            return Answer(f"The inbox cannot be read: {error}")
        left = len(rows) - len(said)
        more = [f"{left} still wait for an answer."] if left else []
        return Answer("\n".join([*said, *more]) if rows else "Nothing waits for a person.")

    async def _ask(self, ctx: CommandContext, board: Board, row: dict[str, Any]) -> str:
        """Ask one question; what came of the answer, empty where there was none."""
        from crow.fleet.inbox import answer

        question: dict[str, Any] = row["question"]
        title = f"{row['id'][:8]}: {question.get('text', '')}"
        if choices := list(question.get("choices") or ()):
            offered = [*choices, LATER]
            kinds: list[OptionKind] = [KINDS.get(each, "allow_once") for each in offered]
            text = await ctx.ui.select(
                title, offered, default=LATER, kinds=kinds, detail=detail_of(row)
            )
        else:
            text = await ctx.ui.ask(f"{title}\n{detail_of(row)}")
        if not text or text == LATER:
            return ""
        try:
            await answer(board, row["id"], text, row["number"])
        except FleetError as error:
            return f"{row['id'][:8]}: {error}"
        return f"{row['id'][:8]} goes on: {text}"


def detail_of(row: dict[str, Any]) -> str:
    """What to know before answering: the call that is asked about, and the task."""
    question: dict[str, Any] = row["question"]
    called = ""
    if question.get("args"):
        called = f"{question.get('tool')} {json.dumps(question['args'], ensure_ascii=False)}\n\n"
    return f"{called}Task, of the batch {row['batch']}: {row['prompt']}"
