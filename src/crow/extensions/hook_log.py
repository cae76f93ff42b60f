"""The hook log: one line for every point that fires, and one for every hook that decided something.

It looks on: nothing it does changes what happens, not even when it cannot write.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY
from typing import TYPE_CHECKING, Annotated, Any

from crow import Allow, Answer, Arg, Ask, Context, Continue, Deny, Stop
from crow.dataclasses import entity
from crow.events import CallDelta, TextDelta, ThoughtDelta, ToolProgress
from crow.hooks import FIRST, LAST, Point, Record
from crow.keys import Key
from crow.messages import text_of

if TYPE_CHECKING:
    from crow import Agent

TAG = "[HOOK]"
EVENT_WIDTH = 18
NOTEWORTHY = 0.1
STREAM: Key[type | None] = Key("hook_log")
STREAMED = (TextDelta, ThoughtDelta, CallDelta, ToolProgress)
SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
SECRET = re.compile(
    r"""(?P<name>\b(?:bearer|basic)\s+
         |(?<![\w/-])[\w-]*(?:api[_-]?key|token|secret|passw(?:or)?d|authorization)["']?\s*[=:]\s*["']?
          (?:bearer\s+|basic\s+)?
         |://[^/\s:@]*:(?=[^/\s@]+@))
        [^\s"',;&@]{4,}
      | \b(?:sk|pk|rk)[-_][\w-]{16,} | \bgh[pousr]_\w{16,} | \bgithub_pat_\w{16,}
      | \bAKIA[0-9A-Z]{12,} | \bxox[abeprs]-[\w-]{10,} | \bAIza[\w-]{30,}
      | \beyJ[\w-]{10,}\.[\w-]+(?:\.[\w-]*)?""",
    re.IGNORECASE | re.VERBOSE,
)


@entity
class HookLog:
    """Writes ``[HOOK] before_tool  Read README.md`` for every point that fires.

    Where a hook decided, changed or failed, a line with ``->`` says who and what. ``write`` takes
    one line without its end (standard error, where it is None). A stream of updates of one kind is
    one line. Lines are at most ``width`` characters, without control characters, and without what
    looks like a key or stands in an environment variable named like one.
    """

    name = "hook_log"
    order = 190

    write: Callable[[str], object] | None = None
    events: Collection[str] | None = None
    """Only these events, by any of their names."""
    _: KW_ONLY
    width: Annotated[int, Arg(minimum=1)] = 120
    """Characters of a line."""

    def init_agent(self, agent: Agent) -> None:
        """Hang at every point there is, and at those that come until a session starts."""
        log = _Log(self, agent)

        def hang(ctx: Context | None = None) -> None:
            for hook_point in agent.hooks.points.values():
                log.hang(agent, hook_point.point)

        hang()
        agent.hooks.register("on_session_start", hang, order=FIRST - 1)
        agent.hooks.watchers.append(log.decided)


class _Log:
    """The log of one agent."""

    def __init__(self, log: HookLog, agent: Agent) -> None:
        self.write = log.write or _to_stderr
        self.width = log.width
        self.owner = agent.hooks.owner
        self.hung: set[str] = set()
        self.wanted: frozenset[str] | None = None
        if log.events is not None:
            self.wanted = frozenset(agent.hooks[event].point.name for event in log.events)

    def hang(self, agent: Agent, point: Point) -> None:
        """Hang at a point, in front of every other hook there."""
        event = point.name
        if event in self.hung or not self.wants(event):
            return
        self.hung.add(event)

        def fired(ctx: Any) -> None:
            self.fired(event, ctx)

        async def passed(ctx: Any, call_next: Callable[[], Awaitable[Any]]) -> Any:
            self.fired(event, ctx)
            return await call_next()

        observer = passed if point.kind == "wrap" else fired
        order = LAST + 1 if point.reverse else FIRST - 1
        agent.hooks.register(event, observer, order=order, owner=self.owner)

    def in_use(self, agent: Agent) -> bool:
        """False once the log was removed."""
        return self.owner is None or self.owner.thing in agent.extensions.values()

    def wants(self, event: str) -> bool:
        """True for a point that is to be logged."""
        return self.wanted is None or event in self.wanted

    def fired(self, event: str, ctx: Any) -> None:
        """Write the line of a point, unless it is one more piece of the same stream."""
        update = getattr(ctx, "update", None) if event == "on_update" else None
        stream = type(update) if isinstance(update, STREAMED) else None
        if stream is None or STREAM.get(ctx) is not stream:
            with suppress(Exception):
                self.line(event, subject(event, ctx))
        STREAM.set(ctx, stream)

    def decided(self, record: Record, ctx: Context) -> None:
        """Write a line where a hook answered, changed something or failed."""
        said = decision(record) if self.wants(record.event) else None
        if said is not None and self.in_use(ctx.agent):
            with suppress(Exception):
                self.line(record.event, f"-> {record.owner}: {said}")

    def line(self, event: str, text: str) -> None:
        """Write a line."""
        shown = without_secrets(readable(text, self.width), os.environ)
        whole = f"{TAG} {event:<{EVENT_WIDTH}}  {shown}".rstrip()
        self.write(shortened(whole, self.width))


def subject(event: str, ctx: Any) -> str:
    """What a point is about, in words."""
    describe = SUBJECTS.get(event)
    return str(describe(ctx)) if describe else ""


def decision(record: Record) -> str | None:
    """What a hook did, in words; None where it did nothing."""
    if record.error is not None:
        return f"failed: {record.error}"
    words = verdict(record.answer)
    if words is None and record.changed:
        return f"changed {', '.join(record.changed)}"
    return words


def verdict(answer: object) -> str | None:
    """A hook's answer in words; None where it says nothing."""
    match answer:
        case Allow(reason) | Ask(reason) | Deny(reason) | Stop(reason):
            word = type(answer).__name__.lower()
            return f"{word}: {reason}" if reason else word
        case Continue(message):
            return f"go on: {message}"
        case Answer():
            return "answered in its place"
        case str() if answer:
            return answer
        case _:
            return None


def _tool(ctx: Any) -> str:
    title = ctx.title
    return title if title.startswith(ctx.name) else f"{ctx.name}  {title}"


def _result(ctx: Any) -> str:
    took = f" after {ctx.duration:.1f} s" if ctx.duration >= NOTEWORTHY else ""
    return f"{_tool(ctx)}: {ctx.outcome}{took}"


def _request(ctx: Any) -> str:
    model = f" to {ctx.model}" if ctx.model else ""
    return f"{_count(ctx.messages, 'message')}, {_count(ctx.tools, 'tool')}{model}"


def _reply(ctx: Any) -> str:
    calls = ", ".join(call.name for call in ctx.reply.calls)
    return f"calls {calls}" if calls else _quoted(ctx.reply.text)


def _message(ctx: Any) -> str:
    calls = ", ".join(call["function"]["name"] for call in ctx.message.get("tool_calls", ()))
    return f"{ctx.message['role']}: {calls or _quoted(text_of(ctx.message.get('content')))}"


def _quoted(text: str) -> str:
    return f'"{text}"' if text else "(nothing)"


def _count(things: Collection[object], noun: str) -> str:
    return f"{len(things)} {noun}{'' if len(things) == 1 else 's'}"


SUBJECTS: Mapping[str, Callable[[Any], str]] = {
    "on_session_start": lambda ctx: f"{ctx.source} in {ctx.cwd}",
    "on_session_end": lambda ctx: ctx.reason,
    "before_run": lambda ctx: _quoted(text_of(ctx.prompt)),
    "before_command": lambda ctx: f"/{ctx.command} {ctx.args}",
    "before_llm_request": _request,
    "around_llm_request": _request,
    "on_llm_request": _request,
    "after_llm_response": _reply,
    "before_tool": _tool,
    "on_permission": lambda ctx: f"{_tool(ctx)}: {ctx.reason}" if ctx.reason else _tool(ctx),
    "around_tool": _tool,
    "after_tool": _result,
    "on_message": _message,
    "after_turn": lambda ctx: _count(ctx.results, "tool result"),
    "on_stop": lambda ctx: f"kept going so far: {ctx.count}" if ctx.count else "",
    "around_run": lambda ctx: _quoted(text_of(ctx.prompt)),
    "after_loop": lambda ctx: ctx.stop_reason,
    "after_run": lambda ctx: ctx.stop_reason,
    "before_compact": lambda ctx: f"{ctx.trigger}, {_count(ctx.messages, 'message')} kept",
    "after_compact": lambda ctx: ctx.trigger,
    "on_config_change": lambda ctx: ", ".join(f"{k}={v}" for k, v in ctx.changes.items()),
    "on_update": lambda ctx: type(ctx.update).__name__,
    "on_error": lambda ctx: f"{ctx.where}: {ctx.error!r}",
    "on_notification": lambda ctx: f"{ctx.kind}: {ctx.message}",
}


def readable(text: str, width: int) -> str:
    """A text in one line, without control characters; what cannot be seen anyway is dropped."""
    words = " ".join(text[: 20 * width].split())
    return "".join(character if character.isprintable() else "?" for character in words)


def shortened(text: str, width: int) -> str:
    """At most ``width`` characters of a text."""
    return text if len(text) <= width else f"{text[: width - 3]}..."


def without_secrets(text: str, environment: Mapping[str, str]) -> str:
    """A text in which what looks like a secret is replaced."""
    for name, value in environment.items():
        if len(value) >= 8 and value in text and SECRET_NAME.search(name):
            text = text.replace(value, "***")
    return SECRET.sub(lambda match: f"{match['name'] or ''}***", text)


def _to_stderr(line: str) -> None:
    sys.stderr.write(f"{line}\n")
