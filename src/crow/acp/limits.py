"""Limits on the size of a message to a client: clients close over a frame of 1 MiB.

What is cut says so, and the whole stays where it lies: in the file, or in the result for the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from crow.acp.jsonrpc import Message, as_json, as_object, encode
from crow.core.tools import Diff
from crow.tools.text import shortened

if TYPE_CHECKING:
    from crow.acp.v2.outgoing import ContentBlock, ContentBlockText

LIMIT = 200_000
"""Bytes of a whole message."""
RAW = 48_000
"""Bytes of a call's arguments, or of its result as data."""
CONTENT = 96_000
"""Bytes of what a card shows."""
LONGEST_TEXT = 32_000
"""Characters of one text on a card."""
CARRIED = 512 * 1024
"""Bytes of a request that is to do something, such as the text of a file to write."""
STEPS = (16_384, 4096, 1024, 256, 64)
SHOWN = frozenset({"session/update", "session/request_permission", "elicitation/create"})
"""The methods whose parameters are there to be looked at: nothing is done with them."""
WHOLE = frozenset({"image", "audio", "resource"})
"""The blocks that cannot be cut."""
NAMES = frozenset(
    {
        *("sessionId", "toolCallId", "messageId", "terminalId", "optionId", "configId", "id"),
        *("path", "uri", "type", "mimeType", "sessionUpdate", "kind", "status", "value", "modeId"),
    }
)
"""The fields that name something: cut, they would name something else."""


def weight(value: object) -> int:
    """How many bytes a value takes on the wire."""
    return len(as_json(value).encode("utf-8", "replace"))


def fits(value: object, limit: int) -> bool:
    """True where a value takes at most so many bytes; what is far too large is not written out."""
    return _least(value, limit) <= limit and weight(value) <= limit


def _least(value: Any, enough: int) -> int:
    """How many bytes a value takes at least, counted until that is enough to know."""
    size, waiting = 0, [value]
    while waiting and size <= enough:
        one = waiting.pop()
        match one:
            case str():
                size += len(one)
            case dict():
                waiting += [*one, *one.values()]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
            case list() | tuple():
                waiting += one
            case _:
                size += 1
    return size


def bounded_raw(value: object) -> Any:
    """Arguments or a result, its longest texts cut where it is too large: always an object.

    Toad takes no update with another, though the protocol allows it.
    """
    shown: Any = cast("Any", value) if isinstance(value, dict) else {"output": value}
    for longest in STEPS:
        if fits(shown, RAW):
            return shown
        shown = shortened(shown, longest)
    if fits(shown, RAW):
        return shown
    return {"output": f"[... {weight(shown)} bytes are left out here ...]"}


def bounded_text(said: str) -> str:
    """A text for a card."""
    return str(shortened(said, LONGEST_TEXT))


def demand_carried(params: Mapping[str, object]) -> None:
    """Raise ``OSError`` for a request that the client might not live through."""
    if not fits(params, CARRIED):
        raise OSError("it is too large to go through the client")


def bounded_block(one: ContentBlock) -> ContentBlock:
    """A block for a card; one that would be too large and cannot be cut is replaced by words."""
    return one if fits(one, CONTENT) else _unshown(one)


def bounded_changes(diffs: tuple[Diff, ...]) -> tuple[Diff, ...]:
    """Diffs for a card: whole files where they are small, else what is different."""
    from crow.tools.excerpt import ROOM, excerpts

    room = ROOM
    while (
        not fits([(each.path, each.old, each.new) for each in diffs], CONTENT)
        and room > LONGEST_TEXT // 8
    ):
        diffs = tuple(part for each in diffs for part in excerpts(each, room // len(diffs)))
        room //= 2
    return diffs


def note_of_left_out(diffs: tuple[Diff, ...]) -> str:
    """What people are told of diffs that do not show all of a file; empty where they do."""
    parts = [each for each in diffs if each.line is not None]
    if not parts:
        return ""
    lines = ", ".join(str(each.line) for each in parts[:8])
    return f"{parts[0].path} is too large to be shown here: this is a part of it (at line {lines})."


def bounded(message: Message) -> bytes:
    """A message for the wire: the last resort, where nobody has made it small enough before.

    Requests that are to do something are left as they are.
    """
    data = encode(message)
    if len(data) <= LIMIT or ("method" in message and message["method"] not in SHOWN):
        return data
    for longest in STEPS:
        message = _cut(message, longest)
        data = encode(message)
        if len(data) <= LIMIT:
            return data
    return encode(_bare(message))


def _cut(value: Any, longest: int) -> Any:
    if isinstance(value, dict):
        return _cut_object(cast("Message", value), longest)
    if isinstance(value, list | tuple):
        return [_cut(one, longest) for one in cast("list[Any]", value)[:longest]]
    return shortened(value, longest)


def _cut_object(value: Message, longest: int) -> Mapping[str, Any]:
    """An object with its names as they are; what cannot be cut is replaced."""
    if value.get("type") in WHOLE and not fits(value, longest):
        return _unshown(value)
    return {
        key: one if key in NAMES and isinstance(one, str) else _cut(one, longest)
        for key, one in value.items()
    }


def _unshown(block: Mapping[str, Any]) -> ContentBlockText:
    """What stands for a block that cannot be cut, such as an image."""
    kind = block.get("mimeType") or "a part"
    size = len(str(block.get("data") or block.get("resource") or ""))
    return {"type": "text", "text": f"({kind} of {size} bytes is too large to be shown here)"}


def _bare(message: Message) -> Message:
    """The least that a client can still make something of."""
    params = as_object(message.get("params"))
    update = as_object(params.get("update"))
    if not update:
        return message
    known = {k: v for k, v in update.items() if k in NAMES or k in ("title", "content")}
    if isinstance(known.get("content"), list):
        known["content"] = []
    return {**message, "params": {**params, "update": known}}
