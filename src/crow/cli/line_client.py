"""A client that writes a run in lines: the answer as it comes, each tool call in a line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crow.cli.output import Output, Style
from crow.core.events import (
    Compacted,
    Event,
    Notice,
    PlanChanged,
    Retrying,
    TextDelta,
    ThoughtDelta,
    ToolEnded,
    ToolPending,
    ToolProgress,
    ToolStarted,
    UserMessage,
)
from crow.core.hooks.run_context import Reply
from crow.core.messages import text_of
from crow.core.ports.client import Files, PermissionRequest, Question, Terminals
from crow.core.tools import Call, Diff, ToolKind, ToolResult
from crow.text import clean, one_line, shorten

if TYPE_CHECKING:
    from crow.cli.ask import Asker

DIFF_LINES = 8
OUTPUT_LINES = 3
HEAD = 40
PLAN_MARKS = {"completed": "✓", "in_progress": "▸", "pending": "·"}


class LineClient:
    """A client that writes lines. With an `Asker` it can be asked.

    ``told`` is where what tools do and the like goes, if not there as well.
    ``quiet`` leaves everything out but the answer. ``unasked`` are the calls that were denied
    because nobody could be asked.
    """

    files: Files | None = None
    terminals: Terminals | None = None
    waits_for_servers = False
    """Whether the first request waits for all MCP servers: there may be no second one."""

    def __init__(
        self,
        out: Output,
        told: Output | None = None,
        *,
        cwd: str,
        asker: Asker | None,
        quiet: bool = False,
    ) -> None:
        self.out = out
        self.told = told or out
        self.asker = asker
        self.quiet = quiet
        self.unasked: list[PermissionRequest] = []
        self.cwd = cwd
        self._heads: dict[str, tuple[str, ToolKind]] = {}
        self._last_head = ""
        self._open: set[str] = set()
        self._saying = ""
        self._has_said = False

    async def update(self, session_id: str, event: Event) -> None:
        """Show an event."""
        if not self.quiet:
            self._show(event)
        elif isinstance(event, Notice) and event.severity != "info":
            self.out.error(event.text)

    def _show(self, event: Event) -> None:
        match event:
            case TextDelta(text, message_id):
                self._text(text, f"text {message_id}")
            case ToolPending(call, title, kind):
                self._pending(call, title, kind)
            case ToolStarted(call, _, title):
                self._started(call, title)
            case ToolEnded():
                self._ended(event)
            case ToolProgress(call_id, text) if self._heads.get(call_id, ("", ""))[1] == "think":
                self._progress(text)
            case ThoughtDelta(text) if self.out.is_terminal:
                self._text(text, "thought", "dim")
            case _:
                self._show_aside(event)

    def _show_aside(self, event: Event) -> None:
        match event:
            case Notice(text, "info"):
                self.out.note(text, "  │ " if self._open else "")
            case Notice(text):
                self.out.error(text)
            case Retrying(attempt, delay, reason):
                self._beside(f"retry {attempt} in {max(delay, 1):.0f} s: {reason}")
            case Compacted():
                self._beside("the history was compacted")
            case PlanChanged(entries):
                for entry in entries:
                    self.told.line(f"  {PLAN_MARKS[entry.status]} {one_line(entry.content)}")
            case UserMessage(content):
                self._beside(f"> {text_of(content)}")
            case _:
                pass

    @property
    def answers(self) -> bool:
        """Whether there is a person to ask."""
        return self.asker is not None

    async def permission(self, session_id: str, request: PermissionRequest) -> str | None:
        """Ask the person, if there is one."""
        if self.asker is None:
            self.unasked.append(request)
            return None
        return await self.asker.permission(request)

    async def ask(self, session_id: str, question: Question) -> Any:
        """Ask the person, if there is one."""
        return question.default if self.asker is None else await self.asker.question(question)

    def obey(self, sequence: str) -> None:
        """Have the terminal do what a hook wants of it; the caller knows that it is harmless."""
        self.out.obey(sequence)

    def begin(self) -> None:
        """Forget the calls of the run before."""
        self.unasked.clear()
        self._heads.clear()
        self._open.clear()
        self._saying = ""
        self._has_said = False

    def conclude(self, reply: Reply) -> None:
        """End the last line; where only the answer is wanted, write it."""
        if self.quiet:
            self.out.write(reply.text)
        self.out.start_line()

    # what the model says

    def _text(self, text: str, what: str, *styles: Style) -> None:
        if self._saying != what:
            text = text.lstrip("\n")
            if not text:
                return
            self._gap()
        self._saying = what
        self._has_said = True
        self.out.write(text, *styles)

    def _gap(self) -> None:
        """A blank line between thoughts, text and tool calls, none at the top."""
        self.out.start_line()
        if self._has_said or (self._heads and self.told is self.out):
            self.out.raw("")

    # what the tools do

    def _pending(self, call: Call, title: str, kind: ToolKind) -> None:
        self.out.start_line()
        if self._saying and self.told is self.out:
            self.out.raw("")
        self._saying = ""
        self._open.add(call.id)
        self._head(call, title, kind)

    def _head(self, call: Call, title: str, kind: ToolKind) -> None:
        told = self._told(call, title)
        self._heads[call.id] = (told, kind)
        self._last_head = call.id
        bullet = self.told.styled("●", "cyan")
        name, _, rest = told.partition(" ")
        line = f"{self.told.styled(name, 'bold')} {self.told.fit(rest, len(name) + 3)}".rstrip()
        self.told.raw(f"{bullet} {line}")

    def _told(self, call: Call, title: str) -> str:
        """Tool and title in a line, the paths as seen from the session's directory."""
        text = one_line(self._near(title))
        known = text == call.name or text.startswith(f"{call.name} ")
        return text if known else f"{one_line(call.name)} {text}"

    def _started(self, call: Call, title: str) -> None:
        told, kind = self._heads.get(call.id, ("", "other"))
        if self._told(call, title) != told:
            self._head(call, title, kind)

    def _progress(self, text: str) -> None:
        """What a sub-agent does, line by line; the output of commands waits for their end."""
        for line in clean(text).splitlines():
            self.told.line(self.told.fit(f"  │ {self._near(line)}"), "dim")

    def _ended(self, event: ToolEnded) -> None:
        self._open.discard(event.call.id)
        head, kind = self._heads.get(event.call.id, (event.call.name, "other"))
        of = "" if event.call.id == self._last_head else f"{shorten(head, HEAD)}: "
        time = f" ({event.duration:.1f} s)" if event.duration >= 1 else ""
        match event.outcome:
            case "ok" | "answered":
                self._succeeded(event.result, kind, of, time)
            case "denied":
                self._outcome(f"{of}✗ denied: {event.result.text}", "red")
            case "cancelled":
                self._outcome(f"{of}✗ cancelled", "yellow")
            case "error":
                self._outcome(f"{of}✗ {failure(event.result)}{time}", "red")

    def _outcome(self, text: str, *styles: Style) -> None:
        self.told.start_line()
        line = f"└ {one_line(self._near(text))}"
        self.told.raw(f"  {self.told.styled(self.told.fit(line, 2), *styles)}")

    def _near(self, text: str) -> str:
        """Paths as they are seen from the session's directory."""
        return text.replace(f"{self.cwd}/", "")

    def _succeeded(self, result: ToolResult, kind: ToolKind, of: str, time: str) -> None:
        if result.diffs:
            for diff in result.diffs:
                self._diff(diff, of)
            return
        lines = [line for line in clean(result.shown).splitlines() if line.strip()]
        if kind in ("read", "search"):
            self._outcome(f"{of}{counted(len(lines), 'line')}{time}", "dim")
        elif kind == "execute" and lines:
            first, *rest = lines[-OUTPUT_LINES:]
            self._outcome(f"{of}{first}{time}", "dim")
            for line in rest:
                self.told.line(self.told.fit(f"    {line}"), "dim")
        else:
            self._outcome(f"{of}{lines[0] if lines else 'ok'}{time}", "dim")

    def _diff(self, diff: Diff, of: str) -> None:
        changed = changed_lines(diff)
        added = sum(line.startswith("+") for line in changed)
        named = "created" if diff.old is None else "changed"
        self._outcome(f"{of}{named}, +{added} -{len(changed) - added}", "dim")
        for line in changed[:DIFF_LINES]:
            colour = "green" if line.startswith("+") else "red"
            self.told.line(self.told.fit(f"    {clean(line)}"), colour)
        if len(changed) > DIFF_LINES:
            self.told.line(f"    … {counted(len(changed) - DIFF_LINES, 'more line')}", "dim")

    # what else there is to know

    def _beside(self, text: str) -> None:
        self.out.note(text)


def failure(result: ToolResult) -> str:
    """An error in a line: its first, and its last where that says more."""
    lines = [line.strip() for line in clean(result.shown).splitlines() if line.strip()]
    if not lines:
        return "failed"
    return lines[0] if len(lines) == 1 else f"{lines[0]}: {lines[-1]}"


def changed_lines(diff: Diff) -> list[str]:
    """The lines that went and came, with their sign."""
    before, after = (diff.old or "").splitlines(), diff.new.splitlines()
    from difflib import unified_diff

    lines = unified_diff(before, after, n=0, lineterm="")
    return [line for line in list(lines)[2:] if line[0] in "+-"]


def counted(number: int, noun: str) -> str:
    """``1 line``, ``2 lines``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
