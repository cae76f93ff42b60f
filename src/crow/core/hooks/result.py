"""`HookResult`: what a hook answers in the words of Claude Code, as a class, a dict or its JSON.

Two tables are all of it: which words there are, and what each of them does at which points.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from typing import Any, ClassVar, Literal, TypeAlias, TypeGuard, cast

from crow.core.errors import nearest
from crow.core.events import TextDelta, TitleChanged
from crow.core.frozen import frozen
from crow.core.hooks.points import Point
from crow.core.messages import Message, text_of
from crow.core.session import FIRST_PROMPT
from crow.core.tools import ToolResult
from crow.core.validation import short
from crow.core.verdicts import Allow, Answer, Ask, Deny, Ruling, Stop, Verdict

Table: TypeAlias = "Mapping[str, Any]"
BLOCKED = "blocked by a hook"
ENDED = "a hook ended the run"
WANTED = "a hook wants you asked"
MCP = "mcp__"


# the words


class Shape:
    """What stands under a key: something of a type, or one of some texts.

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


@frozen
class HookResult:
    """What a hook answers, in the words of Claude Code.

    ``permissionBehavior`` is the verdict, ``hookPermissionDecisionReason`` its reason;
    ``updatedInput`` rewrites the call, ``updatedToolOutput`` what came of it; ``additionalContext``
    is for the model, ``message`` for the user. A ``blockingError`` refuses in words for the model;
    where a run is about to end, it goes on with them. ``preventContinuation`` ends the run, and
    ``stopReason`` says why. A dict with these keys says the same, and so does one in the shape of
    the JSON that hooks of Claude Code print.
    """

    # ruff: noqa: N815 - these are its words
    message: str | Message | None = None
    systemMessage: str | Message | None = None
    blockingError: str | dict[str, str] | None = None
    outcome: Literal["success", "blocking", "non_blocking_error", "cancelled"] | None = None
    preventContinuation: bool = False
    stopReason: str | None = None
    permissionBehavior: Literal["allow", "deny", "ask", "defer", "passthrough"] | None = None
    hookPermissionDecisionReason: str | None = None
    permissionRequestResult: dict[str, Any] | None = None
    updatedInput: dict[str, Any] | None = None
    additionalContext: str | None = None
    updatedToolOutput: Any = None
    updatedMCPToolOutput: Any = None
    initialUserMessage: str | None = None
    retry: bool = False

    def __post_init__(self) -> None:
        """Refuse what nobody understands. Raises ``TypeError``."""
        if wrong := next(_faults(_all(self), RESULT), ""):
            raise TypeError(f"HookResult: {wrong}")

    PRINTED: ClassVar[frozenset[str]] = frozenset(OUTPUT)
    """The words of what hooks print."""

    @classmethod
    def of(cls, output: Table) -> HookResult:
        """What a hook has printed, and `fault` finds nothing wrong with."""
        said = _words({name: value for name, value in output.items() if name in OUTPUT})
        return cls(**{name: value for name, value in said.items() if name in RESULT})

    @staticmethod
    def fault(output: Table, event: str) -> str:
        """What is wrong with what a hook has printed at an event; unknown words are not."""
        wrong = next(_faults(output, OUTPUT), "")
        inner: Table | None = output.get("hookSpecificOutput")
        if wrong or inner is None:
            return wrong
        if inner.get("hookEventName") != event:
            return f"'hookEventName' must be {event!r}, not {inner.get('hookEventName')!r}"
        elsewhere = "" if event == "PermissionRequest" else "decision"
        known = {name: shape for name, shape in SPECIFIC.items() if name != elsewhere}
        return next(_faults(inner, known), "")


def _all(result: HookResult) -> dict[str, Any]:
    return {each.name: getattr(result, each.name) for each in fields(result)}


def _unfounded(table: Table) -> Iterator[str]:
    """Reasons for nothing: whoever gave them has decided something, and forgot to say what."""
    for name, of in REASONS.items():
        if table.get(name) and not any(other in table for other in of):
            yield f"{name!r} is a reason for nothing: {of[0]!r} is missing"


def _faults(table: Table, known: Mapping[str, Shape], path: str = "") -> Iterator[str]:
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
            yield from _faults(inner, shape.inner, f"{told}.")


