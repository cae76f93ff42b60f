"""Requests of servers to the session's model, each of them behind a question to the user.

Nobody is asked where nobody can answer, and the model is not asked then.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from crow import Completion, Context, Request
from crow.errors import ModelError
from crow.extensions.mcp.failure import Refused, plain
from crow.keys import Key
from crow.ports import inputs_of

if TYPE_CHECKING:
    from crow import Message

PURPOSE = "sampling"
"""The word for another model than the conversation's, in the settings' ``purposes``."""
ONCE, ALWAYS, DENY = "Allow", "Allow for this session", "Deny"
ALLOWED: Key[set[str]] = Key("mcp.sampling")
EXCERPT = 1000
MOST_TOKENS = 32_000
PARAMS = {"temperature": "temperature", "stopSequences": "stop"}
STOPS = {"stop": "endTurn", "length": "maxTokens"}


async def sample(ctx: Context, server: str, wish: Mapping[str, Any]) -> dict[str, Any]:
    """The model's answer, as ``sampling/createMessage`` has it.

    Raises `Refused` where the user wants none, nobody can be asked, or there is none.
    """
    inputs = frozenset(inputs_of(ctx.agent.llm) or ())
    messages = [_message(said, inputs) for said in wish["messages"]]
    if wish.get("systemPrompt"):
        messages.insert(0, {"role": "system", "content": str(wish["systemPrompt"])})
    if not await _is_allowed(ctx, server, messages):
        raise Refused("the user rejected the sampling request")
    params = {name: wish[told] for told, name in PARAMS.items() if wish.get(told) is not None}
    params["max_tokens"] = min(int(wish["maxTokens"]), MOST_TOKENS)
    request = Request(messages, model=ctx.model_for(PURPOSE), params=params)
    try:
        said = await ctx.complete(request)
    except ModelError as error:
        raise Refused(f"the model gave no answer: {error}") from None
    return _answer(ctx, said)


def _answer(ctx: Context, said: Completion) -> dict[str, Any]:
    model = said.model or ctx.model_for(PURPOSE) or ctx.agent.llm.model
    content = {"type": "text", "text": said.text}
    told = {"role": "assistant", "content": content, "model": model}
    return {**told, "stopReason": STOPS.get(said.finish, said.finish)}


async def _is_allowed(ctx: Context, server: str, messages: Sequence[Message]) -> bool:
    allowed = ALLOWED.setdefault(ctx.session.root, set())
    if server in allowed:
        return True
    shown = "\n".join(f"{each['role']}: {_shown(each.get('content'))}" for each in messages)
    text = f'The MCP server "{server}" wants to ask the model, with your tokens'
    chosen = await ctx.ui.select(
        text,
        (ONCE, ALWAYS, DENY),
        kinds=("allow_once", "allow_always", "reject_once"),
        detail=plain(shown)[:EXCERPT],
    )
    if chosen == ALWAYS:
        allowed.add(server)
    return chosen in (ONCE, ALWAYS)


def _shown(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = cast("list[dict[str, Any]]", content)
    return " ".join(part.get("text", "[an image]") for part in parts)


def _message(said: Mapping[str, Any], inputs: frozenset[str]) -> Message:
    """A message of the server's; what the model does not take is named in its place."""
    content = said["content"]
    blocks = cast("list[dict[str, Any]]", content if isinstance(content, list) else [content])
    parts = [_part(block, inputs) for block in blocks]
    told: Any = parts
    if all(part["type"] == "text" for part in parts):
        told = "\n".join(part["text"] for part in parts)
    return cast("Message", {"role": said["role"], "content": told})


def _part(block: Mapping[str, Any], inputs: frozenset[str]) -> dict[str, Any]:
    kind = block.get("type")
    if kind == "text":
        return {"type": "text", "text": str(block["text"])}
    if kind == "image" and "image" in inputs:
        url = f"data:{block['mimeType']};base64,{block['data']}"
        return {"type": "image_url", "image_url": {"url": url}}
    if kind in ("image", "audio"):
        return {"type": "text", "text": f"[{kind} left out: the model takes none]"}
    return {"type": "text", "text": json.dumps(block, ensure_ascii=False)}
