"""A conversation's messages, which notice who else changes them and can take that back."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from crow.core.frozen import IN_LIST, kept
from crow.core.messages import Message, tool_answer
from crow.core.validation import fits

UNBEGUN = "it must begin with what the user said"


class History(list[Message]):
    """A list of messages. What the core itself does goes through `add` and `put`.

    The messages in it cannot be changed in place: who tries that is told so there and then.
    Every other change keeps what was there ``before``, the ``place`` (file and line) from which it
    was made and the ``task`` that made it, until `judged` keeps it or takes it back.
    """

    __slots__ = ("before", "place", "task")

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        super().__init__(map(kept, messages))
        self.before: list[Message] | None = None
        self.place = ""
        self.task: asyncio.Task[Any] | None = None

    def add(self, message: Message) -> None:
        """Put a message at the end."""
        super().append(kept(message))

    def put(self, messages: Iterable[Message]) -> None:
        """Become these messages; what others changed is kept."""
        super().__setitem__(slice(None), [kept(message) for message in messages])
        self.before = None

    def touch(self, before: list[Message], depth: int = 2) -> None:
        """Remember what was there, and who changes it."""
        if self.before is None:
            frame = sys._getframe(depth)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - names a line
            self.before = before
            self.place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
            try:
                self.task = asyncio.current_task()
            except RuntimeError:
                self.task = None

    def undo(self) -> None:
        """Take the changes of others back."""
        if self.before is not None:
            self.put(self.before)

    def judged(self, *, too_late: bool = False) -> str | None:
        """What is wrong with the changes of others, which are taken back then; else None."""
        before, self.before = self.before or [], None
        wrong = "it is too late" if too_late else _wrong(before, self)
        messages = self if wrong is None else before
        super().__setitem__(slice(None), [kept(message) for message in messages])
        return wrong

    def __reduce__(self) -> Any:
        return list, (list(self),)


def _touching(name: str) -> Callable[..., Any]:
    change = getattr(list, name)

    def changed(self: History, *args: Any, **kwargs: Any) -> Any:
        self.touch(list(self))
        return change(self, *args, **kwargs)

    return changed


for _name in IN_LIST:
    setattr(History, _name, _touching(_name))


def _wrong(before: Sequence[Message], after: Sequence[Message]) -> str | None:
    known = set(map(id, before))
    odd = next((m for m in after if id(m) not in known and not fits(Message)(m)), None)
    if odd is not None:
        return f"{str(odd)[:60]} is no message"
    waiting = open_end(before)
    if waiting and after[-len(waiting) :] != waiting:
        return "calls wait for their results there"
    if before and begins(before) and not begins(after):
        return UNBEGUN
    return flaw(after[: -len(waiting)] if waiting else after)


def begins(messages: Sequence[Message]) -> bool:
    """True where nobody speaks before the user."""
    spoken = (m["role"] for m in messages if m["role"] not in ("system", "developer"))
    return next(spoken, "user") == "user"


def open_end(messages: Sequence[Message]) -> list[Message]:
    """The last messages, from a reply on whose calls are not all answered; else none."""
    answered: set[str] = set()
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message["role"] != "tool":
            calls = message.get("tool_calls", ())
            is_open = any(call["id"] not in answered for call in calls)
            return list(messages[index:]) if is_open else []
        answered.add(message.get("tool_call_id", ""))
    return []


def repaired(messages: Sequence[Message]) -> list[Message]:
    """The messages as an endpoint takes them: lost results answered for, the rest left out."""
    whole: list[Message] = []
    waiting: list[str] = []
    for message in [*messages, None]:
        if message is not None and "role" not in message:
            continue
        if message is not None and message["role"] == "tool":
            if (call_id := message.get("tool_call_id", "")) in waiting:
                waiting.remove(call_id)
                whole.append({"content": "", **message})
            continue
        whole += [tool_answer(call_id, "the result was lost") for call_id in waiting]
        waiting = []
        if message is not None:
            whole.append(message)
            waiting = [call["id"] for call in message.get("tool_calls", ())]
    return whole


def flaw(messages: Iterable[Message]) -> str | None:
    """Why no endpoint would take these messages: an unanswered call, an answer to no call."""
    waiting: Any = ()
    for message in messages:
        if "role" not in message or (message["role"] == "tool" and "content" not in message):
            return "a message lacks its role or content"
        if message["role"] == "tool":
            call_id = message.get("tool_call_id", "")
            if call_id not in waiting:
                return f"the result {call_id!r} follows no call of that id"
            waiting = [each for each in waiting if each != call_id]
        elif waiting:
            return f"the call {waiting[0]!r} has no result"
        elif "tool_calls" in message:
            waiting = [call["id"] for call in message["tool_calls"]]
    return f"the call {waiting[0]!r} has no result" if waiting else None
