"""`HookResult`: what a hook answers in the words of Claude Code, as a class, a dict or its JSON.

Which words there are is in `crow.core.hooks.output.schema`, what each does in
`crow.core.hooks.output.effects`: both are read when the first hook answers in them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Literal, TypeGuard, cast

from crow.core.events import TitleChanged
from crow.core.messages import Message
from crow.core.support.frozen import frozen
from crow.core.verdicts import Allow, Answer, Ask, Deny, Ruling, Stop, Verdict


@frozen
class HookResult:
    """An answer of a hook in the words of Claude Code.

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
        from crow.core.hooks.output.schema import RESULT, faults

        if wrong := next(faults(words_said(self), RESULT), ""):
            raise TypeError(f"HookResult: {wrong}")

    @classmethod
    def of(cls, output: Mapping[str, Any]) -> HookResult:
        """What a hook has printed, and `fault` finds nothing wrong with."""
        from crow.core.hooks.output.schema import OUTPUT, RESULT, words_of

        said = words_of({name: value for name, value in output.items() if name in OUTPUT})
        return cls(**{name: value for name, value in said.items() if name in RESULT})

    @staticmethod
    def fault(output: Mapping[str, Any], event: str) -> str:
        """What is wrong with what a hook has printed at an event; unknown words are not."""
        from crow.core.hooks.output.schema import OUTPUT, SPECIFIC, faults

        wrong = next(faults(output, OUTPUT), "")
        inner: Mapping[str, Any] | None = output.get("hookSpecificOutput")
        if wrong or inner is None:
            return wrong
        if inner.get("hookEventName") != event:
            return f"'hookEventName' must be {event!r}, not {inner.get('hookEventName')!r}"
        elsewhere = "" if event == "PermissionRequest" else "decision"
        known = {name: shape for name, shape in SPECIFIC.items() if name != elsewhere}
        return next(faults(inner, known), "")

    @staticmethod
    def is_printed(output: Mapping[str, Any]) -> bool:
        """True for what has one of the words that hooks print."""
        from crow.core.hooks.output.schema import OUTPUT

        return not output.keys().isdisjoint(OUTPUT)


def words_said(result: HookResult) -> dict[str, Any]:
    """All its words, those with nothing under them as well."""
    return {each.name: getattr(result, each.name) for each in fields(result)}


class Said:
    """The meaning of an answer: a verdict, and what is to be told to whom."""

    __slots__ = ("answer", "contexts", "notices", "reasons", "stop", "verdict", "words")

    def __init__(self, words: Mapping[str, Any]) -> None:
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


def is_result(answer: object) -> TypeGuard[HookResult | dict[str, Any]]:
    """True for a `HookResult`, and for a dict with one of its words, written nearly right."""
    if not isinstance(answer, dict):
        return isinstance(answer, HookResult)
    from crow.core.hooks.output.schema import is_answer

    return is_answer(cast("dict[object, Any]", answer))
