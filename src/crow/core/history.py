"""The history of a conversation, which notices who else changes it and can take that back.

What waits to be said, until a request takes it along, is its `Inbox`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import repeat, takewhile
from operator import contains
from types import MappingProxyType
from typing import Any, Self, SupportsIndex, cast

from crow.core.messages import (
    Message,
    TokenCount,
    Usage,
    is_prompt,
    tool_answer,
    total_of,
    unwritten,
    weight,
)
from crow.core.support.frozen import IN_LIST, KeptDict, OwnList, kept
from crow.core.support.tasks import DOING, Spawned
from crow.core.support.validation import fits
from crow.core.tools import Call

UNBEGUN = "it must begin with what the user said"
NO_ANSWERS: Mapping[str, Message] = MappingProxyType({})


class CallIds:
    """The ids of a conversation's calls, also of those that are in the history no more.

    What a model repeats gets another id, which stands for the same in all of a turn: in the pieces
    that come before the reply, in the reply, and in another attempt at it.
    """

    __slots__ = ("_instead", "_number", "_used")

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._instead: dict[str, str] = {}
        self._number = 0

    def use(self, ids: Iterable[str]) -> None:
        """Know ids of calls."""
        self._used.update(ids)

    def begin(self) -> None:
        """Begin a turn: what is repeated from now on is another call again."""
        self._instead.clear()

    def known(self, said: str) -> str:
        """The id in this turn of a call to which somebody gives one."""
        if said not in self._used:
            return said
        if said not in self._instead:
            self._instead[said] = self._new()
        return self._instead[said]

    def distinct(self, calls: Iterable[Call]) -> tuple[Call, ...]:
        """The calls of a reply, each of them with an id of its own."""
        found: dict[str, Call] = {}
        for call in calls:
            known = self.known(call.id)
            known = self._new() if known in found else known
            found[known] = call if known == call.id else replace(call, id=known)
        return tuple(found.values())

    def own(self, calls: Iterable[Call]) -> list[Call]:
        """Calls that no model has made, each with an id of its own, which is used then."""
        own: list[Call] = []
        for call in calls:
            own.append(replace(call, id=self._new()) if call.id in self._used else call)
            self._used.add(own[-1].id)
        return own

    def _new(self) -> str:
        """Nine letters and digits: one provider takes nothing else."""
        while True:
            self._number += 1
            new = f"call{self._number:05d}"
            if new not in self._used:
                return new


class History(list[Message]):
    """A list of messages. What the core itself does goes through `add` and `put`.

    The messages in it cannot be changed in place: who tries that is told so there and then.
    Every other change keeps what was there ``before``, the ``place`` (file and line) from which it
    was made and the ``task`` that made it, until `judged` keeps it or takes it back. ``anchor`` is
    what a provider reported for how many of the messages.
    """

    __slots__ = ("_ids", "_looked", "_read", "_weighed", "anchor", "before", "place", "task")

    def __init__(self, messages: Iterable[Message] = (), ids: CallIds | None = None) -> None:
        super().__init__(map(kept, messages))
        self._ids = ids or CallIds()
        self._looked = 0
        self._read = (0, False)
        self.before: list[Message] | None = None
        self.place = ""
        self.task: asyncio.Task[Any] | None = None
        self.anchor: tuple[int, Usage] = (0, Usage())
        self._weighed = (0, 0)

    def add(self, message: Message) -> None:
        """Put a message at the end."""
        super().append(kept(message))

    def put(self, messages: Iterable[Message]) -> None:
        """Become these messages; what others changed is kept."""
        super().__setitem__(slice(None), [kept(message) for message in messages])
        self.before = None
        self._look_again()

    def _look_again(self) -> None:
        self._looked, self._read = 0, (0, False)

    @property
    def has_written(self) -> bool:
        """Whether a message has what is no part of requests; those are not looked at again."""
        if self.before is not None:
            return any(map(contains, self, repeat("written")))
        length, found = self._read
        if new := self[length:]:
            found = found or any(map(contains, new, repeat("written")))
            self._read = length + len(new), found
        return found

    @property
    def call_ids(self) -> CallIds:
        """The ids of the calls, also of an earlier segment's; of what is judged already."""
        if self.before is None and (new := self[self._looked :]):
            self._ids.use(call["id"] for each in new for call in each.get("tool_calls", ()))
            self._looked += len(new)
        return self._ids

    def mend(self, why: str, answers: Mapping[str, Message], *, ongoing: bool) -> list[Message]:
        """Become whole, as `repaired` has it; the messages that were added."""
        known = set(map(id, self))
        whole = repaired(self, why, answers=answers, ongoing=ongoing)
        added = [message for message in whole if id(message) not in known]
        if added or len(whole) != len(self):
            self.put(whole)
        return added

    def report(self, usage: Usage, *, ahead: bool) -> None:
        """Count what a provider reported for the messages, and for one more that is ``ahead``."""
        length = len(self) + ahead
        self.anchor, self._weighed = (length, kept(usage)), (length, 0)

    def tokens(self, context_window: int | None) -> TokenCount:
        """How many tokens the next request will have, about."""
        usage = self.anchor[1]
        total = total_of(usage) + self._weigh() // 4
        return {
            "total_tokens": total,
            "input_tokens": usage.get("input_tokens", 0),
            "cached_tokens": usage.get("cached_tokens", 0),
            "context_window": context_window,
            "fraction": total / context_window if context_window else None,
        }

    def _weigh(self) -> int:
        """Characters since the anchor; what was weighed before is not weighed again."""
        length, characters = self._weighed
        if new := self[length:]:
            characters += sum(map(weight, new))
            self._weighed = (length + len(new), characters)
        return characters

    def follow(self, old: History, depth: int) -> None:
        """Stand in the place of another one, as somebody's change of it."""
        self.anchor, self._weighed, self._ids = old.anchor, old._weighed, old.call_ids
        self.touch(list(old) if old.before is None else old.before, depth)

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
        self._look_again()
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


