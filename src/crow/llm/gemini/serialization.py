"""The serialization of one message as Gemini's parts: somebody's words, a reply, a result."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from mimetypes import guess_type
from typing import Any
from urllib.parse import unquote_to_bytes

from crow.core.messages import AudioPart, Content, ImagePart, Message, Part, ToolCall, text_of
from crow.llm.gemini.parts import CALL, SIGNATURE, arguments_of, say_the_same
from crow.llm.gemini.tools import name_for
from crow.llm.gemini.traits import IDS, signs, takes_images_in_results
from crow.llm.http.encoding import Piece, encode_clean
from crow.llm.http.request_format import MOVED, RequestFormat

WIRE = " gemini"
"""Behind an origin: other wires may reach the same model at the same address."""
UNSIGNED = "skip_thought_signature_validator"
"""What Google takes in the place of a signature that there is none of."""
IN_RESULTS = frozenset({"image/png", "image/jpeg", "image/webp"})


def write(form: RequestFormat, message: Message) -> Piece:
    """A message's parts as JSON, and what `crow.llm.gemini.contents` must know beside.

    Of a reply that is how the result of each call begins; of a result, whose end is written here,
    the call and the images that must follow.
    """
    match message["role"]:
        case "assistant":
            return _reply(form, message)
        case "tool":
            return _result(form, message)
        case _:
            return _joined(_parts(form, message["content"])), None


def _reply(form: RequestFormat, message: Message) -> Piece:
    """A reply: its own parts where they are this model's, and the message says the same."""
    calls = message.get("tool_calls") or []
    own = message.get("output_items") or []
    mine = message.get("origin") == form.origin + WIRE and form.trusts(message)
    if mine and own and say_the_same(own, message):
        parts = _own_parts(own, calls)
    else:
        parts = _told_parts(message, calls)
    called = [part for part in parts if CALL in part]
    if called and signs(form):
        called[0].setdefault(SIGNATURE, UNSIGNED)
    if IDS in form.without:
        for part in called:
            part[CALL].pop("id", None)
    pairs = zip(calls, called, strict=True)
    return _joined(parts), {call["id"]: _beginning(part[CALL]) for call, part in pairs}


def _own_parts(parts: Sequence[Any], calls: Sequence[ToolCall]) -> list[Any]:
    """Parts as they came; a call that was given another id has that one."""
    ids = iter([call["id"] for call in calls])
    return [
        {**part, CALL: _renamed(part[CALL], next(ids))} if CALL in part else part for part in parts
    ]


def _renamed(call: dict[str, Any], call_id: str) -> dict[str, Any]:
    return {**call, "id": call_id} if call.get("id") else {**call}


def _told_parts(message: Message, calls: Sequence[ToolCall]) -> list[Any]:
    """What a message says and calls, whoever made it."""
    text = text_of(message["content"])
    parts: list[Any] = [{"text": text}] if text else []
    for call in calls:
        function = call["function"]
        name, args = name_for(function["name"]), arguments_of(function["arguments"])
        parts.append({CALL: {"id": call["id"], "name": name, "args": args}})
    return parts


def _beginning(call: dict[str, Any]) -> bytes:
    """What stands before a result's ``response``."""
    named = {key: call[key] for key in ("id", "name") if call.get(key)}
    return b'{"functionResponse":%b,' % encode_clean(named)[:-1]


def _result(form: RequestFormat, message: Message) -> Piece:
    """What stands in a result behind its name."""
    texts: list[str] = []
    beside: list[Any] = []
    moved: list[bytes] = []
    for part in _listed(message["content"]):
        if part["type"] == "text":
            texts.append(part["text"])
        elif part["type"] == "input_audio":
            moved.append(encode_clean(_sound(part)))
        elif not form.shows(part):
            texts.append(form.left_out(part))
        elif takes_images_in_results(form) and _kind(part) in IN_RESULTS:
            beside.append(_image(part))
        else:
            texts.append(MOVED)
            moved.append(encode_clean(_image(part)))
    result: dict[str, Any] = {"response": {"output": "\n".join(texts)}}
    if beside:
        result["parts"] = beside
    return encode_clean(result)[1:] + b"}", (message.get("tool_call_id", ""), moved)


def _parts(form: RequestFormat, content: Content | None) -> list[Any]:
    """What a person said, in parts."""
    parts: list[Any] = []
    for part in _listed(content):
        match part["type"]:
            case "image_url":
                shown = form.shows(part)
                parts.append(_image(part) if shown else {"text": form.left_out(part)})
            case "input_audio":
                parts.append(_sound(part))
            case _:
                parts.append({"text": part["text"]})
    return parts


def _listed(content: Content | None) -> list[Part]:
    return content if isinstance(content, list) else [{"type": "text", "text": content or ""}]


def _sound(part: AudioPart) -> dict[str, Any]:
    sound = part["input_audio"]
    return {"inlineData": {"mimeType": f"audio/{sound['format']}", "data": sound["data"]}}


def _kind(part: ImagePart) -> str:
    """The type of an image whose bytes are there; nothing where only its address is."""
    head = part["image_url"]["url"].partition(",")[0]
    return head[5:].partition(";")[0] if head.startswith("data:") else ""


def _image(part: ImagePart) -> dict[str, Any]:
    url = part["image_url"]["url"]
    if not (kind := _kind(part)):
        guessed = guess_type(url.partition("?")[0])[0] or "image/jpeg"
        return {"fileData": {"mimeType": guessed, "fileUri": url}}
    head, _, data = url.partition(",")
    if not head.endswith(";base64"):
        data = base64.b64encode(unquote_to_bytes(data)).decode()
    return {"inlineData": {"mimeType": kind, "data": data}}


def _joined(parts: Sequence[Any]) -> bytes:
    return encode_clean(parts)[1:-1]