def _unknown(
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


def _read(answer: HookResult | Table, point: Point) -> dict[str, Any]:
    """The words of an answer. Raises ``TypeError`` for any that nobody understands."""
    if isinstance(answer, HookResult):
        answer = _all(answer)
    inner: Any = answer.get("hookSpecificOutput")
    specific = cast(Table, inner) if isinstance(inner, dict) else NONE
    named = specific.get("hookEventName")
    wrong = [*_unknown(answer, ANSWER, SPECIFIC), *_unknown(specific, SPECIFIC, ANSWER)]
    wrong += [*_faults(answer, ANSWER), *_faults(specific, SPECIFIC)]
    wrong += [*_unfounded(answer), *_unfounded(specific)]
    if named is not None and named not in point.names:
        wrong.append(
            f"'hookEventName' must be {' or '.join(map(repr, point.names))}, not {named!r}"
        )
    said = {} if wrong else _words(answer)
    wrong += [*_faults(said, RESULT), *_unknown(said.get("permissionRequestResult", {}), REQUEST)]
    if wrong:
        raise TypeError(f"answered {short(answer)}: {wrong[0]}")
    return said


def _words(answer: Table) -> dict[str, Any]:
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


# what they do


class Said:
    """What an answer comes to: a verdict, and what is to be told to whom."""

    __slots__ = ("answer", "contexts", "notices", "reasons", "stop", "verdict", "words")

    def __init__(self, words: Table) -> None:
        self.words = words
        self.verdict: Allow | Ask | Deny | Stop | None = None
        self.answer: Answer | None = None
        self.stop: str | None = None
        self.reasons: list[str] = []
        self.contexts: list[str] = []
        self.notices: list[str] = []

    def join(self, verdict: Verdict) -> None:
        """Say one more thing; the strictest stands."""
        ruling = Ruling(self.verdict, self.answer).joined(verdict)
        self.verdict, self.answer = ruling.verdict, ruling.answer

    async def tell(self, view: Any) -> None:
        """Tell the run, the model and the user what is theirs."""
        if self.stop is not None:
            view.stop(self.stop)
        for text in self.contexts:
            await view.inject_context(text)
        for text in self.notices:
            await view.ui.notify(text)
        if title := self.words.get("sessionTitle"):
            view.session.title = title
            await view.emit(TitleChanged(title))


Handler: TypeAlias = Callable[[Said, Any, Any], None]
"""What a word does: called with what is said, the hook's context, and what stands there."""


def _text(value: Any) -> str:
    """The text of a message or an error, which may be objects."""
    if isinstance(value, str):
        return value
    return value["blockingError"] if "blockingError" in value else text_of(value["content"])


def _nothing(said: Said, view: Any, value: Any) -> None:
    """What another word makes use of, or nobody."""


def _permit(said: Said, view: Any, value: Any) -> None:
    reason = said.words.get("hookPermissionDecisionReason") or ""
    match value:
        case "allow":
            said.join(Allow(reason))
        case "deny":
            said.join(Deny(reason))
        case "ask":
            said.join(Ask(reason or WANTED))
        case "defer":
            said.join(Ask(reason or WANTED, unanswered=_deferred(view, reason)))
        case _:
            pass


def _deferred(ctx: Any, reason: str) -> Stop | None:
    """The end of the run, where a single call is put off and nobody is there to be asked."""
    call = getattr(ctx, "call", None)
    if call is None or len(ctx.run.open) > 1:
        return None
    return Stop(": ".join(filter(None, (f"tool_deferred: {call.name}", reason))))


def _too_late(said: Said, view: Any, value: Any) -> None:
    if value not in ("allow", "passthrough"):
        raise TypeError(f"answered {value!r}, and there is nothing to permit here")


def _request(said: Said, view: Any, value: Any) -> None:
    reason = value.get("message") or ""
    if value.get("updatedPermissions"):
        raise TypeError(
            "'updatedPermissions' are for hooks of settings files: use ctx.question.keep"
        )
    if value["behavior"] == "deny":
        said.join(Stop(reason or ENDED) if value.get("interrupt") else Deny(reason))
        return
    if value.get("updatedInput") is not None:
        view.args = value["updatedInput"]
    said.join(Allow(reason))


def _refuse(said: Said, view: Any, value: Any) -> None:
    said.join(Deny(_text(value) or BLOCKED))


def _end(said: Said, view: Any, value: Any) -> None:
    said.stop = _text(value) or BLOCKED


def _go_on(said: Said, view: Any, value: Any) -> None:
    said.reasons.append(_text(value) or BLOCKED)


def _complain(said: Said, view: Any, value: Any) -> None:
    said.contexts.append(f"blocking error: {_text(value) or BLOCKED}")


def _tell_user(said: Said, view: Any, value: Any) -> None:
    said.notices.append(f"blocking error: {_text(value) or BLOCKED}")


def _stop(said: Said, view: Any, value: Any) -> None:
    if view.run is None:
        raise TypeError(f"there is no run to end at {view.moment}")
    said.stop = said.words.get("stopReason") or ENDED


def _stop_ended(said: Said, view: Any, value: Any) -> None:
    raise TypeError(f"the run has ended by itself before {view.moment}")


def _stop_here(said: Said, view: Any, value: Any) -> None:
    said.join(Stop(said.words.get("stopReason") or ENDED))


def _inform(said: Said, view: Any, value: Any) -> None:
    said.contexts += [value] if value else []


def _inform_nobody(said: Said, view: Any, value: Any) -> None:
    raise TypeError("the session ends, and no model will be told: use 'systemMessage'")


def _notify(said: Said, view: Any, value: Any) -> None:
    said.notices += [text] if (text := _text(value)) else []


def _change(name: str) -> Handler:
    return lambda said, view, value: setattr(view, name, value)


def _replace(said: Said, view: Any, value: Any) -> None:
    result = ToolResult.of(view.result)
    if not (isinstance(value, str) or view.call.name.startswith(MCP) or result.resembles(value)):
        raise TypeError(f"'updatedToolOutput' has not the shape of what {view.call.name} gives")
    view.result = result.updated(value)


def _replace_mcp(said: Said, view: Any, value: Any) -> None:
    if not view.call.name.startswith(MCP):
        raise TypeError(
            "'updatedMCPToolOutput' is for tools of MCP servers: use 'updatedToolOutput'"
        )
    if "updatedToolOutput" not in said.words:
        _replace(said, view, value)


def _retry(said: Said, view: Any, value: Any) -> None:
    if view.outcome != "denied":
        raise TypeError("'retry' is for calls that were denied")
    said.contexts.append(f"{view.call.name}: a hook says that it may be tried again")


def _begin(said: Said, view: Any, value: Any) -> None:
    FIRST_PROMPT.set(view, value)


def _display(said: Said, view: Any, value: Any) -> None:
    if not isinstance(view.update, TextDelta):
        raise TypeError("'displayContent' is for pieces of the model's answer")
    view.update = replace(view.update, text=value)


def _act(said: Said, view: Any, value: Any) -> None:
    said.join(Answer({"action": value, "content": said.words.get("content")}))


def _react(said: Said, view: Any, value: Any) -> None:
    view.action, view.content = value, said.words.get("content")


ANYWHERE = "*"
HANDLERS: Mapping[str, Mapping[str, Handler]] = {
    "permissionBehavior": {"gate": _permit, ANYWHERE: _too_late},
    "hookPermissionDecisionReason": {ANYWHERE: _nothing},
    "permissionRequestResult": {"on_permission": _request},
    "blockingError": {
        "gate": _refuse,
        "continue": _go_on,
        "before_compact": _refuse,
        "on_update": _refuse,
        "before_llm_request": _end,
        "after_llm_response": _end,
        "after_tool": _complain,
        "after_turn": _end,
        ANYWHERE: _tell_user,
    },
    "preventContinuation": {
        "gate": _stop_here,
        "after_loop": _stop_ended,
        "after_run": _stop_ended,
        ANYWHERE: _stop,
    },
    "stopReason": {ANYWHERE: _nothing},
    "outcome": {ANYWHERE: _nothing},
    "additionalContext": {
        "continue": _go_on,
        "on_session_end": _inform_nobody,
        ANYWHERE: _inform,
    },
    "message": {ANYWHERE: _notify},
    "systemMessage": {ANYWHERE: _notify},
    "updatedInput": {"before_tool": _change("args"), "on_permission": _change("args")},
    "updatedPrompt": {"before_run": _change("prompt")},
    "updatedToolOutput": {"after_tool": _replace},
    "updatedMCPToolOutput": {"after_tool": _replace_mcp},
    "retry": {"after_tool": _retry},
    "initialUserMessage": {"on_session_start": _begin},
    "sessionTitle": {"on_session_start": _nothing, "before_run": _nothing},
    "displayContent": {"on_update": _display},
    "action": {"on_elicitation": _act, "on_elicitation_result": _react},
    "content": {"on_elicitation": _nothing, "on_elicitation_result": _nothing},
    "hookEventName": {ANYWHERE: _nothing},
}
"""What each word does, by the name of a point, by the kind of a point, or anywhere."""


def is_result(answer: object) -> TypeGuard[HookResult | dict[str, Any]]:
    """True for a `HookResult`, and for a dict with one of its words, written nearly right."""
    if not isinstance(answer, dict):
        return isinstance(answer, HookResult)
    names = map(str, cast("dict[object, Any]", answer))
    return any(name in ANSWER or nearest(name, ANSWER, 0.8) for name in names)


def understood(point: Point, view: Any, answer: HookResult | Table) -> Said:
    """What a `HookResult` or a dict comes to at a point; changes are put where they belong.

    Raises ``TypeError`` for what nobody understands, or what means nothing there.
    """
    said = Said(_read(answer, point))
    for word, value in said.words.items():
        row = HANDLERS.get(word, {})
        places = (point.name, point.kind, ANYWHERE)
        handler = next((row[place] for place in places if place in row), None)
        if handler is None:
            raise TypeError(
                f"answered {_written(word, answer)!r}, which means nothing at {point.name}"
            )
        handler(said, view, value)
    return said


def _written(word: str, answer: HookResult | Table) -> str:
    """What the hook itself has written for a word."""
    other = {new: old for old, new in OTHERWISE.items()} | {"blockingError": "decision"}
    is_there = isinstance(answer, HookResult) or word in answer
    return word if is_there else other.get(word, word)