def unanswered(messages: Sequence[Message]) -> list[str]:
    """Ids of the tool calls at the end that have no answer yet."""
    answered: set[str] = set()
    for message in reversed(messages):
        if message["role"] != "tool":
            calls = message.get("tool_calls", ())
            return [call["id"] for call in calls if call["id"] not in answered]
        answered.add(message.get("tool_call_id", ""))
    return []


def open_end(messages: Sequence[Message]) -> list[Message]:
    """The last messages, from a reply on whose calls are not all answered; else none."""
    if not unanswered(messages):
        return []
    answers = takewhile(lambda message: message["role"] == "tool", reversed(messages))
    return list(messages[-1 - len(list(answers)) :])


def repaired(
    messages: Sequence[Message],
    why: str = "the result was lost",
    *,
    answers: Mapping[str, Message] = NO_ANSWERS,
    ongoing: bool = False,
) -> list[Message]:
    """The messages as an endpoint takes them: lost results answered for, the rest left out.

    A call that lacks its result gets that of ``answers``, else ``why``; those at the end stay open
    where they are ``ongoing``.
    """
    whole: list[Message] = []
    waiting: list[str] = []
    for message in [*filter(None, map(sound, messages)), None]:
        if message is not None and message["role"] == "tool":
            if (call_id := message.get("tool_call_id", "")) in waiting:
                waiting.remove(call_id)
                whole.append(message)
            continue
        if message is not None or not ongoing:
            whole += [answers.get(call_id) or tool_answer(call_id, why) for call_id in waiting]
        if message is not None:
            whole.append(message)
            waiting = [call["id"] for call in message.get("tool_calls", ())]
    return whole


def sound(message: Message) -> Message | None:
    """A message as endpoints take one, by itself; None where nothing is said in it."""
    if "role" not in message:
        return None
    role, calls = message["role"], message.get("tool_calls")
    if calls is not None and (role != "assistant" or not calls):
        message = cast(Message, {k: v for k, v in message.items() if k != "tool_calls"})
        calls = None
    if calls or message.get("content") is not None:
        return message
    return {**message, "content": ""} if role == "tool" else None


def flow(message: Message) -> tuple[str | None, tuple[str, ...]] | None:
    """The call that a message answers, and those that it makes; None where no endpoint takes it."""
    as_it_is: Any = message
    if (known := getattr(as_it_is, "flow", None)) is not None:
        return known
    if sound(message) is not message:
        return None
    calls = tuple(call["id"] for call in message.get("tool_calls", ()))
    found = message.get("tool_call_id", "") if message["role"] == "tool" else None, calls
    if isinstance(as_it_is, KeptDict):
        as_it_is.flow = found
    return found


def flaw(messages: Iterable[Message]) -> str | None:
    """Why no endpoint would take these messages: an unanswered call, an answer to no call."""
    waiting: Any = ()
    for message in messages:
        if (known := flow(message)) is None:
            return f"{str(message)[:60]} lacks its role or content, or calls nothing"
        answered, calls = known
        if answered is not None:
            if answered not in waiting:
                return f"the result {answered!r} follows no call of that id"
            waiting = [each for each in waiting if each != answered]
        elif waiting:
            return f"the call {waiting[0]!r} has no result"
        else:
            waiting = calls
    return f"the call {waiting[0]!r} has no result" if waiting else None


def flaw_before(messages: list[Message], history: History) -> str | None:
    """The same, where messages may end with a history that nobody has touched: that is whole."""
    own = before(messages, history)
    return flaw(messages if own is None or unanswered(history) else messages[:own])


def before(messages: Sequence[Message], history: History) -> int | None:
    """How many messages stand before a history that nobody has touched; None where none follows."""
    own = len(messages) - len(history)
    is_known = own >= 0 and history.before is None and messages[own:] == history
    return own if is_known else None


def sendable(messages: History) -> list[Message]:
    """The messages as a model gets them; the same list where nothing has to be left out."""
    if not messages.has_written:
        return messages
    return [kept(unwritten(each)) if "written" in each else each for each in messages]


class Inbox(OwnList[Message]):
    """The messages that wait to be said: everybody may add some, the loop takes them.

    ``by_hooks`` is what hooks have put in: with that alone nobody keeps a run going for ever.
    """

    __slots__ = ("by_hooks",)

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        super().__init__(messages)
        self.by_hooks: list[Message] = []

    def append(self, message: Message) -> None:
        """Put a message at the end."""
        self.insert(len(self), message)

    def extend(self, messages: Iterable[Message]) -> None:
        """Put messages at the end."""
        for message in messages:
            self.append(message)

    def __iadd__(self, messages: Iterable[Message]) -> Self:  # pyright: ignore[reportIncompatibleMethodOverride]
        self.extend(messages)
        return self

    def insert(self, index: SupportsIndex, message: Message) -> None:
        """Put a message in front of another one."""
        cast(Any, list).insert(self, index, message)
        doing = DOING.get()
        if doing is not None and not isinstance(doing, Spawned):
            self.by_hooks.append(message)

    def put(self, items: Iterable[Message]) -> None:
        """Become these messages."""
        super().put(items)
        here = set(map(id, self))
        self.by_hooks = [each for each in self.by_hooks if id(each) in here]

    def prompts(self, *, by_hooks: bool) -> list[Message]:
        """The prompts that wait: those of hooks, or all others."""
        theirs = set(map(id, self.by_hooks))
        said = filter(fits(Message), self)
        return [each for each in said if is_prompt(each) and (id(each) in theirs) is by_hooks]
