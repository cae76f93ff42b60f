"""Hooks as they stand in settings files, read; what is malformed is named.

It is left out, but for one at a gate, which refuses: what was to be asked there is no consent.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal, cast

from crow.dataclasses import frozen
from crow.extensions.shell_hooks.event import (
    EVENTS,
    KNOWN,
    MUST_DECIDE,
    OPEN,
    POLICY,
    Event,
)
from crow.extensions.shell_hooks.matcher import Test, everything, matcher, miswritten

if TYPE_CHECKING:
    from crow.project import HookFile, Plugin

Kind = Literal["command", "http", "mcp_tool", "prompt", "agent", "callback", "unreadable"]
NEEDED: Mapping[str, tuple[str, ...]] = {
    "command": ("command",),
    "http": ("url",),
    "mcp_tool": ("server", "tool"),
    "prompt": ("prompt",),
    "agent": ("prompt",),
    "callback": ("name",),
}
CALLBACK = "callback"
"""The type of a handler that is no text in a file: a function, of the program that Crow is in."""
SECONDS = {"prompt": 30.0, "agent": 60.0}
TEXTS = ("if", "shell", "model", "statusMessage")
SESSION_END = 60.0
SESSION_END_VARIABLE = "CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS"
USER_CONFIG = "${user_config."
"""How a plugin's option is named in a command and its arguments."""


@frozen
class Handler:
    """One handler at one event.

    ``spec`` is the handler as it was written; ``once`` takes it away after its first success;
    ``inactive`` says why it never runs, empty where it does.
    """

    event: Event
    kind: Kind
    spec: Mapping[str, Any]
    source: str
    matcher: str = ""
    test: Test = everything
    timeout: float = 600.0
    blocks: bool = False
    own: bool = False
    once: bool = False
    plugin: Plugin | None = None
    skill: str = ""
    inactive: str = ""

    @property
    def condition(self) -> str:
        """The permission rule under ``if``."""
        return self.spec.get("if") or ""

    @property
    def detached(self) -> bool:
        """True where nobody waits for it."""
        return bool(self.spec.get("async") or self.spec.get("asyncRewake"))

    @property
    def must_decide(self) -> bool:
        """True where an answer that cannot be read refuses; silence is an answer."""
        return self.event.name in MUST_DECIDE and self.spec.get("onFailure") != "continue"

    @property
    def key(self) -> str:
        """The same for handlers that do the same; those of two plugins never do."""
        names = ("if", "shell", "args", "input", *NEEDED.get(self.kind, ("fault",)))
        root = self.plugin and str(self.plugin.root)
        return json.dumps([self.kind, root, *(self.spec.get(name) for name in names)], default=str)

    def __str__(self) -> str:
        needed = NEEDED.get(self.kind, ("where",))
        text = " ".join(str(self.spec[needed[-1]]).split())
        args = cast("list[str]", self.spec.get("args") or [])
        text = " ".join([text, *args])
        return text if len(text) <= 80 else f"{text[:79]}…"


def handlers_of(files: Iterable[HookFile], problems: list[str]) -> Iterator[Handler]:
    """Every handler of every file; what is wrong goes into ``problems``, a line each.

    The handlers of SessionEnd share their time: the most that one of settings files has.
    """
    entries = list(_handlers(files, problems))
    last = [handler for handler in entries if handler.event.name == "SessionEnd"]
    asked = max((handler.timeout for handler in last if handler.plugin is None), default=1.5)
    shared = min(_milliseconds(os.environ.get(SESSION_END_VARIABLE)) or asked, SESSION_END)
    for handler in entries:
        if handler.event.name == "SessionEnd":
            own = handler.timeout if "timeout" in handler.spec else shared
            yield replace(handler, timeout=min(own, shared))
        else:
            yield handler


def _milliseconds(written: str | None) -> float:
    """A number of milliseconds as seconds; 0 for none."""
    return int(written) / 1000 if written is not None and written.isdecimal() else 0.0


