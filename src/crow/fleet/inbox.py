"""The inbox: questions that wait for a person, answered from a terminal, an editor or by HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crow.cli.parser import no_such
from crow.fleet.job_filter import JobFilter, table
from crow.fleet.task import FleetError

if TYPE_CHECKING:
    from crow.fleet.board import Board


class InboxError(FleetError):
    """An answer that cannot be taken. ``status`` is HTTP's."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


async def job_of(board: Board, beginning: str) -> dict[str, Any]:
    """The job whose id begins so. Raises `InboxError` where there is none, or several."""
    found = await board.jobs(JobFilter(job=beginning))
    if len(found) != 1:
        many = "no job has" if not found else "several jobs have"
        raise InboxError(f"{many} the id {beginning!r}", 404)
    return found[0]


async def waiting(board: Board, where: JobFilter) -> list[dict[str, Any]]:
    """All questions, the longest first that wait. ``number`` tells those of one job apart."""
    rows = await board.jobs(JobFilter(where.batch, where.label, where.job, "waiting"))
    return [
        {
            "id": row["id"],
            "number": row["epoch"],
            "batch": row["batch"],
            "labels": row["labels"],
            "prompt": row["task"]["prompt"],
            "question": table(row["question"]),
        }
        for row in rows
    ]


async def answer(board: Board, beginning: str, text: str, number: int | None = None) -> str:
    """Answer what a job waits for, so that it goes on; the job's id.

    ``number`` is that of the question that is meant. Raises `InboxError`.
    """
    row = await job_of(board, beginning)
    short = row["id"][:8]
    choices: list[str] = table(row["question"]).get("choices") or []
    if row["state"] != "waiting":
        raise InboxError(f"{short} waits for nothing: it is {row['state']}", 409)
    if choices and text not in choices:
        raise InboxError(f"{no_such('answer', text, choices)} ({', '.join(choices)})", 400)
    if not await board.answer(row["id"], text, number or row["epoch"]):
        raise InboxError(f"{short} waits for this no more: it was answered already", 409)
    return row["id"]
