"""Lines in the shape in which Claude Code 2.1, Codex 0.171, pi 0.74 and opencode 1.18 wrote theirs (cut to what is read)."""

from __future__ import annotations

import json
from typing import Any

WHEN = "2026-11-27T03:00:{:02d}.000Z"
CWD = "/home/ada/shop"


def claude_line(number: int, after: int | None, kind: str, content: Any, **more: Any) -> dict:
    """One line; ``after`` is the number of the line that it follows."""
    role = {"role": kind, "content": content}
    if kind == "assistant":
        role |= {"id": f"m{number}", "model": "claude-opus-4-8", **more.pop("message", {})}
    return {
        "parentUuid": None if after is None else f"u{after}",
        "isSidechain": False,
        "type": kind,
        "message": role,
        "uuid": f"u{number}",
        "timestamp": WHEN.format(number),
        "cwd": CWD,
        "sessionId": "5e55",
        "version": "2.1.331",
        **more,
    }


def used(name: str, call_id: str, **args: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": args}


def gave(call_id: str, text: Any, *, is_error: bool = False) -> dict[str, Any]:
    found = {"type": "tool_result", "tool_use_id": call_id, "content": text}
    return {**found, "is_error": is_error}


USAGE = {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 7}
CLAUDE: list[dict[str, Any]] = [
    {"type": "queue-operation", "operation": "enqueue", "sessionId": "5e55"},
    claude_line(1, None, "user", "<command-name>/init</command-name><command-args>now</command-args>"),
    claude_line(2, 1, "user", "<local-command-stdout>Done</local-command-stdout>"),
    claude_line(3, 2, "user", "Taken back"),
    claude_line(4, 3, "assistant", [{"type": "text", "text": "Never said"}]),
    claude_line(5, 2, "user", [{"type": "text", "text": "Fix the price"}, {
        "type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}
    }]),
    claude_line(6, 5, "assistant", [{"type": "thinking", "thinking": "Two files.", "signature": "s"}]),
    claude_line(7, 6, "assistant", [{"type": "text", "text": "I look."}]),
    claude_line(8, 7, "assistant", [used("Read", "t1", file_path="a.py")]),
    claude_line(9, 8, "assistant", [used("Edit", "t2", file_path="b.py", old_string="1", new_string="2")],
                message={"stop_reason": "tool_use", "usage": USAGE}),
    claude_line(10, 8, "user", [gave("t1", "price = 1")]),
    claude_line(11, 9, "user", [gave("t2", [{"type": "text", "text": "no such file"}], is_error=True)]),
    claude_line(12, 11, "user", "sub", isSidechain=True),
    claude_line(13, 11, "assistant", [{"type": "text", "text": "Fixed."}]),
    {"type": "system", "subtype": "compact_boundary", "uuid": "u14", "parentUuid": None,
     "logicalParentUuid": "u13", "compactMetadata": {"trigger": "manual"}, "timestamp": WHEN.format(14)},
    claude_line(15, 14, "user", "The price was fixed.", isCompactSummary=True),
    claude_line(16, 15, "user", "Thanks"),
    claude_line(17, 16, "assistant", [{"type": "text", "text": "Welcome."}]),
]  # fmt: skip


def codex_line(number: int, kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": WHEN.format(number), "type": kind, "payload": payload}


def item(number: int, kind: str, **payload: Any) -> dict[str, Any]:
    return codex_line(number, "response_item", type=kind, **payload)


def said(number: int, role: str, text: str) -> dict[str, Any]:
    part = {"type": "output_text" if role == "assistant" else "input_text", "text": text}
    return item(number, "message", role=role, content=[part])


CODEX: list[dict[str, Any]] = [
    codex_line(0, "session_meta", id="c0de", cwd=CWD, cli_version="0.171.0"),
    said(1, "developer", "<skills_instructions>"),
    said(1, "user", "<environment_context>\n  <cwd>/home/ada/shop</cwd>"),
    codex_line(1, "turn_context", cwd=CWD, model="gpt-5.3"),
    said(2, "user", "Run the tests"),
    item(3, "reasoning", summary=[{"type": "summary_text", "text": "First look."}]),
    item(4, "function_call", name="exec_command", arguments='{"cmd": "pytest"}', call_id="c1"),
    item(4, "custom_tool_call", name="apply_patch", input="*** Begin Patch", call_id="c2"),
    item(5, "function_call_output", call_id="c1",
         output="Wall time: 0.1\nProcess exited with code 1\nOutput:\n1 failed"),
    item(6, "custom_tool_call_output", call_id="c2",
         output='{"output": "Success", "metadata": {"exit_code": 0}}'),
    codex_line(6, "event_msg", type="token_count", info={
        "last_token_usage": {"input_tokens": 100, "cached_input_tokens": 90, "output_tokens": 7}
    }),
    said(7, "assistant", "One test fails."),
]  # fmt: skip


def pi_line(number: int, after: int | None, kind: str, **more: Any) -> dict[str, Any]:
    parent = None if after is None else f"p{after}"
    head = {"type": kind, "id": f"p{number}", "parentId": parent}
    return {**head, "timestamp": WHEN.format(number), **more}


def pi_said(number: int, after: int | None, role: str, *parts: Any, **more: Any) -> dict[str, Any]:
    message = {"role": role, "content": [*parts], **more}
    return pi_line(number, after, "message", message=message)


def words(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


PI_USAGE = {"input": 10, "output": 7, "cacheRead": 90, "cacheWrite": 0, "totalTokens": 107}
PI_CALL = {"type": "toolCall", "id": "c1", "name": "edit",
           "arguments": {"path": "a.py", "edits": [{"oldText": "1", "newText": "2"}]}}  # fmt: skip
PI: list[dict[str, Any]] = [
    {"type": "session", "version": 3, "id": "01a2-1e", "timestamp": WHEN.format(0), "cwd": CWD},
    pi_line(1, None, "model_change", provider="loop", modelId="old"),
    pi_said(2, 1, "user", words("First of all")),
    pi_said(3, 2, "assistant", words("Done."), model="m1"),
    pi_said(4, 3, "user", words("Another way")),
    pi_said(5, 3, "user", words("Raise the price"),
            {"type": "image", "data": "aGk=", "mimeType": "image/png"}),
    pi_said(6, 5, "assistant", {"type": "thinking", "thinking": "One file."}, PI_CALL,
            model="m1", usage=PI_USAGE, stopReason="toolUse"),
    pi_said(7, 6, "toolResult", words("Edited."), toolCallId="c1", toolName="edit", isError=False),
    pi_line(8, 7, "compaction", summary="All was done.", firstKeptEntryId="p5", tokensBefore=9),
    pi_said(9, 8, "bashExecution", command="ls", output="a.py"),
    pi_said(10, 9, "assistant", words("Raised."), model="m2"),
    pi_line(11, 10, "session_info", name="Prices"),
]  # fmt: skip


def oc(number: int, role: str, *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    info = {"id": f"msg_{number}", "role": role, "time": {"created": 1000 * number}, **more}
    return {"info": info, "parts": [*parts]}


def oc_tool(tool: str, status: str, **state: Any) -> dict[str, Any]:
    told = {"status": status, "time": {"start": 1000, "end": 3000}, **state}
    return {"type": "tool", "tool": tool, "callID": f"call_{tool}", "state": told}


OPENCODE: dict[str, Any] = {
    "info": {"id": "ses_de24", "title": "Prices", "directory": CWD, "time": {"updated": 9000},
             "revert": {"messageID": "msg_6"}},
    "messages": [
        oc(1, "user", words("Raise the price"), {**words("Plan mode."), "synthetic": True},
           {"type": "file", "mime": "image/png", "url": "data:image/png;base64,aGk="}),
        oc(2, "assistant", {"type": "step-start"}, {"type": "reasoning", "text": "One file."},
           oc_tool("bash", "completed", input={"command": "ls"}, output="a.py",
                   metadata={"exit": 0}),
           oc_tool("edit", "error", input={"filePath": "a.py", "oldString": "1", "newString": "2"},
                   error="no such text"),
           {"type": "step-finish", "tokens": {"input": 10, "output": 7, "reasoning": 1,
                                              "cache": {"read": 90, "write": 0}}},
           modelID="m1"),
        oc(3, "user", {"type": "compaction"}),
        oc(4, "assistant", words("All was done."), summary=True, modelID="m1"),
        oc(5, "assistant", words("Raised."), modelID="m2"),
        oc(6, "user", words("Taken back")),
        oc(7, "assistant", words("Never said")),
    ],
}  # fmt: skip


def lines(made: list[dict[str, Any]]) -> str:
    return "".join(f"{json.dumps(each)}\n" for each in made)
