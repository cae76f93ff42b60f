"""Forms as the questions of ``AskUserQuestion``, which programs know, and their answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from crow.stream_json.lines import Message, as_object

if TYPE_CHECKING:
    from crow.core.ports.client import Form
    from crow.core.session import Session

ASK = "AskUserQuestion"
CUSTOM = "_custom"
"""The end of the name of a field for what is none of the options of another one."""
MOST_QUESTIONS, LEAST_OPTIONS, MOST_OPTIONS = 4, 2, 4


def input_of(form: Form, session: Session) -> Message | None:
    """What ``AskUserQuestion`` is called with to ask this; None where it cannot ask that.

    Where the form is of such a call, that is its own input.
    """
    for run in session.runs:
        for each in run.open:
            if form.call_id and each.call.id == form.call_id and each.call.name == ASK:
                return dict(each.call.args)
    fields = _asked(form)
    asked = [_question(form, field) for field in fields.values()]
    if form.url or not 1 <= len(asked) <= MOST_QUESTIONS:
        return None
    are_sound = all(LEAST_OPTIONS <= len(each["options"]) <= MOST_OPTIONS for each in asked)
    return {"questions": asked} if are_sound else None


def content_of(form: Form, answers: Mapping[str, Any]) -> Message:
    """What a form is filled in with, by the answers to its questions."""
    content: Message = {}
    for name, field in _asked(form).items():
        said = answers.get(_text(form, field))
        if not isinstance(said, str) or not said:
            continue
        values = {label: value for label, (value, _) in _options(field).items()}
        several = field.get("type") == "array"
        chosen = said.split(", ") if several else [said]
        if all(each in values for each in chosen):
            picked = [values[each] for each in chosen]
            content[name] = picked if several else picked[0]
        elif f"{name}{CUSTOM}" in _fields(form):
            content[f"{name}{CUSTOM}"] = said
    return content


def _fields(form: Form) -> Message:
    return as_object(form.schema.get("properties"))


def _asked(form: Form) -> dict[str, Message]:
    """The fields that are questions."""
    fields = _fields(form)
    own = {f"{name}{CUSTOM}" for name in fields}
    return {name: as_object(field) for name, field in fields.items() if name not in own}


def _text(form: Form, field: Message) -> str:
    return str(field.get("description") or form.text)


def _question(form: Form, field: Message) -> Message:
    options = [
        {"label": label, "description": about} for label, (_, about) in _options(field).items()
    ]
    return {
        "question": _text(form, field),
        "header": str(field.get("title") or "Question"),
        "options": options,
        "multiSelect": field.get("type") == "array",
    }


def _options(field: Message) -> dict[str, tuple[str, str]]:
    """What can be chosen: by its label, the value and what it is about."""
    listed = as_object(field.get("items")) if field.get("type") == "array" else field
    titled: Any = listed.get("anyOf") or listed.get("oneOf")
    if titled:
        choices = map(as_object, cast("list[object]", titled))
        return {
            str(each.get("title") or each.get("const")): (
                str(each.get("const")),
                str(each.get("description") or ""),
            )
            for each in choices
        }
    return {str(each): (str(each), "") for each in listed.get("enum") or ()}
