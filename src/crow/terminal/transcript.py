"""The conversation as it becomes lines: what is final, and what may still change."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from crow.core.events import (
    Compacted,
    Event,
    Notice,
    PlanChanged,
    PlanEntry,
    Retrying,
    Severity,
    TextDelta,
    ThoughtDelta,
    ToolEnded,
    ToolPending,
    ToolProgress,
    ToolStarted,
    UserMessage,
)
from crow.core.messages import Content, text_of
from crow.terminal.answer import AnswerText, Item, Thought
from crow.terminal.card import Body, Card
from crow.terminal.palette import Look, Palette
from crow.terminal.pictures import picture_lines, pictures_of
from crow.terminal.wrapping import folded
from crow.text import clean, one_line, shorten

PROMPT_LINES = 12
PLAN_LINES = 5
MARKS: dict[str, str] = {"completed": "✓", "in_progress": "▸", "pending": "☐"}
STEPS: dict[str, tuple[Look, ...]] = {
    "in_progress": ("bold",),
    "completed": ("dim",),
    "pending": (),
}
NOTICES: dict[Severity, tuple[str, tuple[Look, ...]]] = {
    "info": ("·", ("dim",)),
    "warning": ("!", ("yellow",)),
    "error": ("✗", ("red",)),
}


class Transcript:
    """The talk so far. ``session_id`` is the session's own; others are its sub-agents'."""

    def __init__(self, palette: Palette, cwd: str = ".") -> None:
        self.cwd = cwd
        self.session_id = ""
        self.unfolds = False
        self.plan: tuple[PlanEntry, ...] = ()
        self.last_card: Card | None = None
        self.card_body: Body = lambda call, result: None
        self._palette = palette
        self._items: list[Item] = []
        self._cards: dict[str, Card] = {}
        self._thought: Thought | None = None
        self._above: list[Callable[[int], list[str]]] = []
        self._last: object = None
        self._begun: Item | None = None
        self.complaint = ""

    # what happens

    def take(self, session_id: str, event: Event) -> None:
        """Hear of an event."""
        match event:
            case TextDelta(text, message_id):
                self._say(text, message_id)
            case ThoughtDelta(text):
                self._think(text)
            case ToolPending(call, title, kind):
                depth = int(bool(self.session_id) and session_id != self.session_id)
                self._end_words()
                card = Card(call, title, kind, self.cwd, self._palette, depth)
                card.body = self.card_body
                self._cards[call.id] = card
                self._items.append(card)
            case ToolStarted(call, _, title) if call.id in self._cards:
                self._cards[call.id].start(title)
            case ToolProgress(call_id, text) if call_id in self._cards:
                self._cards[call_id].print(text)
            case ToolEnded(call) if call.id in self._cards:
                self.last_card = self._cards.pop(call.id)
                self.last_card.end(event)
            case _:
                self._aside(event)

    def _aside(self, event: Event) -> None:
        match event:
            case Notice(text, severity):
                self.tell(text, severity)
            case Retrying(attempt, delay, reason):
                self.tell(f"retry {attempt} in {max(delay, 1):.0f} s: {reason}", "warning")
            case Compacted():
                self.tell("the history was compacted")
            case PlanChanged(entries):
                self._plan(entries)
            case UserMessage(content):
                self.prompt(text_of(content))
                self.show(content)
            case _:
                pass

    def _say(self, text: str, message_id: str) -> None:
        last = self._items[-1] if self._items else None
        if isinstance(last, AnswerText) and not last.done and last.message_id == message_id:
            last.take(text)
            return
        if not text.strip("\n"):
            return
        self._end_words()
        answer = AnswerText(self._palette, message_id)
        answer.take(text.lstrip("\n"))
        self._items.append(answer)

    def _think(self, text: str) -> None:
        last = self._items[-1] if self._items else None
        if not isinstance(last, Thought) or last.done:
            self._end_words()
            last = self._thought = Thought(self._palette, whole=self.unfolds)
            self._items.append(last)
        last.take(text)

    def _end_words(self) -> None:
        for item in self._items:
            if isinstance(item, AnswerText | Thought):
                item.end()

    def _plan(self, entries: tuple[PlanEntry, ...]) -> None:
        """Show the plan while something of it is to be done, and once more when all is."""
        is_done = bool(entries) and all(entry.status == "completed" for entry in entries)
        if is_done and self.plan:
            self._end_words()
            steps = [self._palette(line, "dim") for line in ("Plan", *map(self._step, entries))]
            self._items.append(Fixed(lambda _: steps))
        self.plan = () if is_done else entries

    def end(self) -> None:
        """The run is over: nothing of it changes any more."""
        self._end_words()
        self._items = [item for item in self._items if not isinstance(item, Card) or item.done]
        self._cards.clear()

    def prompt(self, text: str) -> None:
        """The person has said something."""
        self._end_words()
        self.complaint = ""
        self._items.append(Fixed(partial(prompt_lines, text, palette=self._palette)))

    def show(self, content: Content) -> None:
        """Show the pictures of what was said."""
        for part in pictures_of(content):
            lines = partial(picture_lines, part, palette=self._palette)
            self._items.append(Fixed(lines, is_picture=True))

    def tell(self, text: str, severity: Severity = "info") -> None:
        """Say something beside the conversation: below a call that is on, else above all."""
        self.complaint = self.complaint if severity == "info" else text
        lines = partial(notice_lines, text, severity, palette=self._palette)
        if self._cards:
            self._items.append(Beside(lines))
        else:
            self._above.append(lines)

    def close(self, text: str, severity: Severity = "info") -> None:
        """Say something behind all that was said."""
        lines = partial(notice_lines, text, severity, palette=self._palette)
        self._items.append(Fixed(lines))

    def write(self, lines: list[str]) -> None:
        """Put lines above whatever is in progress."""
        self._above.append(lambda _: lines)

    def unfold(self) -> None:
        """Show thoughts whole from now on, and the last one, or fold them again."""
        self.unfolds = not self.unfolds
        if self._thought is None:
            return
        if not self._thought.done:
            self._thought.whole = self.unfolds
        elif self.unfolds and not self._thought.whole:
            self._thought.whole = True
            self._items.append(Fixed(self._thought.lines))

    def expand(self) -> bool:
        """Show all of the last card; False where there was none."""
        if self.last_card is not None:
            self._items.append(Fixed(self.last_card.expanded))
        return self.last_card is not None

    # how it looks

    def committed(self, width: int) -> list[str]:
        """The lines that are final since the last time."""
        lines: list[str] = []
        while self._items:
            item = self._items[0]
            if final := item.final(width):
                lines += [*self._gap(item), *final]
                self._last = self._begun = item
            if not item.done:
                break
            self._items.pop(0)
        above, self._above = self._above, []
        return [*(row for each in above for row in each(width)), *lines]

    def live(self, width: int, now: float | None = None) -> list[str]:
        """The lines that may still change."""
        now = time.monotonic() if now is None else now
        lines: list[str] = []
        last = self._last
        for item in self._items:
            if live := item.live(width, now):
                if item is not last and needs_gap(last, item):
                    lines.append("")
                lines += live
                last = item
        return lines

    def steps(self, width: int) -> list[str]:
        """The plan: what is done now, and what stands around that."""
        at = next((n for n, e in enumerate(self.plan) if e.status != "completed"), 0)
        first = max(0, min(at - 1, len(self.plan) - PLAN_LINES))
        shown = self.plan[first : first + PLAN_LINES]
        lines = [shorten(self._step(entry), width) for entry in shown]
        painted = [
            self._palette(line, *STEPS[e.status]) for line, e in zip(lines, shown, strict=True)
        ]
        if len(self.plan) > len(shown):
            painted[-1] += self._palette(f" · {len(self.plan)} steps", "dim")
        return painted

    def _step(self, entry: PlanEntry) -> str:
        return f"  {MARKS[entry.status]} {one_line(entry.content)}"

    def _gap(self, item: Item) -> list[str]:
        return [""] if item is not self._begun and needs_gap(self._last, item) else []


def needs_gap(before: object, item: Item) -> bool:
    """A blank line stands between what is of different kinds, none between two cards."""
    cards = isinstance(before, Card | Beside) and isinstance(item, Card | Beside)
    beside = isinstance(item, Fixed) and item.is_picture
    return before is not None and not cards and not beside


def notice_lines(text: str, severity: Severity, width: int, palette: Palette) -> list[str]:
    """Something that stands beside the conversation."""
    mark, looks = NOTICES[severity]
    rows = folded(one_line(text), width - 2)
    return [palette(f"{' ' if n else mark} {row}", *looks) for n, row in enumerate(rows)]


class Fixed:
    """A block that is final at once; its lines are known once the width is."""

    done = True

    def __init__(self, lines: Callable[[int], list[str]], *, is_picture: bool = False) -> None:
        self._lines = lines
        self.is_picture = is_picture

    def final(self, width: int) -> list[str]:
        """See `Item`."""
        return self._lines(width)

    def live(self, width: int, now: float) -> list[str]:
        """See `Item`."""
        del width, now
        return []


class Beside(Fixed):
    """A text said while a call was on, and probably about it: it stands below the card."""

    def final(self, width: int) -> list[str]:
        """See `Item`."""
        return [f"  {line}" for line in super().final(width - 2)]

    def live(self, width: int, now: float) -> list[str]:
        """See `Item`."""
        del now
        return self.final(width)


def prompt_lines(text: str, width: int, palette: Palette) -> list[str]:
    """What the person said, of a long text the beginning."""
    rows = folded(clean(text).strip("\n"), width - 2)
    more = len(rows) - PROMPT_LINES
    mark = palette(">", "bold", "cyan")
    marks = [f"{mark} ", *("  " for _ in rows)]
    lines = [f"{mark}{palette(row, 'bold')}" for mark, row in zip(marks, rows[:PROMPT_LINES])]  # noqa: B905
    return [*lines, palette(f"  … {more:,} more lines", "dim")] if more > 0 else lines
