"""The serialization of messages as the items that an endpoint of Responses gets."""

from __future__ import annotations

from typing import Any

from crow.core.messages import Content, Message, Part, ToolCall, text_of
from crow.llm.http.request_format import RequestFormat
from crow.llm.responses.items import call_id, own_items, phase_of


def items_of(form: RequestFormat, message: Message, role: str) -> list[Any]:
    """The items that a message becomes; ``role`` is who speaks the system's messages."""
    match message["role"]:
        case "assistant":
            return own_items(form, message) or _said(form, message)
        case "tool":
            output = _parts(form, message.get("content"))
            answered = call_id(message.get("tool_call_id", ""))
            return [{"type": "function_call_output", "call_id": answered, "output": output}]
        case "system" | "developer":
            return [{"role": role, "content": text_of(message.get("content"))}]
        case _:
            return [{"role": "user", "content": _parts(form, message.get("content"))}]


def _said(form: RequestFormat, message: Message) -> list[Any]:
    """What an assistant said and called, in no words of its maker's."""
    items: list[Any] = []
    if text := text_of(message.get("content")):
        phase = phase_of(form, message)
        items.append({"role": "assistant", "content": text, **({"phase": phase} if phase else {})})
    calls = message.get("tool_calls") or ()
    return [*items, *map(_called, calls)]


def _called(call: ToolCall) -> dict[str, Any]:
    function = call["function"]
    return {
        "type": "function_call",
        "call_id": call_id(call["id"]),
        "name": function["name"],
        "arguments": function["arguments"],
    }


def _parts(form: RequestFormat, content: Content | None) -> Any:
    """A content's parts; where no image or sound is among them, as one text."""
    if content is None or isinstance(content, str):
        return content or ""
    sent = [_part(form, part) for part in content]
    if all(part["type"] == "input_text" for part in sent):
        return "\n".join(part["text"] for part in sent)
    return sent


def _part(form: RequestFormat, part: Part) -> Any:
    match part["type"]:
        case "text":
            return {"type": "input_text", "text": part["text"]}
        case "image_url" if form.shows(part):
            image = part["image_url"]
            return {"type": "input_image", "image_url": image["url"], "detail": _detail(image)}
        case "image_url":
            return {"type": "input_text", "text": form.left_out(part)}
        case _:
            return part


def _detail(image: Any) -> str:
    return image.get("detail") or "auto"
