"""The effects of the words of a `HookResult`: a table of words and points, a handler for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias, cast

from crow.core.cache import FIRST_PROMPT
from crow.core.events import TextDelta
from crow.core.hooks.output import HookResult, Said, words_said
from crow.core.hooks.output.schema import (
    ANSWER,
    NONE,
    OTHERWISE,
    REQUEST,
    RESULT,
    SPECIFIC,
    Table,
    faults,
    unfounded,
    unknown,
    words_of,
)
from crow.core.hooks.points import Point
from crow.core.messages import text_of
from crow.core.support.validation import short
from crow.core.tools import ToolResult
from crow.core.verdicts import Allow, Answer, Ask, Deny, Stop

BLOCKED = "blocked by a hook"
ENDED = "a hook ended the run"
WANTED = "a hook wants you asked"
MCP = "mcp__"

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


def _read(answer: HookResult | Table, point: Point) -> dict[str, Any]:
    """The words of an answer. Raises ``TypeError`` for any that nobody understands."""
    if isinstance(answer, HookResult):
        answer = words_said(answer)
    inner: Any = answer.get("hookSpecificOutput")
    specific = cast(Table, inner) if isinstance(inner, dict) else NONE
    named = specific.get("hookEventName")
    wrong = [*unknown(answer, ANSWER, SPECIFIC), *unknown(specific, SPECIFIC, ANSWER)]
    wrong += [*faults(answer, ANSWER), *faults(specific, SPECIFIC)]
    wrong += [*unfounded(answer), *unfounded(specific)]
    if named is not None and named not in point.names:
        wrong.append(
            f"'hookEventName' must be {' or '.join(map(repr, point.names))}, not {named!r}"
        )
    said = {} if wrong else words_of(answer)
    wrong += [*faults(said, RESULT), *unknown(said.get("permissionRequestResult", {}), REQUEST)]
    if wrong:
        raise TypeError(f"answered {short(answer)}: {wrong[0]}")
    return said


def _written(word: str, answer: HookResult | Table) -> str:
    """What the hook itself has written for a word."""
    other = {new: old for old, new in OTHERWISE.items()} | {"blockingError": "decision"}
    is_there = isinstance(answer, HookResult) or word in answer
    return word if is_there else other.get(word, word)
