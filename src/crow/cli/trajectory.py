"""A stored session as others' programs read it: an ATIF trajectory, or Claude Code's lines."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from crow._version import __version__
from crow.core.messages import is_prompt, text_of

Row = Mapping[str, Any]
Object = dict[str, Any]
ATIF = "ATIF-v1.8"
VERSION = 1
"""Of what stands in ``extra.crow``."""
SYNTHETIC = "<synthetic>"
"""The model of what no model said, in Claude Code's words."""


def trajectory(rows: Iterable[Row]) -> Object:
    """The session of these rows (itself first) as ATIF 1.8; what hooks did is in ``extra.crow``.

    The format is https://pypi.org/project/atif, which follows Harbor's RFC 0001; it has no place
    for hooks and verdicts but ``extra``.
    """
    session, *log = rows
    steps: list[Object] = []
    calls: dict[str, Object] = {}
    results: dict[str, Object] = {}
    for row in log:
        data: Object = row.get("data") or {}
        match row["kind"]:
            case "message":
                _take(steps, data, row, session)
                calls |= {each["tool_call_id"]: each for each in _calls(steps)}
            case "said":
                for message in aside(data):
                    _take(steps, message, row, {})
            case "answer":
                called = results.get(data.get("call_id", ""), {})
                _observe(steps, data.get("call_id", ""), text_of(called.get("content")))
            case "result":
                results[data["call_id"]] = data
                _note(calls.get(data["call_id"]), data)
            case "hooks":
                _hooks(steps, calls, data.get("records", ()))
            case _:
                pass
    usage: Object = session.get("usage", {}).get("total", {})
    return {
        "schema_version": ATIF,
        "session_id": session["id"],
        "agent": _agent(session),
        "steps": steps,
        "final_metrics": {
            "total_prompt_tokens": usage.get("input_tokens", 0),
            "total_completion_tokens": usage.get("output_tokens", 0),
            "total_cached_tokens": usage.get("cached_tokens", 0),
            **({"total_cost_usd": usage["cost"]} if "cost" in usage else {}),
            "total_steps": len(steps),
        },
        "extra": {"crow": {"version": VERSION, "cwd": session["cwd"], "title": session["title"]}},
    }


def _agent(session: Row) -> Object:
    model = {"model_name": session["model"]} if session.get("model") else {}
    return {"name": "crow", "version": __version__, **model}


def _take(steps: list[Object], message: Object, row: Row, session: Row) -> None:
    if message.get("role") == "tool":
        _observe(steps, message.get("tool_call_id", ""), text_of(message.get("content")))
    else:
        steps.append(_step(message, row, len(steps) + 1, session))


def _step(message: Any, row: Row, number: int, session: Row) -> Object:
    is_agent = message["role"] == "assistant"
    source = "agent" if is_agent else "user" if is_prompt(message) else "system"
    step: Object = {"step_id": number, "source": source, "timestamp": stamp(row)}
    step["message"] = text_of(message.get("content"))
    if is_agent:
        if session.get("model"):
            step["model_name"] = session["model"]
        if thought := message.get("reasoning_content") or message.get("reasoning"):
            step["reasoning_content"] = str(thought)
        if called := message.get("tool_calls"):
            step["tool_calls"] = list(map(_call, called))
    return step


def _calls(steps: list[Object]) -> list[Object]:
    """The calls of the last step."""
    return steps[-1].get("tool_calls", []) if steps else []


def _call(part: Any) -> Object:
    function = part["function"]
    return {
        "tool_call_id": part["id"],
        "function_name": function["name"],
        "arguments": arguments(function["arguments"]),
    }


def _observe(steps: list[Object], call_id: str, text: str) -> None:
    """Put what a call gave to the step that has it."""
    for step in reversed(steps):
        if any(call_id == each["tool_call_id"] for each in step.get("tool_calls", ())):
            results = step.setdefault("observation", {"results": []})["results"]
            results.append({"source_call_id": call_id, "content": text})
            return


def _note(call: Object | None, result: Object) -> None:
    """Put what became of a call beside it, and with what it ran where hooks changed that."""
    if call is None:
        return
    crow = call.setdefault("extra", {}).setdefault("crow", {})
    crow |= {"outcome": result["outcome"], "seconds": round(result["duration"], 6)}
    if result["args"] != call["arguments"]:
        crow["arguments"] = result["args"]


