"""A question to the person, in the live area: what it is about, and one key for each answer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

from crow.core.ports.client import Option, PermissionRequest, Question
from crow.core.support.frozen import frozen
from crow.terminal.diff import diff_lines
from crow.terminal.palette import Palette
from crow.terminal.wrapping import folded
from crow.text import clean, columns, one_line, shorten, visible

QUIET, PAUSE = 0.4, 0.3
"""Seconds that a question is there, and in which nobody types, before a key answers it."""
SHOWN = 14
"""Lines of what a question is about that are shown at first."""
LEAST = 6
"""Lines of what a question is about for which answers are cut to a row each."""
KEYS = {"allow_once": "y", "allow_always": "a", "reject_once": "n", "reject_always": "x"}


@frozen
class Choice:
    """One answer: the key that gives it, what stands beside that, and what is answered then.

    ``then`` says what comes next, where that is not the end: ``words`` asks for some, which the
    model is told; ``rules`` lets rules be edited; ``explain`` shows more.
    """

    key: str
    text: str
    value: Any = None
    then: str = ""


class Asked:
    """A question that is open. ``answer`` is what the person says, or None where they said no more.

    ``typing`` says what is typed instead of keys, from ``written`` on; ``words`` are those that go
    with a no; ``left`` is True where the person wants everything to stop. One that ``is_own`` was
    opened by the person: nobody waits for them.
    """

    is_own = False
    hint = ""

    def __init__(self, head: str, choices: Sequence[Choice], palette: Palette, now: float) -> None:
        self.answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.head = head
        self.choices = choices
        self.typing = ""
        self.written = ""
        self.words = ""
        self.left = False
        self.is_secret = False
        self.whole = False
        self._first = self._shown = 0
        self.default: Any = None
        self.word: Choice | None = None
        self._palette = palette
        self._since = now
        self._is_armed = False
        self._chosen: int | None = None
        self._notes: list[str] = []

    def is_armed(self, now: float, last_key: float) -> bool:
        """True from the moment on at which keys answer it: nobody was typing something else."""
        if not self._is_armed:
            self._is_armed = now - self._since >= QUIET and now - last_key >= PAUSE
        return self._is_armed

    # what keys do

    def press(self, key: str) -> None:
        """A key that stands for an answer, or a number."""
        found = next((choice for choice in self.choices if choice.key == key.lower()), None)
        if found is None and key.isdigit() and 0 < int(key) <= len(self._numbered):
            found = self._numbered[int(key) - 1]
        if found is not None:
            self._take(found)

    def move(self, by: int) -> None:
        """Highlight another answer."""
        if self.choices:
            start = self._chosen if self._chosen is not None else (-1 if by > 0 else 0)
            self._chosen = (start + by) % len(self.choices)

    def scroll(self, by: int) -> None:
        """Show what the question is about from so many pages further on."""
        self._first = max(0, self._first + by * self._shown if self.whole else 0)
        self.whole = True

    def enter(self) -> None:
        """Give the highlighted answer, where one is."""
        if self._chosen is not None:
            self._take(self.choices[self._chosen])

    def leave(self) -> None:
        """No, and stop."""
        self.left = True
        self.resolve(self.default)

    def typed(self, text: str) -> None:
        """Words were typed to the end."""
        if self.typing == "word":
            assert self.word is not None
            self.typing = ""
            if text.strip().casefold() == self.word.key:
                self.resolve(self.word.value)
        elif self.typing == "words":
            self.words = text.strip()
            refusal = next((choice for choice in self.choices if choice.key == "n"), None)
            self.resolve(refusal.value if refusal else None)
        else:
            self.resolve(text or self.default)

    def back(self) -> None:
        """Words are not to be typed after all; where nothing else could answer, that is the end."""
        if self.choices:
            self.typing = ""
        else:
            self.resolve(self.default)

    def resolve(self, value: Any) -> None:
        """Let this be the answer."""
        if not self.answer.done():
            self.answer.set_result(value)

    def _take(self, choice: Choice) -> None:
        match choice.then:
            case "":
                self.resolve(choice.value)
            case "explain":
                if not self._notes:
                    self.note(f"It {choice.value}.")
            case then:
                self.typing = then

    def note(self, text: str) -> None:
        """Say something between the question and its answers."""
        self._notes = [one_line(text)]

    @property
    def _numbered(self) -> list[Choice]:
        """The answers that have a number: not the one that wants a word."""
        return [choice for choice in self.choices if choice is not self.word and not choice.then]

    # how it looks

    def about(self, width: int) -> list[str]:
        """What is to be decided on, in painted lines."""
        del width
        return []

    def lines(self, width: int, height: int, *, armed: bool) -> list[str]:
        """The question in ``height`` lines at most; what can be answered is always there."""
        paint = self._palette
        head = [paint(row, "bold", "yellow") for row in folded(f"? {self.head}", width)]
        about = [f"  {line}" for line in self.about(width - 2)]
        answers = list(self._answers(width, armed=armed))
        if height - len(head) - len(answers) < min(len(about), LEAST):
            answers = list(self._answers(width, armed=armed, shortly=True))
        room = max(1, height - len(head) - len(answers))
        return [*head, *self._part(about, room), *answers]

    def _part(self, lines: list[str], room: int) -> list[str]:
        """As many lines as there is room for, and how many stand before and behind them."""
        limit = room if self.whole else min(room, SHOWN)
        if len(lines) <= limit:
            return lines
        self._shown = max(1, limit - 2)
        start = min(self._first, len(lines) - limit + 1) if self.whole else 0
        end = start + limit - bool(start)
        end -= end < len(lines)
        key = "PageDown" if self.whole else "Ctrl-O"
        before = [self._hint(start, "PageUp")] if start else []
        behind = [self._hint(len(lines) - end, key)] if end < len(lines) else []
        return [*before, *lines[start:end], *behind]

    def _hint(self, more: int, key: str) -> str:
        return self._palette(f"  … {counted(more)} ({key})", "dim")

    def _answers(self, width: int, *, armed: bool, shortly: bool = False) -> Iterator[str]:
        paint = self._palette
        for note in self._notes:
            yield from (f"  {paint(row, 'cyan')}" for row in folded(note, width - 2))
        if self.typing:
            yield from (paint(f"  {row}", "dim") for row in folded(PROMPTS[self.typing], width - 2))
            return
        for number, choice in enumerate(self.choices):
            room = width - 4 - len(choice.key)
            rows = [without_middle(choice.text, room)] if shortly else folded(choice.text, room)
            look = ("reverse",) if number == self._chosen else ()
            key = paint(choice.key, "bold", "cyan") if armed else paint(choice.key, "dim")
            yield f"{MARK if look else '  '}{key}  {paint(rows[0], *look)}"
            yield from (f"  {' ' * len(choice.key)}  {row}" for row in rows[1:])
        if self.hint and self.choices and not shortly:
            yield paint(f"  {shorten(self.hint, width - 2)}", "dim")


MARK = "› "
"""What stands before the highlighted answer, for whoever sees no colours."""
HINT = "Enter or its key answers, ↑ ↓ move, Esc stops."
PROMPTS = {
    "words": "No, and what should be different? Enter tells the model, Esc goes back.",
    "rules": "The rules, a line each: Enter keeps them, Esc goes back.",
    "word": "Enter ends it, Esc goes back.",
    "text": "Enter answers, Esc leaves it open.",
}


class PermissionAsked(Asked):
    """Whether a call may run. ``kept`` are rules to be kept that allow it, ``lasting`` for ever."""

    def __init__(self, request: PermissionRequest, cwd: str, palette: Palette, now: float) -> None:
        self.request = request
        self.kept: tuple[str, ...] = ()
        self.lasting = False
        self._cwd = cwd
        choices = _permissions(request, cwd)
        super().__init__(f"{request.call.name} wants to run", choices, palette, now)

    def typed(self, text: str) -> None:
        """Words were typed to the end, or rules."""
        if self.typing != "rules":
            super().typed(text)
        elif rules := tuple(line.strip() for line in text.split("\n") if line.strip()):
            self._keep(rules, lasting=True)

    def _take(self, choice: Choice) -> None:
        if choice.then == "session":
            self._keep(self.request.rules, lasting=False)
            return
        self.written = "\n".join(self.request.rules) if choice.then == "rules" else ""
        super()._take(choice)

    def _keep(self, rules: Sequence[str], *, lasting: bool) -> None:
        """Allow the call, and what these rules speak of; as they were offered by their option."""
        is_offered = lasting and tuple(rules) == tuple(self.request.rules)
        kind = "allow_always" if is_offered else "allow_once"
        self.kept, self.lasting = () if is_offered else tuple(rules), lasting
        self.resolve(next(each.id for each in self.request.options if each.kind == kind))

    def about(self, width: int) -> list[str]:
        """The reason, the command or the path, and the changes or the arguments."""
        request, paint = self.request, self._palette
        reason = folded(one_line(request.reason), width) if request.reason else []
        title = [
            row for line in clean(request.title).split("\n") for row in folded(visible(line), width)
        ]
        shown = [paint(row.replace(f"{self._cwd}/", ""), "bold") for row in title if row.strip()]
        return [*(paint(row, "dim") for row in reason), *shown, *self._details(width)]

    def _details(self, width: int) -> Iterator[str]:
        paths = {diff.path for diff in self.request.diffs}
        for diff in self.request.diffs:
            if len(paths) > 1:
                yield self._palette(visible(diff.path.replace(f"{self._cwd}/", "")), "bold")
            yield from diff_lines(diff, width, self._palette, whole=True)
        for line in self.request.details.split("\n"):
            yield from (row for row in folded(visible(line), width) if row.strip())


def without_middle(text: str, width: int) -> str:
    """A line cut to so many cells: its beginning and its end say more than what is between."""
    if columns(text) <= width:
        return text
    end = shorten(text[::-1], width * 2 // 3)[::-1].removeprefix("…")
    return shorten(text, width - columns(end))[:-1].rstrip() + f"…{end}"


def counted(more: int) -> str:
    """``1 more line``, ``2 more lines``."""
    return f"{more:,} more line{'s' if more > 1 else ''}"


def _permissions(request: PermissionRequest, cwd: str) -> list[Choice]:
    """What can be answered to a request: its options, words to go with a no, why it is asked."""
    choices: list[Choice] = []
    kinds = {option.kind for option in request.options}
    is_kept = bool(request.rules) and request.keep is not None and "allow_once" in kinds
    for option in request.options:
        key = KEYS[option.kind]
        if any(choice.key == key for choice in choices):
            key = str(len(choices) + 1)
        edits = "rules" if is_kept and option.kind == "allow_always" else ""
        choices.append(Choice(key, _named(option), option.id, edits))
        if edits:
            rules = ", ".join(request.rules).replace(f"(/{cwd}/", "(./")
            told = f"Allow {one_line(rules)} in this session"
            choices.append(Choice("s", told, then="session"))
    if any(choice.key == "n" for choice in choices):
        choices.append(Choice("w", "No, and say what should be different", then="words"))
    if request.explanation:
        choices.append(Choice("e", "Explain what it would do", request.explanation, "explain"))
    return choices


def _named(option: Option) -> str:
    return one_line(option.name)


class QuestionAsked(Asked):
    """A question of a hook or a tool.

    Highlighted at first is the default, which stands as well where the person leaves; else the
    first of several, unless choices allow something.
    """

    hint = HINT

    def __init__(self, question: Question, palette: Palette, now: float) -> None:
        self.question = question
        super().__init__(one_line(question.text), _choices(question), palette, now)
        self.default = question.default
        if question.word:
            self.word = Choice(question.word.casefold(), "", question.choices[-1])
        if question.kind == "text":
            self.typing = "text"
        self._chosen = self._marked()

    def _marked(self) -> int | None:
        values = [None if choice.then else choice.value for choice in self.choices]
        if self.default is not None and self.default in values:
            return values.index(self.default)
        free = self.question.kind == "select" and not (self.question.kinds or self.question.word)
        return 0 if free and values else None

    def about(self, width: int) -> list[str]:
        """What the person should know before answering."""
        detail = clean(self.question.detail).strip("\n")
        return folded(detail, width) if detail else []


def _choices(question: Question) -> list[Choice]:
    match question.kind:
        case "confirm":
            return [Choice("y", "Yes", value=True), Choice("n", "No", value=False)]
        case "select":
            found = [
                Choice(str(n), one_line(text), text) for n, text in enumerate(question.choices, 1)
            ]
            if question.word:
                told = f"{one_line(question.choices[-1])} (then write: {question.word})"
                found[-1] = Choice("w", told, then="word")
            return found
        case "text":
            return []
