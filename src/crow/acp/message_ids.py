"""The ids of messages: the history's own, and others for what never enters it."""

from __future__ import annotations

from crow.core.cache import Key
from crow.core.hooks.run_context import RunContext
from crow.core.session import Session

ASIDES: Key[int] = Key("acp.asides")


def message_id(session: Session, given: str = "") -> str:
    """The id of a message that is shown now; ``given`` is the one that the event names.

    What a command says without a model, and a prompt that a hook refuses, enter no history, which
    does not count them: clients would take the next message for the same one.
    """
    stands = given or session.next_message_id
    run = at_work(session)
    if run is None or run.stored:
        return stands
    return f"{stands}.aside.{ASIDES.get(session) or 0}"


def next_id(message_id: str) -> str:
    """The id of the message that comes after one."""
    before, _, number = message_id.rpartition(".")
    return f"{before}.{int(number) + 1}" if number.isdecimal() else message_id


def end_run(session: Session) -> None:
    """A run has ended: what the next one says aside is another message."""
    ASIDES.set(session, (ASIDES.get(session) or 0) + 1)


def at_work(session: Session) -> RunContext | None:
    """The run of a session that is on; the others wait for it."""
    return next((run for run in session.runs if run.holds_lock), None)


def is_on(session: Session) -> bool:
    """True while something is worked on in a session, until the moment that tells of its end."""
    run = at_work(session)
    is_over = run is None or run.abandoned or (run.task is not None and run.task.done())
    return not is_over