def _handlers(files: Iterable[HookFile], problems: list[str]) -> Iterator[Handler]:
    for file in files:
        for name, groups in file.table.items():
            events = KNOWN if file.own else EVENTS
            if name not in events:
                near = get_close_matches(name, events, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                problems.append(f"{file.path}: there is no hook event {name!r}{hint}")
            elif not isinstance(groups, list):
                where = f"{file.path}: 'hooks.{name}'"
                yield from _unreadable(file, events[name], where, "it must be a list", problems)
            else:
                for number, group in enumerate(cast("list[object]", groups), 1):
                    where = f"{file.path}: 'hooks.{name}' entry {number}"
                    yield from _group(file, events[name], group, where, problems)


def _group(
    file: HookFile, event: Event, group: object, where: str, problems: list[str]
) -> Iterator[Handler]:
    if not isinstance(group, dict):
        yield from _unreadable(file, event, where, "it must be a table", problems)
        return
    table = cast("dict[str, object]", group)
    text, handlers = table.get("matcher"), table.get("hooks")
    if not isinstance(text, str | None) or not isinstance(handlers, list):
        wrong = "'hooks' must be a list" if isinstance(text, str | None) else "'matcher' is no text"
        yield from _unreadable(file, event, where, wrong, problems)
        return
    try:
        test = matcher(text, names_only=event.names_only) if event.matches else everything
    except ValueError as error:
        yield from _unreadable(file, event, where, str(error), problems)
        return
    miss = miswritten(text or "") if event.has_tool else ""
    problems += [f"{where}: {miss}"] if miss else []
    for handler in cast("list[object]", handlers):
        fault = _fault(handler)
        if fault:
            yield from _unreadable(file, event, where, fault, problems, text or "", test, handler)
        else:
            spec = cast("dict[str, Any]", handler)
            yield _handler(file, event, spec, text or "", test)


def _unreadable(
    file: HookFile,
    event: Event,
    where: str,
    fault: str,
    problems: list[str],
    text: str = "",
    test: Test = everything,
    handler: object = None,
) -> Iterator[Handler]:
    """Say what is wrong; at a gate something stays that refuses what it was to decide."""
    problems.append(f"{where}: {fault}")
    wish = cast("dict[str, object]", handler).get("onFailure") if isinstance(handler, dict) else ""
    if event.name in MUST_DECIDE and wish != "continue":
        spec = {"where": where, "fault": fault}
        yield Handler(event, "unreadable", spec, file.path, text, test, blocks=True)


def _fault(handler: object) -> str:
    """What is wrong with a handler; empty where nothing is."""
    if not isinstance(handler, dict):
        return "a handler must be a table"
    spec = cast("dict[str, Any]", handler)
    kind = str(spec.get("type"))
    if kind not in NEEDED or (kind == CALLBACK and not callable(spec.get(CALLBACK))):
        written = (each for each in NEEDED if each != CALLBACK)
        return f"there is no handler type {kind!r} ({', '.join(written)})"
    for name in NEEDED[kind]:
        if not isinstance(spec.get(name), str) or not spec[name]:
            return f"a handler of type {kind} needs {name!r}"
    wrong = [name for name in TEXTS if not isinstance(spec.get(name), str | None)]
    if wrong:
        return f"{wrong[0]!r} must be text"
    return _option_fault(spec)


def _option_fault(spec: Mapping[str, Any]) -> str:
    timeout = spec.get("timeout", 1)
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or timeout <= 0:
        return f"'timeout' must be a number of seconds, not {timeout!r}"
    args: Any = spec.get("args", [])
    if not isinstance(args, list) or not all(isinstance(a, str) for a in cast("list[Any]", args)):
        return "'args' must be a list of texts"
    if "args" not in spec and USER_CONFIG in str(spec.get("command")):
        return f"{USER_CONFIG}...}} is only put in where 'args' are given: no shell reads it then"
    return ""


def _handler(file: HookFile, event: Event, spec: dict[str, Any], text: str, test: Test) -> Handler:
    kind = cast("Kind", spec["type"])
    seconds = SECONDS.get(kind, event.seconds)
    timeout = float(spec.get("timeout", seconds))
    wish = spec.get("onFailure", "block" if file.own and event.name in POLICY else "continue")
    blocks = wish != "continue" and event.name not in OPEN
    if event.name == "PreModelSwitch":
        blocks = blocks or file.own
    return Handler(
        event,
        kind,
        spec,
        file.path,
        text,
        test,
        timeout,
        blocks,
        file.own,
        file.once and spec.get("once") is True,
        file.plugin,
        file.skill,
        _inactive(event, kind, spec),
    )


def _inactive(event: Event, kind: str, spec: Mapping[str, Any]) -> str:
    if event.absent:
        return f"{event.name} never fires: {event.absent}"
    if kind not in event.types and kind != CALLBACK:
        return f"handlers of type {kind} do not run at {event.name}"
    if spec.get("if") and not event.has_tool:
        return f"'if' is for events about tools: at {event.name} it never runs"
    return ""