def _hooks(steps: list[Object], calls: Mapping[str, Object], records: Iterable[Object]) -> None:
    """Put what hooks did to the call that it was about, else to the step before."""
    by_place: dict[int, tuple[Object, list[Object]]] = {}
    for record in records:
        place = calls.get(record.get("call_id", ""), steps[-1] if steps else None)
        if place is not None:
            by_place.setdefault(id(place), (place, []))[1].append(record)
    for place, found in by_place.values():
        crow = place.setdefault("extra", {}).setdefault("crow", {})
        crow.setdefault("hooks", []).extend(found)


def aside(data: Object) -> list[Object]:
    """A prompt that no model was asked, such as a command, and its answer, as messages."""
    asked = [data["prompt"]] if "prompt" in data else []
    return [*asked, {"role": "assistant", "content": data["text"]}] if data.get("text") else asked


def claude_lines(rows: Iterable[Row]) -> Iterator[Object]:
    """The session of these rows as the lines of Claude Code's transcripts."""
    session, *log = rows
    results: dict[str, Object] = {}
    previous: str | None = None
    for row in log:
        data: Object = row.get("data") or {}
        if row["kind"] == "result":
            results[data["call_id"]] = data
        for number, (message, model) in enumerate(_messages(row["kind"], data, session, results)):
            told = f"{session['id']}.{row['seq']}{f'.{number}' if number else ''}"
            inner = _inner(message, model, results)
            line_id = str(uuid.uuid5(uuid.NAMESPACE_OID, told))
            yield {
                "parentUuid": previous,
                "isSidechain": session.get("parent") is not None,
                "userType": "external",
                "cwd": session["cwd"],
                "sessionId": session["id"],
                "version": __version__,
                "type": inner["role"],
                "message": inner,
                "uuid": line_id,
                "timestamp": stamp(row),
                **_beside(message, results),
            }
            previous = line_id


def _messages(
    kind: str, data: Object, session: Row, results: Mapping[str, Object]
) -> Iterator[tuple[Object, str]]:
    """The messages that a row is in such a transcript, and the model that said them."""
    model = session.get("model") or "unknown"
    match kind:
        case "answer":
            content = results.get(data["call_id"], {}).get("content")
            yield {"role": "tool", "tool_call_id": data["call_id"], "content": content}, model
        case "message" if data.get("role") != "system":
            yield data, model
        case "said":
            yield from ((message, SYNTHETIC) for message in aside(data))
        case _:
            return


def _beside(message: Any, results: Mapping[str, Object]) -> Object:
    """What a line has beside its message."""
    if message["role"] == "user" and not is_prompt(message):
        return {"isMeta": True}
    result = results.get(message.get("tool_call_id", ""))
    return {"toolUseResult": result.get("data") or result["content"]} if result else {}


def _inner(message: Any, model: str, results: Mapping[str, Object]) -> Object:
    """A message as Anthropic's API has it."""
    text = text_of(message.get("content"))
    if message["role"] == "user":
        return {"role": "user", "content": text}
    if message["role"] == "tool":
        call_id = message.get("tool_call_id", "")
        block: Object = {"type": "tool_result", "tool_use_id": call_id, "content": text}
        if results.get(call_id, {}).get("error"):
            block["is_error"] = True
        return {"role": "user", "content": [block]}
    thought = message.get("reasoning_content") or message.get("reasoning")
    blocks: list[Object] = []
    if thought:
        blocks.append({"type": "thinking", "thinking": str(thought), "signature": ""})
    if text:
        blocks.append({"type": "text", "text": text})
    for part in message.get("tool_calls", ()):
        function = part["function"]
        used = {"type": "tool_use", "id": part["id"], "name": function["name"]}
        blocks.append({**used, "input": arguments(function["arguments"])})
    ends = "tool_use" if message.get("tool_calls") else "end_turn"
    return {
        "id": f"msg_{uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(message, default=str)).hex}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": blocks,
        "stop_reason": ends,
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }


def arguments(text: str) -> Object:
    """The arguments of a call; those that are no object under ``text``."""
    try:
        value: Any = json.loads(text or "{}")
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {"text": text}  # pyright: ignore[reportUnknownVariableType]


def stamp(row: Row) -> str:
    """When a row was written, in ISO 8601, UTC."""
    return datetime.fromtimestamp(row["at"], UTC).isoformat(timespec="milliseconds")
