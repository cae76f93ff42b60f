"""The serialization of messages for an endpoint of chat completions."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any, cast

from crow.core.messages import ImagePart, Message, TextPart
from crow.llm.chat.params import DEVELOPER, NULL, UNSIGNED_CALLS
from crow.llm.chat.reasoning_fields import NAMES, TEXTS
from crow.llm.http.request_format import MOVED, SHOWN, RequestFormat
from crow.llm.http.toolcalls import EXTRA

UNSIGNED: Any = {"google": {"thought_signature": "skip_thought_signature_validator"}}
"""What Gemini takes with a call that it has not made itself."""
NINE = 9
"""Mistral's ids are that long, and nothing but letters and digits."""
OWN = NAMES | {"origin", "output_items"}


def write(form: RequestFormat, message: Message) -> tuple[Any, list[ImagePart]]:
    """A message as the endpoint gets it, and the images that must follow the tools' results."""
    moved: list[ImagePart] = []
    sent: Any = message
    if message["role"] == "assistant":
        sent = _said(form, message)
        if UNSIGNED_CALLS in form.without and message.get("tool_calls"):
            first, *others = sent["tool_calls"]
            sent = {**sent, "tool_calls": [{EXTRA: UNSIGNED, **first}, *others]}
        if NULL in form.without and sent.get("content") is None:
            sent = {**sent, "content": ""}
    elif "written" in message:  # a client's, whoever put it into a request
        sent = {key: value for key, value in message.items() if key != "written"}
    elif message["role"] == "developer" and DEVELOPER in form.without:
        sent = {**message, "role": "system"}
    content = message.get("content")
    if isinstance(content, list) and any(part["type"] == "image_url" for part in content):
        moves = message["role"] == "tool" and not form.images_in_results
        sent = {**sent, "content": _parts(form, content, moved if moves else None)}
    return _with_short_ids(sent, form.ids) if form.ids else sent, moved


def _with_short_ids(message: Any, longest: int) -> Any:
    """The message with ids that an endpoint takes; a call and its result have the same."""
    if "tool_call_id" in message:
        return {**message, "tool_call_id": _short_id(message["tool_call_id"], longest)}
    if calls := message.get("tool_calls"):
        short = [{**call, "id": _short_id(call["id"], longest)} for call in calls]
        return {**message, "tool_calls": short}
    return message


def _short_id(given: str, longest: int) -> str:
    """An id as it is where it fits, else digits that are the same for the same id."""
    if longest == NINE:
        fits = len(given) == NINE and given.isascii() and given.isalnum()
    else:
        fits = len(given) <= longest
    return given if fits else sha256(given.encode("utf-8", "replace")).hexdigest()[:longest]


def messages_for(form: RequestFormat, messages: Sequence[Message]) -> list[Any]:
    """All messages as the endpoint gets them."""
    sent: list[Any] = []
    waiting: list[ImagePart] = []
    for message in messages:
        if waiting and message["role"] != "tool":
            sent.append(following(waiting))
            waiting = []
        written, moved = write(form, message)
        sent.append(written)
        waiting += moved
    return [*sent, following(waiting)] if waiting else sent


def _said(form: RequestFormat, message: Message) -> Any:
    """The assistant's message with its thoughts, or without them."""
    calls: list[Any] = message.get("tool_calls") or []
    mine = form.thoughts and message.get("origin", "-") == form.origin
    signed = not mine and any(EXTRA in call for call in calls)
    lacks = form.echoes and bool(calls) and OWN.isdisjoint(message)
    if not (signed or lacks or not OWN.isdisjoint(message)):
        return message
    sent = {key: value for key, value in message.items() if key not in OWN}
    if signed:
        sent["tool_calls"] = [{k: v for k, v in call.items() if k != EXTRA} for call in calls]
    if mine:
        sent |= {key: value for key, value in message.items() if key in NAMES}
    elif form.echoes and (calls or not NAMES.isdisjoint(message)):
        texts = (cast("dict[str, Any]", message).get(name) for name in TEXTS)
        sent["reasoning_content"] = next(filter(None, texts), "")
    return sent


def _parts(form: RequestFormat, parts: Sequence[Any], moved: list[ImagePart] | None) -> Any:
    """A content's parts; where no image stays among them, as one text."""
    sent: list[Any] = []
    for part in parts:
        if part["type"] != "image_url":
            sent.append(part)
        elif not form.shows(part):
            sent.append(_text(form.left_out(part)))
        elif moved is None:
            sent.append(part)
        else:
            moved.append(part)
            sent.append(_text(MOVED))
    if all(part["type"] == "text" for part in sent):
        return "\n".join(part["text"] for part in sent)
    return sent


def following(images: Sequence[ImagePart]) -> dict[str, Any]:
    """The message that shows what tools returned as images, behind the last of their results."""
    return {"role": "user", "content": [_text(SHOWN), *images]}


def _text(text: str) -> TextPart:
    return {"type": "text", "text": text}
