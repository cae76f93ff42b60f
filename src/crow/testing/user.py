"""A user who answers by a script, and remembers what they were asked and told."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from types import TracebackType
from typing import Any, Self, TypeAlias

from crow.core.errors import nearest
from crow.core.events import Event, Notice, TextDelta
from crow.core.ports.client import Files, PermissionRequest, Question, Terminals

Asked: TypeAlias = PermissionRequest | Question
Said: TypeAlias = str | bool | None
Answer: TypeAlias = "Said | Callable[[Any], Said | Awaitable[Said]]"
ONCE = {True: "allow_once", False: "reject_once"}


class ScriptedUser:
    """A client whose user gives one answer after another to what they are asked.

    An answer to a request for permission is an option's id, kind or name, or True or False: once.
    One to a question is what its kind wants: True or False, one of the choices, a text; each field
    of a form is a question. None leaves it to what happens where nobody is there. A function is
    called with the `PermissionRequest` or the `Question`, and returns one of these.

    ``asked`` is what the user was asked, ``told`` every event. What the list had no answer to, or
    a wrong one, is answered as by nobody, and `verify` raises AssertionError for it; so it does
    for answers that were left over. ``with ScriptedUser(...) as user:`` verifies at the end.
    """

    files: Files | None = None
    terminals: Terminals | None = None
    shows_subagents = True
    waits_for_servers = True  # whether a test passes is not for the machine to say

    def __init__(self, *answers: Answer) -> None:
        self.asked: list[Asked] = []
        self.told: list[Event] = []
        self._answers = list(answers)
        self._always: Answer | None = None
        self._faults: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if error is None:
            self.verify()

    def answers(self, *answers: Answer) -> None:
        """Add answers to the list."""
        self._answers.extend(answers)

    def always(self, answer: Answer) -> None:
        """Answer so whatever is asked past the list."""
        self._always = answer

    def check(self) -> None:
        """Raise AssertionError, once, for what had no answer, or a wrong one."""
        __tracebackhide__ = True
        faults, self._faults = self._faults, []
        if faults:
            raise AssertionError("\n".join(faults))

    def verify(self) -> None:
        """Raise AssertionError for that, and for answers that nobody asked for."""
        __tracebackhide__ = True
        self.check()
        if self._answers:
            left = ", ".join(map(repr, self._answers))
            asked = "".join(f"\n  {described(each)}" for each in self.asked) or " nothing"
            raise AssertionError(
                f"the scripted user was asked {len(self.asked)} times, and {len(self._answers)} "
                f"answers were left over: {left}; asked was:{asked}"
            )

    @property
    def text(self) -> str:
        """All that the user was told, as text."""
        return "\n".join(self.lines)

    @property
    def lines(self) -> list[str]:
        """What the user was told: each answer of the model, and each notice."""
        lines: list[str] = []
        spoken = ""
        for event in self.told:
            match event:
                case TextDelta(text, message_id) if message_id == spoken and lines:
                    lines[-1] += text
                case TextDelta(text, message_id):
                    lines.append(text)
                    spoken = message_id
                case Notice(text):
                    lines.append(text)
                    spoken = ""
                case _:
                    pass
        return lines

    # the client's side, see `crow.core.ports.client.Client`

    async def update(self, session_id: str, event: Event) -> None:
        """Remember an event."""
        self.told.append(event)

    async def permission(self, session_id: str, request: PermissionRequest) -> str | None:
        """The id of the option that the next answer means."""
        answer = await self._answer(request)
        if answer is None:
            return None
        wanted = ONCE[answer] if isinstance(answer, bool) else answer
        for option in request.options:
            if wanted in (option.id, option.kind, option.name):
                return option.id
        self._wrong(request, answer, [option.id for option in request.options])
        return None

    async def ask(self, session_id: str, question: Question) -> Any:
        """The next answer, where it is one to this question; else its default."""
        answer = await self._answer(question)
        if answer is None:
            return question.default
        match question.kind:
            case "confirm":
                fits, known = isinstance(answer, bool), ["True", "False"]
            case "select":
                fits, known = answer in question.choices, [*question.choices]
            case "text":
                fits, known = isinstance(answer, str), ["a text"]
        if not fits:
            self._wrong(question, answer, known)
            return question.default
        return answer

    async def _answer(self, asked: Asked) -> Said:
        """What the list has for the next question; None where it has nothing."""
        self.asked.append(asked)
        if not self._answers and self._always is None:
            count = len(self.asked)
            more = f" (it was question {count})" if count > 1 else ""
            self._faults.append(f"the scripted user has no answer{more}: {described(asked)}")
            return None
        answer = self._answers.pop(0) if self._answers else self._always
        said = answer(asked) if callable(answer) else answer
        return await said if isawaitable(said) else said

    def _wrong(self, asked: Asked, answer: Said, known: list[str]) -> None:
        near = nearest(str(answer), known)
        hint = f"did you mean {near!r}?" if near else f"it takes {', '.join(known)}"
        self._faults.append(
            f"the scripted user's answer {answer!r} is none to this, {hint}: {described(asked)}"
        )


def described(asked: Asked) -> str:
    """What was asked, in a line."""
    match asked:
        case PermissionRequest():
            about = f"{asked.call.name} ({asked.title})"
            options = ", ".join(option.id for option in asked.options)
            return f"permission for {about}: {asked.reason or 'no reason given'} [{options}]"
        case Question():
            choices = f" [{', '.join(asked.choices)}]" if asked.choices else ""
            return f"{asked.kind} {asked.text!r}{choices}"
