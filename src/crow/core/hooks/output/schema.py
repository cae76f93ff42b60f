"""The words of Claude Code that hooks answer in: which there are, and what stands under each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias, cast

from crow.core.errors import nearest
from crow.core.support.validation import short

Table: TypeAlias = "Mapping[str, Any]"


class Shape:
    """The shape of what stands under a key: something of a type, or one of some texts.

    ``inner`` are the keys of an object, the first of which must be there.
    """

    __slots__ = ("choices", "inner", "kind", "words")

    def __init__(
        self,
        kind: Any = object,
        words: str = "",
        *,
        choices: tuple[str, ...] = (),
        inner: Mapping[str, Shape] | None = None,
    ) -> None:
        self.kind = kind
        self.words = words
        self.choices = choices
        self.inner: Mapping[str, Shape] = inner or {}


TEXT = Shape(str, "text")
TRUTH = Shape(bool, "true or false")
NUMBER = Shape(int | float, "a number")
OBJECT = Shape(dict, "an object")
LIST = Shape(list, "a list")
ANYTHING = Shape()
BEHAVIOURS = ("allow", "deny", "ask", "defer")
DECISION: Mapping[str, Shape] = {
    "behavior": Shape(choices=("allow", "deny")),
    "updatedInput": OBJECT,
}
REQUEST: Mapping[str, Shape] = {
    **DECISION,
    "updatedPermissions": LIST,
    "message": TEXT,
    "interrupt": TRUTH,
}
MESSAGE = Shape(str | dict, "text or a message", inner={"content": ANYTHING, "role": TEXT})
ERROR = Shape(str | dict, "text", inner={"blockingError": TEXT, "command": TEXT})

OUTPUT: Mapping[str, Shape] = {
    "continue": TRUTH,
    "stopReason": TEXT,
    "suppressOutput": TRUTH,
    "terminalSequence": TEXT,
    "systemMessage": TEXT,
    "decision": Shape(choices=("approve", "block")),
    "reason": TEXT,
    "hookSpecificOutput": OBJECT,
    "async": TRUTH,
    "asyncTimeout": NUMBER,
}
"""The words of the JSON that hooks of settings files print."""
SPECIFIC: Mapping[str, Shape] = {
    "hookEventName": TEXT,
    "permissionDecision": Shape(choices=BEHAVIOURS),
    "permissionDecisionReason": TEXT,
    "decision": Shape(dict, "an object", inner=DECISION),
    "updatedInput": OBJECT,
    "additionalContext": TEXT,
    "updatedToolOutput": ANYTHING,
    "updatedMCPToolOutput": ANYTHING,
    "initialUserMessage": TEXT,
    "sessionTitle": TEXT,
    "updatedPrompt": TEXT,
    "displayContent": TEXT,
    "watchPaths": LIST,
    "reloadSkills": TRUTH,
    "retry": TRUTH,
    "action": Shape(choices=("accept", "decline", "cancel")),
    "content": OBJECT,
}
"""The words of its ``hookSpecificOutput``."""
RESULT: Mapping[str, Shape] = {
    "message": MESSAGE,
    "systemMessage": MESSAGE,
    "blockingError": ERROR,
    "outcome": Shape(choices=("success", "blocking", "non_blocking_error", "cancelled")),
    "preventContinuation": TRUTH,
    "stopReason": TEXT,
    "permissionBehavior": Shape(choices=(*BEHAVIOURS, "passthrough")),
    "hookPermissionDecisionReason": TEXT,
    "permissionRequestResult": Shape(dict, "an object", inner=REQUEST),
    "updatedInput": OBJECT,
    "additionalContext": TEXT,
    "updatedToolOutput": ANYTHING,
    "updatedMCPToolOutput": ANYTHING,
    "initialUserMessage": TEXT,
    "retry": TRUTH,
}
"""The words of a `HookResult`."""
REASONS: Mapping[str, tuple[str, ...]] = {
    "reason": ("decision",),
    "stopReason": ("preventContinuation", "continue", "continue_"),
    "permissionDecisionReason": ("permissionDecision",),
    "hookPermissionDecisionReason": ("permissionBehavior",),
}
"""What is a reason for something, and for which of what may stand beside it."""
NONE: Mapping[str, Any] = {}
ANSWER: Mapping[str, Shape] = {**OUTPUT, **RESULT, "continue_": TRUTH, "async_": TRUTH}
"""The words of a dict, which may be either; ``continue_`` and ``async_`` are no keywords."""
OTHERWISE = {
    "permissionDecision": "permissionBehavior",
    "permissionDecisionReason": "hookPermissionDecisionReason",
    "decision": "permissionRequestResult",
}
"""What some words of ``hookSpecificOutput`` are in a `HookResult`."""


def unfounded(table: Table) -> Iterator[str]:
    """Reasons for nothing: whoever gave them has decided something, and forgot to say what."""
    for name, of in REASONS.items():
        if table.get(name) and not any(other in table for other in of):
            yield f"{name!r} is a reason for nothing: {of[0]!r} is missing"


def faults(table: Table, known: Mapping[str, Shape], path: str = "") -> Iterator[str]:
    """What stands under a word and does not belong there, a line each."""
    for name, shape in known.items():
        value: Any = table.get(name)
        if value is None:
            continue
        told = f"{path}{name}"
        if shape.choices:
            if value not in shape.choices:
                yield f"{told!r} must be one of {', '.join(shape.choices)}, not {short(value)}"
        elif not isinstance(value, shape.kind):
            yield f"{told!r} has the wrong type: {shape.words} is wanted, not {short(value)}"
        elif shape.inner and isinstance(value, dict):
            inner = cast(Table, value)
            needed = next(iter(shape.inner))
            if inner.get(needed) is None:
                yield f"{told!r} has no {needed!r}"
            yield from faults(inner, shape.inner, f"{told}.")


def unknown(
    table: Table, known: Mapping[str, Shape], other: Mapping[str, Shape] = NONE
) -> Iterator[str]:
    """Keys that are no words, each with what may be meant."""
    for name in table:
        if name in known:
            continue
        if name in other:
            place = "inside" if other is SPECIFIC else "beside"
            yield f"{name!r} belongs {place} 'hookSpecificOutput'"
        else:
            near = nearest(str(name), [*known, *other])
            there = f"did you mean {near!r}?" if near else f"there are {', '.join(known)}"
            yield f"a HookResult has no {name!r}; {there}"


def words_of(answer: Table) -> dict[str, Any]:
    """All that an answer says, in the words of a `HookResult` and what these lack."""
    inner: Table = answer.get("hookSpecificOutput") or {}
    said = {name: answer[name] for name in answer if name in RESULT or name == "terminalSequence"}
    said |= {OTHERWISE.get(name, name): inner[name] for name in inner if name in SPECIFIC}
    said = {name: value for name, value in said.items() if value is not None and value is not False}
    reason = answer.get("reason") or ""
    if answer.get("continue") is False or answer.get("continue_") is False:
        said["preventContinuation"] = True
    if answer.get("decision") == "block":
        said["blockingError"] = reason
    elif answer.get("decision") == "approve" and "permissionBehavior" not in said:
        said |= {"permissionBehavior": "allow", "hookPermissionDecisionReason": reason}
    elif said.get("outcome") == "blocking":
        said.setdefault("blockingError", "")
    return said


def is_answer(table: Mapping[object, Any]) -> bool:
    """True for a dict with one of the words, written nearly right."""
    names = map(str, table)
    return any(name in ANSWER or nearest(name, ANSWER, 0.8) for name in names)
