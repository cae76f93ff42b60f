"""Questions to the person at the terminal. Whoever waits for an answer can be cancelled."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Sequence

from crow.cli.output import Output
from crow.core.ports.client import PermissionRequest, Question
from crow.text import clean, one_line

SHOWN_LINES = 12
LEAVING = ("exit", "quit")
"""Words that leave the terminal's talk, with a slash or by themselves."""
YES_NO = {"y": "allow_once", "yes": "allow_once", "n": "reject_once", "no": "reject_once"}


def leaves(line: str, words: Sequence[str] = LEAVING) -> bool:
    """True for what leaves: one of these words, or any of them with a slash."""
    return line in words or line in [f"/{word}" for word in LEAVING]


async def read_line() -> str | None:
    """A line that the person types; None where the input ends."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    source = sys.stdin.fileno()
    try:
        loop.add_reader(source, lambda: ready.done() or ready.set_result(None))
    except NotImplementedError:  # Windows, where only a thread can wait for a terminal
        line = (await asyncio.to_thread(sys.stdin.readline)).encode()
    else:
        try:
            await ready
        finally:
            loop.remove_reader(source)
        line = os.read(source, 65536)  # a terminal gives one line at a time
    return line.decode(errors="replace").strip() if line else None


def keeps(request: PermissionRequest) -> bool:
    """True where rules can be kept: the second option is to allow what they speak of always."""
    is_offered = [option.kind for option in request.options[:2]] == ["allow_once", "allow_always"]
    return is_offered and bool(request.rules) and request.keep is not None


def answers_to(request: PermissionRequest) -> str:
    """What can be typed, beside nothing."""
    rules = ", s in this session, 2 RULE by another rule" if keeps(request) else ""
    explains = ", ? explains" if request.explanation else ""
    return f"1-{len(request.options)}{rules}{explains}"


class Asker:
    """Asks one question at a time.

    Who leaves instead of answering has ``is_left`` set and ``when_left`` called, which is to end
    what the question was asked for.
    """

    def __init__(self, out: Output) -> None:
        self.out = out
        self.is_left = False
        self.when_left: Callable[[], object] | None = None
        self._turn = asyncio.Lock()

    async def _line(self, leaving: Sequence[str] = LEAVING) -> str:
        """What the person types; empty where that is the end of the input, or leaves."""
        line = await read_line()
        self.out.at_start = line is not None
        if line is not None and not leaves(line, leaving):
            return line
        self.is_left = True
        if self.when_left is not None:
            self.when_left()
            await asyncio.sleep(0)  # where the work that asks is cancelled, it is here
        return ""

    async def permission(self, request: PermissionRequest) -> str | None:
        """The id of the option that the person chose; None where they left."""
        async with self._turn:
            self._show(request)
            return await self._choose(request)

    def _show(self, request: PermissionRequest) -> None:
        out = self.out
        out.start_line()
        out.write(f"? {request.call.name} wants to run", "yellow", "bold")
        out.write(f"  {one_line(request.reason)}\n" if request.reason else "\n", "dim")
        lines = [line for line in clean(request.title).splitlines() if line.strip()]
        for line in lines[:SHOWN_LINES]:
            out.line(f"    {line}")
        if len(lines) > SHOWN_LINES:
            out.line(f"    … and {len(lines) - SHOWN_LINES} more lines", "dim")
        from crow.cli.call_preview import preview

        for line, styles in preview(request):
            out.raw(f"    {out.styled(line, *styles)}")

    async def _choose(self, request: PermissionRequest) -> str | None:
        options, explanation = request.options, request.explanation
        for number, option in enumerate(options, 1):
            self.out.line(f"  {number}  {one_line(option.name)}")
        refusal = next((o for o in options if o.kind.startswith("reject")), None)
        while True:
            self.out.write(f"  {answers_to(request)}, Enter rejects: ", "dim")
            line = await self._line()
            if line == "?" and explanation:
                self.out.line(f"  It {one_line(explanation)}.")
                continue
            if not line:
                return refusal.id if refusal and not self.is_left else None
            if keeps(request) and (chosen := await self._keep(request, line)):
                return chosen
            for number, option in enumerate(options, 1):
                names = (str(number), option.id.casefold(), option.name.casefold())
                if line.casefold() in names or YES_NO.get(line.casefold()) == option.kind:
                    return option.id

    async def _keep(self, request: PermissionRequest, line: str) -> str:
        """Keep the rules that a line wants kept; the option that lets the call through then."""
        number, _, rule = line.partition(" ")
        rules = request.rules if line.casefold() == "s" else (rule,) if number == "2" else ()
        for each in filter(None, rules):
            assert request.keep is not None
            if await request.keep(each, "allow", bool(rule)) is False:
                self.out.line(f"  {one_line(each)} is no rule.")
                return ""
        return request.options[0].id if any(rules) else ""

    async def question(self, question: Question) -> object:
        """What the person answers; the question's default where they left."""
        async with self._turn:
            self.out.line(f"? {one_line(question.text)}", "yellow", "bold")
            for line in clean(question.detail).splitlines():
                self.out.line(f"    {line}", "dim")
            match question.kind:
                case "confirm":
                    return await self._confirm(question)
                case "select":
                    return await self._select(question)
                case "text":
                    self.out.write("  ")
                    return await self._line(()) or question.default

    async def _confirm(self, question: Question) -> object:
        while True:
            self.out.write("  y/n: ", "dim")
            match (await self._line()).casefold():
                case "y" | "yes":
                    return True
                case "n" | "no":
                    return False
                case "":
                    return question.default
                case _:
                    continue

    async def _select(self, question: Question) -> object:
        answers = {str(number): choice for number, choice in enumerate(question.choices, 1)}
        if question.word:
            answers[question.word] = answers.pop(str(len(answers)))
        width = max(map(len, answers), default=0)
        for answer, choice in answers.items():
            self.out.line(f"  {answer:{width}}  {one_line(choice)}")
        answers |= {choice: choice for choice in question.choices}
        numbers = len(question.choices) - bool(question.word)
        given = f"is {one_line(question.default)}" if question.default else "leaves it open"
        more = f", or write {question.word}" if question.word else f" (Enter {given})"
        asked = f"1-{numbers}{more}"
        while True:
            self.out.write(f"  {asked}: ", "dim")
            line = await self._line(())
            if not line:
                return question.default
            if line in answers:
                return answers[line]
