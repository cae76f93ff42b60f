"""A handler's output, read by the rules of the protocol: JSON, plain text, or neither."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from functools import partial
from typing import Any, cast

from crow.dataclasses import frozen
from crow.extensions.shell_hooks.event import Event
from crow.hooks import HookResult

Fields = Mapping[str, Any]
CUT_OFF = "no JSON: it begins like an object and does not end like one"
DECISIVE = ("decision", "continue", "permissionDecision", "updatedInput", "action")
PERMITS = ("approve", "allow", "accept")
ASKED = "PermissionRequest"
"""The event whose ``decision`` is an object, and stands in ``hookSpecificOutput``."""
SPECIFIC = {"PreToolUse": "permissionDecision", "PreModelSwitch": "permissionDecision"}
"""The decision that stands there at others; everywhere else it is ``decision``, outside of it."""


@frozen
class Output:
    """The output, read: ``fields`` of a valid object, else ``plain`` text, else a ``fault``.

    ``unread`` says that what has the fault may have been a refusal.
    """

    fields: Fields | None = None
    plain: str = ""
    fault: str = ""
    unread: bool = False

    @property
    def specific(self) -> Fields:
        """The fields of ``hookSpecificOutput``."""
        inner: Fields = (self.fields or NONE).get("hookSpecificOutput") or NONE
        return inner

    def get(self, name: str) -> Any:
        """A field of the object's own."""
        return (self.fields or NONE).get(name)


NONE: Fields = {}
SILENCE = Output()


@frozen
class RawOutput:
    """A handler's exit status (0 where it has none), output and errors."""

    code: int = 0
    stdout: str = ""
    stderr: str = ""
    seconds: float = field(default=0.0, compare=False)


def read(event: Event, stdout: str) -> Output:
    """Read what was printed to standard output."""
    text = stdout.strip().strip("\ufeff").strip()
    if not (text.startswith("{") and text.endswith("}")):
        return Output(fault=CUT_OFF, unread=True) if is_cut_off(text) else Output(plain=text)
    try:
        table: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        return _several(text) or Output(fault=f"no JSON: {error}", unread=True)
    return checked(event, cast("Fields", table))


def is_cut_off(text: str) -> bool:
    """True for the beginning of an object without its end; text may stand behind a whole one."""
    if not text.startswith("{"):
        return False
    try:
        json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return True
    return False


def checked(event: Event, table: Fields) -> Output:
    """An object, held against what an event can answer."""
    fault = HookResult.fault(table, event.name) or _misplaced(event, table)
    if fault:
        return Output(fault=fault, unread=_decides(table))
    inner: Fields | None = table.get("hookSpecificOutput")
    if inner is None or event.name == ASKED:
        return Output(fields=table)
    kept = {name: value for name, value in inner.items() if name != "decision"}
    return Output(fields={**table, "hookSpecificOutput": kept})


def _misplaced(event: Event, table: Fields) -> str:
    """What is wrong with an object whose only refusal stands where nobody looks for it."""
    inner: Fields = table.get("hookSpecificOutput") or NONE
    own = SPECIFIC.get(event.name, "")
    if event.name == ASKED or "decision" in table or own in inner:
        return ""
    if _refuses(inner.get("decision")):
        return "'decision' must stand beside 'hookSpecificOutput', not in it"
    if own and _refuses(table.get(own)):
        return f"{own!r} must stand in 'hookSpecificOutput'"
    return ""


def _decides(table: Fields) -> bool:
    """True for an object that says more than that all is well, however wrongly it says it."""
    inner: object = table.get("hookSpecificOutput")
    if not isinstance(inner, dict | None):
        return True
    tables = (table, cast("Fields", inner or NONE))
    return any(_refuses(each.get(name)) for each in tables for name in DECISIVE)


def _refuses(said: object) -> bool:
    """True for all that is no consent, and no silence."""
    return said is not None and said is not True and said not in PERMITS


def without_faults(event: Event, stdout: str) -> str:
    """The same output without the fields that do not fit, where it is an object."""
    try:
        table: Any = json.loads(stdout)
        if not isinstance(table, dict) or _fits(event.name, cast("Fields", table)):
            return stdout
    except (ValueError, RecursionError):
        return stdout
    fields = cast("dict[str, Any]", table)
    fits = partial(_fits, event.name)
    kept = {name: value for name, value in fields.items() if fits({name: value})}
    inner: object = fields.get("hookSpecificOutput")
    if isinstance(inner, dict):
        named = {"hookEventName": event.name}
        specific = cast("dict[str, Any]", inner).items()
        fit = {k: v for k, v in specific if fits({"hookSpecificOutput": {**named, k: v}})}
        kept["hookSpecificOutput"] = {**fit, **named}
    return json.dumps(kept)


def _fits(event: str, table: Fields) -> bool:
    return not HookResult.fault(table, event)


def _several(text: str) -> Output | None:
    """Several objects, one a line, are plain text where none of them says anything to Crow."""
    try:
        lines = [json.loads(line) for line in text.splitlines() if line.strip()]
    except (ValueError, RecursionError):
        return None
    if len(lines) < 2:
        return None
    for line in lines:
        if isinstance(line, dict) and HookResult.is_printed(cast("Fields", line)):
            return Output(fault="several JSON objects, where one is wanted", unread=True)
    return Output(plain=text)
